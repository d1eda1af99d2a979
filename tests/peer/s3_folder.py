"""Brings a folder of tables into the bucket, file by file: a log names files relative to itself."""

from __future__ import annotations

from pathlib import Path

from headgate.pipeline.store.table_store import store_of


def upload(folder: Path, root: str) -> None:
    """Copy all files of tables that the bucket lacks; versions and files never change."""
    store = store_of(root)
    for path in sorted(folder.rglob("*")):
        names = path.relative_to(folder).parts
        if path.is_file() and not names[0].startswith((".", "_")):
            with store.files.open_output_stream(store.path(*names)) as stream:
                stream.write(path.read_bytes())
