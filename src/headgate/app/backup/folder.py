"""A backup folder on disk.

    DIR/format          one line, ``headgate-backup <version>``
    DIR/lock            held with flock while a backup or a restore runs
    DIR/files/          stored files, each ``KEY.SHA256`` (see headgate.app.backup.plan)
    DIR/generations/    one manifest for each generation

Nothing is changed after it got its name. A killed backup leaves a temporary file and stored files
that no manifest names; the next backup uses or removes them.
"""

from __future__ import annotations

import contextlib
import errno
import re
from typing import Final

from headgate.app.backup.manifest import (
    BackupError,
    Manifest,
    decode_manifest,
    encode_manifest,
)
from headgate.app.backup.plan import INCOMING, expired, unused
from headgate.base.errors import CorruptionError, InputError
from headgate.fs import FILE_SYSTEM_NAMES, Fs
from headgate.fs.api import Lock
from headgate.ledger.format.directory import TEMPORARY_SUFFIX, read_file, write_file

_FORMAT_LINE = b"headgate-backup 1\n"
_MANIFEST = re.compile(r"(\d{8})\.json")
GENERATION_MAX: Final = 99_999_999
"""The last generation with a name that is one of a manifest."""
_OWN_NAMES: Final = frozenset({"lock", f"format{TEMPORARY_SUFFIX}", "files", "generations"})
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class BackupFolder:
    """An open backup folder, locked until :meth:`close`."""

    def __init__(self, fs: Fs, path: str, lock: Lock | None) -> None:
        """For :meth:`create` and :meth:`open` only."""
        self.fs = fs
        self.path = path
        self.files_path = f"{path}/files"
        self._generations_path = f"{path}/generations"
        self._lock = lock

    @classmethod
    def create(cls, fs: Fs, path: str) -> BackupFolder:
        """Open a folder for a backup; an empty or missing one becomes a backup folder. Blocks.

        Raises:
            InputError: it holds something else.
            BackupError: another backup or restore uses it, or its format is unknown.
            OSError: it cannot be written.
        """
        fs.make_directory(path)
        folder = cls(fs, path, _lock(fs, path))
        try:
            names = fs.list_directory(path)
            if "format" in names:
                folder._check_format()
            else:
                foreign = [n for n in names if n not in _OWN_NAMES | FILE_SYSTEM_NAMES]
                if foreign:
                    raise InputError(
                        f"{path} holds {foreign[0]!r} and is no backup folder: choose an empty one"
                    )
                write_file(fs, path, "format", [_FORMAT_LINE])
            fs.make_directory(folder.files_path)
            fs.make_directory(folder._generations_path)
            fs.sync_directory(path)
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def open(cls, fs: Fs, path: str) -> BackupFolder:
        """Open a folder for a restore. It may be on a read-only file system. Blocks.

        Raises:
            InputError: it is no backup folder.
            BackupError: a backup or restore uses it, or its format is unknown.
            OSError: it cannot be read.
        """
        try:
            is_backup = "format" in fs.list_directory(path)
        except (FileNotFoundError, NotADirectoryError):
            is_backup = False
        if not is_backup:
            raise InputError(f"{path} is no backup folder: it has no file 'format'")
        lock = None
        try:
            lock = _lock(fs, path)
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
        folder = cls(fs, path, lock)
        try:
            folder._check_format()
        except BaseException:
            folder.close()
            raise
        return folder

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()

    def generations(self) -> list[int]:
        """The numbers of the generations, oldest first."""
        names = self.fs.list_directory(self._generations_path)
        return sorted(int(found[1]) for name in names if (found := _MANIFEST.fullmatch(name)))

    def manifest(self, generation: int) -> Manifest:
        """The manifest of a generation.

        Raises:
            CorruptionError: it is damaged.
            BackupError: it is of a later release.
        """
        name = _manifest_name(generation)
        return decode_manifest(read_file(self.fs, f"{self._generations_path}/{name}"), name)

    def stored_names(self) -> list[str]:
        """The names of the stored files, complete ones only."""
        return [name for name in self.fs.list_directory(self.files_path) if name != INCOMING]

    def add_manifest(self, manifest: Manifest) -> None:
        """Make a generation valid, durably. Its files are durable by then."""
        self.fs.sync_directory(self.files_path)
        name = _manifest_name(manifest.generation)
        write_file(self.fs, self._generations_path, name, [encode_manifest(manifest)])

    def prune(self, keep: int) -> list[int]:
        """Remove all but the ``keep`` newest generations, and the stored files that none of these
        has. Returns the removed generations.

        It removes no stored file while a manifest is unreadable.
        """
        fs, gone = self.fs, expired(self.generations(), keep)
        for generation in gone:
            fs.remove(f"{self._generations_path}/{_manifest_name(generation)}")
        fs.sync_directory(self._generations_path)
        try:
            kept = {generation: self.manifest(generation) for generation in self.generations()}
        except (CorruptionError, BackupError):
            return gone
        for name in unused(self.fs.list_directory(self.files_path), kept):
            fs.remove(f"{self.files_path}/{name}")
        return gone

    def remove_incoming(self) -> None:
        """Remove a stored file that was not finished, as far as possible."""
        with contextlib.suppress(OSError):
            self.fs.remove(f"{self.files_path}/{INCOMING}")

    def _check_format(self) -> None:
        text = read_file(self.fs, f"{self.path}/format")
        if text != _FORMAT_LINE:
            raise BackupError(
                f"{self.path}/format is {text[:40].decode('ascii', 'replace').strip()!r}: this "
                f"release knows {_FORMAT_LINE.decode().strip()!r}"
            )


def _manifest_name(generation: int) -> str:
    return f"{generation:08d}.json"


def _lock(fs: Fs, path: str) -> Lock:
    try:
        return fs.lock(f"{path}/lock")
    except BlockingIOError as error:
        raise BackupError(f"another backup or restore uses {path}: wait until it ends") from error
