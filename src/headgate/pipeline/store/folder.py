"""A pipeline folder's own files: the lock of its one writer, the checkpoints. No Spark."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES

_LOCK: Final = ".lock"


@contextmanager
def folder_lock(out: str) -> Iterator[None]:
    """Hold the folder: one writer at a time.

    Raises:
        InputError: another process holds it, it cannot be made, or it holds something else.
    """
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        _refuse_foreign(out)
        descriptor = os.open(Path(out, _LOCK), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"folder {out} cannot be used: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            raise InputError(
                f"folder {out} is being written by another job (process {holder or 'unknown'}); "
                "one at a time is allowed"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _refuse_foreign(out: str) -> None:
    """Keep out of folders that somebody uses for something else."""
    names = sorted(os.listdir(out))
    visible = [name for name in names if not name.startswith(".")]
    if visible and not {_LOCK, BRONZE_SAMPLES.name} & set(names):
        raise InputError(
            f"folder {out} holds {visible[0]!r} and no tables of this pipeline; choose an empty "
            "folder, or one that an earlier run filled"
        )


def spark_log_path(root: str) -> Path:
    """Where Spark's Java process and its workers write what they have to say."""
    return Path(root, "_spark.log")


def checkpoint_path(source: SourceOptions) -> str:
    """Where the query over these topics keeps its offsets: a folder for each set of topics."""
    text = json.dumps([source.broker_urls, source.topic])
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return str(Path(source.out, "_checkpoints", name).resolve())


def checkpoint_id(checkpoint: str) -> str:
    """The id in a checkpoint's metadata: a deleted checkpoint never repeats an old one's."""
    metadata = json.loads(Path(checkpoint, "metadata").read_text(encoding="utf-8"))
    return str(metadata["id"])
