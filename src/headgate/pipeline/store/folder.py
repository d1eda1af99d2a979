"""The files of a job besides the tables: the writer's lock, checkpoints, logs. No Spark."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.base.errors import InputError
from headgate.pipeline.location import checked_root, is_object_store, resolved_root
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.lease import LOCK
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES


@contextmanager
def folder_lock(out: str, say: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold the folder's lock: one writer at a time. ``say`` gets a line about a wait.

    Raises:
        InputError: another process has it, it cannot be created, or it holds other files.
    """
    if is_object_store(checked_root(out)):
        # Only tables in S3 load the library for it.
        from headgate.pipeline.store.s3_lock import s3_folder_lock

        with s3_folder_lock(out, lambda names: _refuse_foreign(out, names), say):
            yield
        return
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        _refuse_foreign(out, sorted(os.listdir(out)))
        descriptor = os.open(Path(out, LOCK), os.O_RDWR | os.O_CREAT, 0o644)
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


def _refuse_foreign(out: str, names: list[str]) -> None:
    """Refuse a folder that holds other files."""
    visible = [name for name in names if not name.startswith(".")]
    if visible and not {LOCK, BRONZE_SAMPLES.name} & set(names):
        raise InputError(
            f"folder {out} holds {visible[0]!r} and no tables of this pipeline; choose an empty "
            "folder, or one that an earlier run filled"
        )


def work_folder(source: SourceOptions) -> str | None:
    """The folder of the job's own files: ``--work``, or else the tables' folder.

    None if the job reads scrapes into an object store, because then it needs no lasting files.

    Raises:
        InputError: the tables are in an object store, and no folder is named for the checkpoints.
    """
    if source.work is not None or not is_object_store(source.out):
        return source.out if source.work is None else source.work
    if source.scrapes is not None:
        return None
    raise InputError(
        f"{source.out} cannot hold the job's own files, checkpoints and Spark's log: name a folder "
        "for them that stays from run to run (--work)"
    )


def spark_log_path(folder: str) -> Path:
    """The log of Spark's Java process and its workers."""
    return Path(folder, "_spark.log")


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
