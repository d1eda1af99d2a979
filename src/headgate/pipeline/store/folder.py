"""The files of a job besides the tables: checkpoints and logs. No Spark."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from headgate.base.errors import InputError
from headgate.pipeline.location import is_object_store, resolved_root
from headgate.pipeline.options import SourceOptions


def work_folder(source: SourceOptions) -> str | None:
    """The folder of the job's own files: ``--work``, or else the tables' folder.

    None if the job reads a folder into an object store, because then it needs no lasting files.

    Raises:
        InputError: the tables are in an object store, and no folder is named for the checkpoints.
    """
    if source.work is not None or not is_object_store(source.out):
        return source.out if source.work is None else source.work
    if source.folder is not None:
        return None
    raise InputError(
        f"{source.out} cannot hold the job's own files, checkpoints and Spark's log: name a folder "
        "for them that stays from run to run (--work)"
    )


def spark_log_path(folder: str) -> Path:
    """The log of Spark's Java process and its workers."""
    return Path(folder, "_spark.log")


def open_log(path: Path) -> BinaryIO:
    """A job's log, made if absent, to write at its end.

    Raises:
        OSError: it cannot be opened, or is a link. Others may write to the folder: a link there
            would have another file of this user emptied and filled.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
    return os.fdopen(descriptor, "ab")


@contextmanager
def log_folder(root: str) -> Iterator[str]:
    """The folder of Spark's log, created if absent; for a bucket a temporary one.

    If the job fails, the temporary folder stays, because its log says why.

    Raises:
        InputError: the folder cannot be made.
    """
    if not is_object_store(root):
        try:
            Path(root).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"folder {root} cannot be used: {error.strerror}") from error
        yield root
        return
    folder = tempfile.mkdtemp(prefix="headgate-pipeline-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def checkpoint_path(source: SourceOptions) -> str:
    """The folder for the offsets of the query that fills the tables, whatever it reads.

    A work folder has one for each folder of tables. Otherwise one folder would miss messages that
    the job read for another.

    Raises:
        InputError: as :func:`work_folder`.
    """
    name = "telemetry"
    if source.work is not None:
        name += f"-{hashlib.sha256(resolved_root(source.out).encode()).hexdigest()[:16]}"
    return str(Path(work_folder(source) or "", "_checkpoints", name).resolve())


def checkpoint_id(checkpoint: str) -> str:
    """The id in a checkpoint's metadata, which a new checkpoint never repeats."""
    metadata = json.loads(Path(checkpoint, "metadata").read_text(encoding="utf-8"))
    return str(metadata["id"])
