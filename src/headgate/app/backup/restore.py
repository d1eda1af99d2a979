"""Restores one generation of a backup into a new data directory.

The first thing in the directory is a marker, and its removal is the last step. Every start and
every tool refuses a directory with the marker, so a restore that was killed can only be repeated.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.app.backup.copying import Pace, copy_file
from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.manifest import BackupError, Manifest
from headgate.app.data_directory import RESTORE_MARKER
from headgate.base.errors import CorruptionError, InputError
from headgate.fs import FILE_SYSTEM_NAMES, Fs
from headgate.ledger.errors import DirectoryInUseError
from headgate.ledger.format.directory import TEMPORARY_SUFFIX, write_file
from headgate.storage.managed_logs import LOGS

_LOCK = "lock"
_MARKER_TEMPORARY = f"{RESTORE_MARKER}{TEMPORARY_SUFFIX}"


def newest_manifest(folder: BackupFolder, generation: int | None) -> Manifest:
    """The manifest of a generation; without a number that of the newest one.

    Raises:
        InputError: there is no such generation.
        CorruptionError: its manifest is damaged.
    """
    known = folder.generations()
    if generation is None and known:
        return folder.manifest(known[-1])
    if generation is None or generation not in known:
        has = ", ".join(map(str, known)) or "none"
        raise InputError(f"{folder.path} has no such generation; it has {has}")
    return folder.manifest(generation)


def restore(
    folder: BackupFolder,
    manifest: Manifest,
    path: str,
    pace: Pace,
    rebind: Callable[[str], None],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> None:
    """Make ``path`` the data directory that ``manifest`` describes. Blocks.

    ``path`` must be missing, empty, or an unfinished restore, which begins anew. ``rebind`` gets
    the complete directory before it becomes usable.

    Raises:
        InputError: the directory is not empty.
        DirectoryInUseError: another process uses it.
        CorruptionError: a stored file is missing or damaged.
        OSError: a file cannot be read or written.
    """
    fs = folder.fs
    fs.make_directory(path)
    try:
        lock = fs.lock(f"{path}/{_LOCK}")
    except BlockingIOError as error:
        raise DirectoryInUseError(f"{path} is in use by another process") from error
    try:
        _begin(fs, path, manifest)
        _copy_all(folder, manifest, path, pace, progress)
        rebind(path)
        fs.sync_directory(path)
        fs.remove(f"{path}/{RESTORE_MARKER}")
        fs.sync_directory(path)
    finally:
        lock.release()


def _begin(fs: Fs, path: str, manifest: Manifest) -> None:
    """Put the marker in place, then remove what an earlier try left."""
    names = [name for name in fs.list_directory(path) if name not in (_LOCK, *FILE_SYSTEM_NAMES)]
    if names and RESTORE_MARKER not in names and names != [_MARKER_TEMPORARY]:
        raise InputError(f"--data-dir {path} is not empty: it holds {names[0]!r}")
    text = f"generation {manifest.generation} of {manifest.created}\n"
    if RESTORE_MARKER not in names:
        write_file(fs, path, RESTORE_MARKER, [text.encode()])
    for name in names:
        if name not in (*LOGS, RESTORE_MARKER, _MARKER_TEMPORARY):
            fs.remove(f"{path}/{name}")
    for log in LOGS:
        if fs.is_link(f"{path}/{log}"):
            # A restore makes none, so what it leads to is not what an earlier try left.
            fs.remove(f"{path}/{log}")
            continue
        try:
            left = fs.list_directory(f"{path}/{log}")
        except FileNotFoundError:
            continue
        for name in left:
            fs.remove(f"{path}/{log}/{name}")
    if RESTORE_MARKER in names:
        # Only now: what an earlier try left may have filled the disk.
        write_file(fs, path, RESTORE_MARKER, [text.encode()])


def _copy_all(
    folder: BackupFolder,
    manifest: Manifest,
    path: str,
    pace: Pace,
    progress: Callable[[int, int], None],
) -> None:
    fs, done_bytes = folder.fs, 0
    directories = {path}
    for file in manifest.files:
        target = f"{path}/{file.path}"
        directory = target.rpartition("/")[0]
        if directory not in directories:
            fs.make_directory(directory)
            directories.add(directory)
        stored = f"{folder.files_path}/{file.stored}"
        try:
            sha256 = copy_file(fs, stored, target, file.size_bytes, pace)
        except (FileNotFoundError, BackupError) as error:
            raise CorruptionError(f"{stored} is missing or too short: {error}") from error
        if sha256 != file.sha256:
            raise CorruptionError(
                f"{stored} is damaged: its checksum is wrong. Choose another generation, or leave "
                "the data directory as it is"
            )
        done_bytes += file.size_bytes
        progress(done_bytes, manifest.size_bytes)
    for directory in sorted(directories):
        fs.sync_directory(directory)
