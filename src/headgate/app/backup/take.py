"""Takes one generation of a backup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate import __version__
from headgate.app.backup.copying import Pace, copy_file, sha256_of
from headgate.app.backup.folder import GENERATION_MAX, BackupFolder
from headgate.app.backup.manifest import MANIFEST_VERSION, BackupError, Manifest, StoredFile
from headgate.app.backup.plan import (
    INCOMING,
    SourceFile,
    path_key,
    segment_key,
    stored_by_key,
    stored_name,
)
from headgate.app.backup.sources import Source
from headgate.base.errors import CorruptionError, InputError
from headgate.ledger.tools.content_id import content_id

Progress = Callable[[int, int], None]
"""Receives the bytes that are done, and all."""


@dataclass(frozen=True, slots=True)
class BackupTaken:
    """What a backup did."""

    manifest: Manifest
    copied_bytes: int
    """Bytes that it copied; all others were in the backup already."""
    removed: list[int]
    """Generations that it removed."""


class _Run:
    def __init__(
        self, folder: BackupFolder, pace: Pace, progress: Progress, all_bytes: int
    ) -> None:
        self._folder = folder
        self._fs = folder.fs
        self._pace = pace
        self._progress = progress
        self._all_bytes = all_bytes
        self._done_bytes = 0
        self._stored = stored_by_key(folder.stored_names())
        self.copied_bytes = 0

    def store(self, file: SourceFile, *, check: bool) -> StoredFile:
        """Put one file into the store, unless it is there."""
        key = self._segment_key(file)
        sha256 = None if key is None else self._sha256_stored(key, file, check=check)
        if sha256 is None:
            sha256 = self._copy(key or path_key(file.path), file)
        else:
            self._advance(file.size_bytes)
        name = stored_name(key or path_key(file.path), sha256)
        return StoredFile(file.path, file.size_bytes, sha256, name)

    def _segment_key(self, file: SourceFile) -> str | None:
        """The key by which a sealed segment is found again; None for all other files."""
        if file.segment is None:
            return None
        opened = self._fs.open(file.place)
        try:
            content = content_id(opened, file.segment, file.size_bytes)
        finally:
            opened.close()
        log = file.path.partition("/")[0]
        return None if content is None else segment_key(log, file.segment, content)

    def _sha256_stored(self, key: str, file: SourceFile, *, check: bool) -> str | None:
        """The checksum of the stored file of a key if it can be used again."""
        sha256 = self._stored.get(key)
        if sha256 is None:
            return None
        place = f"{self._folder.files_path}/{stored_name(key, sha256)}"
        opened = self._fs.open(place)
        try:
            size_bytes = opened.size()
        finally:
            opened.close()
        if size_bytes != file.size_bytes:
            return None
        return None if check and sha256_of(self._fs, place, self._pace) != sha256 else sha256

    def _copy(self, key: str, file: SourceFile) -> str:
        folder, fs = self._folder, self._fs
        incoming = f"{folder.files_path}/{INCOMING}"
        sha256 = copy_file(fs, file.place, incoming, file.size_bytes, self._pace, self._advance)
        fs.rename(incoming, f"{folder.files_path}/{stored_name(key, sha256)}")
        self.copied_bytes += file.size_bytes
        return sha256

    def _advance(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes
        self._progress(self._done_bytes, self._all_bytes)
        self._pace.tick()


def take_backup(
    source: Source,
    folder: BackupFolder,
    pace: Pace,
    created: str,
    *,
    keep: int,
    check: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> BackupTaken:
    """Add a generation with the state of ``source``, then remove all but the ``keep`` newest.

    Blocks. With ``check`` it reads the stored files that it uses again and replaces damaged ones.
    If it fails or is killed, the former generations stay as they are.

    Raises:
        InputError: the folder has a backup of another data directory.
        BackupError: the source did not hold its files.
        OSError: a file cannot be read or written.
    """
    generations = folder.generations()
    _check_owner(source, folder, generations)
    number = max(generations, default=0) + 1
    if number > GENERATION_MAX:
        raise InputError(
            f"{folder.path} has a generation {number - 1}, the last one possible: "
            "choose another folder"
        )
    all_bytes = sum(file.size_bytes for file in source.files)
    run = _Run(folder, pace, progress, all_bytes)
    try:
        files = tuple(run.store(file, check=check) for file in source.files)
        source.confirm()
    except FileNotFoundError as error:
        raise BackupError(f"{error.filename} went away during the backup") from error
    finally:
        folder.remove_incoming()
    manifest = Manifest(
        version=MANIFEST_VERSION,
        generation=number,
        created=created,
        release=__version__,
        data_id=source.data_id,
        running=source.running,
        ends=source.ends,
        files=files,
    )
    folder.add_manifest(manifest)
    return BackupTaken(manifest, run.copied_bytes, folder.prune(keep))


def _check_owner(source: Source, folder: BackupFolder, generations: list[int]) -> None:
    """Two data directories in one folder would remove each other's generations."""
    for generation in reversed(generations):
        try:
            theirs = folder.manifest(generation).data_id
        except CorruptionError:
            continue
        if theirs and source.data_id and theirs != source.data_id:
            raise InputError(
                f"{folder.path} has backups of the data directory {theirs}, and this one is "
                f"{source.data_id}: choose another folder. A restored directory has a new id"
            )
        return
