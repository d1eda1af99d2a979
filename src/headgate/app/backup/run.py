"""Runs a backup or a restore on the disks of this host, for the commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.app.backup.copying import Pace
from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.manifest import BackupError, Manifest
from headgate.app.backup.rebind import rebind
from headgate.app.backup.restore import newest_manifest, restore
from headgate.app.backup.sources import HeldBackup, Source, running_source, stopped_source
from headgate.app.backup.take import Progress, take_backup
from headgate.fs import OsFs


@dataclass(frozen=True, slots=True)
class BackupOptions:
    """What the operator chose."""

    target: str
    """The backup folder."""
    bytes_per_s: float = 0
    """The highest rate of reading; 0 for no bound."""
    keep: int = 2
    """Generations to keep, the new one included."""
    check: bool = False
    """Whether to read stored files again that are used again."""


def back_up_stopped(data_path: str, options: BackupOptions, progress: Progress) -> dict[str, Any]:
    """Back up the data directory of a stopped broker. Returns the object that ``headgate backup
    --json`` prints.

    Raises as :func:`headgate.app.backup.sources.stopped_source` and :func:`take_backup`.
    """
    with (
        _disk_errors(options.target),
        stopped_source(OsFs(), str(Path(data_path).absolute())) as source,
    ):
        return _take(source, options, progress, lambda: None)


def back_up_running(
    held: HeldBackup, options: BackupOptions, progress: Progress, tick: Callable[[], None]
) -> dict[str, Any]:
    """Back up the data directory that a running broker holds. ``tick`` renews its lease when that
    is due. Returns the object that ``headgate backup --json`` prints.

    Raises as :func:`headgate.app.backup.sources.running_source` and :func:`take_backup`.
    """
    with _disk_errors(options.target):
        return _take(running_source(OsFs(), held), options, progress, tick)


def restore_into(
    folder_path: str,
    generation: int | None,
    data_path: str,
    bytes_per_s: float,
    progress: Progress,
) -> dict[str, Any]:
    """Restore a generation, without a number the newest one, into a new data directory. Returns
    the object that ``headgate restore --json`` prints.

    Raises as :func:`headgate.app.backup.restore.restore` and :func:`newest_manifest`.
    """
    with _disk_errors(data_path), _opened(folder_path) as folder:
        manifest = newest_manifest(folder, generation)
        pace = Pace(bytes_per_s, time.monotonic, time.sleep)
        path = str(Path(data_path).absolute())
        restore(folder, manifest, path, pace, rebind, progress)
        return {**_row(manifest), "directory": path}


def list_generations(folder_path: str) -> list[dict[str, Any]]:
    """The generations of a backup folder, oldest first.

    Raises:
        InputError: it is no backup folder.
        CorruptionError: a manifest is damaged.
        BackupError: the folder cannot be read.
    """
    with _disk_errors(folder_path), _opened(folder_path) as folder:
        return [_row(folder.manifest(generation)) for generation in folder.generations()]


def _take(
    source: Source, options: BackupOptions, progress: Progress, tick: Callable[[], None]
) -> dict[str, Any]:
    folder = BackupFolder.create(OsFs(), str(Path(options.target).absolute()))
    try:
        taken = take_backup(
            source,
            folder,
            Pace(options.bytes_per_s, time.monotonic, time.sleep, tick),
            f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            keep=options.keep,
            check=options.check,
            progress=progress,
        )
    finally:
        folder.close()
    return {
        **_row(taken.manifest),
        "copiedBytes": taken.copied_bytes,
        "removedGenerations": taken.removed,
    }


def _row(manifest: Manifest) -> dict[str, Any]:
    return {
        "generation": manifest.generation,
        "created": manifest.created,
        "release": manifest.release,
        "dataId": manifest.data_id,
        "running": manifest.running,
        "files": len(manifest.files),
        "bytes": manifest.size_bytes,
    }


@contextmanager
def _opened(path: str) -> Iterator[BackupFolder]:
    folder = BackupFolder.open(OsFs(), str(Path(path).absolute()))
    try:
        yield folder
    finally:
        folder.close()


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    """Turn the disk's errors into one sentence. ``path`` is what is written, for errors that name
    no file."""
    try:
        yield
    except OSError as error:
        raise BackupError(f"{error.filename or path}: {error.strerror or error}") from error
