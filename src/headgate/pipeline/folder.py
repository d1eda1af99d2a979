"""A pipeline folder's own files: the lock of its one writer, the checkpoints. No Spark."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions


@contextmanager
def folder_lock(out: str) -> Iterator[None]:
    """Hold the folder: one writer at a time.

    Raises:
        InputError: another process holds it, or it cannot be made.
    """
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(Path(out, ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"folder {out}: {error.strerror}") from error
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


def checkpoint_path(source: SourceOptions) -> str:
    """Where the query over these topics keeps its offsets: a folder for each set of topics."""
    text = json.dumps([source.broker_urls, source.topic])
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return str(Path(source.out, "_checkpoints", name).resolve())


def checkpoint_id(checkpoint: str) -> str:
    """The id in a checkpoint's metadata: a deleted checkpoint never repeats an old one's."""
    metadata = json.loads(Path(checkpoint, "metadata").read_text(encoding="utf-8"))
    return str(metadata["id"])
