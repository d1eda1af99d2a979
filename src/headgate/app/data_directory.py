"""A broker's data directory, which one process owns at a time.

    DIR/lock                held with flock while a broker runs
    DIR/format              one line, ``headgate-data <version>``
    DIR/metadata.sqlite3    tenants, namespaces, topics and policies (headgate.metadata)
    DIR/log/                messages and cursors (headgate.ledger), with a lock and a format,
                            and the identity that binds it to the metadata
    DIR/log/metadata.copy   a copy of the metadata, at most a second old (metadata_copy)
    DIR/reserve             disk space reserved for the metadata (disk_reserve)
    DIR/telemetry-log/      the same for the telemetry's topic (telemetry_log)
    DIR/restore-unfinished  only while headgate restore fills the directory
    DIR/backup-source/      what a running broker copied for a backup (backup.holding)
    DIR/telemetry-names.key the key if names in the telemetry are hashed (names_key)

A start takes the lock before it reads anything in the directory.
"""

from __future__ import annotations

import re

from headgate.base.errors import StorageError
from headgate.fs import FILE_SYSTEM_NAMES, Fs
from headgate.fs.api import Lock
from headgate.ledger import look_at_log
from headgate.ledger.errors import DirectoryInUseError, UnknownFormatError
from headgate.ledger.format.directory import TEMPORARY_SUFFIX, read_file, write_file
from headgate.storage.store_binding import MAIN_LOG, LogPlace

METADATA_NAME = "metadata.sqlite3"
RESTORE_MARKER = "restore-unfinished"
"""While the directory has this file, a restore has not put everything in place."""

FORMAT_VERSION = 1
"""Grows when an older release could not use the directory."""

_FORMAT_LINE = f"headgate-data {FORMAT_VERSION}\n"
_FORMAT = re.compile(r"headgate-data \d+\n")
_TO_RESTORE = (
    "put it back from a backup, or make it anew with the one line "
    f"'{_FORMAT_LINE.strip()}' if a release like this one wrote the directory"
)


class DataDirectory:
    """A directory that this broker owns until :meth:`close`."""

    def __init__(self, fs: Fs, path: str, lock: Lock) -> None:
        """For :meth:`open` only."""
        self.path = path
        self.metadata_path = f"{path}/{METADATA_NAME}"
        self.reserve_path = f"{path}/reserve"
        self.fs = fs
        self._lock = lock

    @classmethod
    def open(cls, fs: Fs, path: str) -> DataDirectory:
        """Lock ``path``; create it if it is missing. Blocks.

        Raises:
            DirectoryInUseError: another broker runs on it.
            UnknownFormatError: it is not Headgate's, or its format is unknown.
            StorageError: it cannot be created, read or written.
        """
        try:
            fs.make_directory(path)
            lock = _lock(fs, path)
            try:
                _check_format(fs, path)
            except BaseException:
                lock.release()
                raise
        except OSError as error:
            raise StorageError(
                f"data directory {path} cannot be used: {error.strerror}", retryable=False
            ) from error
        return cls(fs, path, lock)

    def has_metadata(self) -> bool:
        """Whether there is a file of metadata, be it empty.

        Raises:
            StorageError: the directory cannot be read.
        """
        try:
            return METADATA_NAME in self.fs.list_directory(self.path)
        except OSError as error:
            raise StorageError(f"reading {self.path} failed: {error}", retryable=False) from error

    def log_place(self, name: str = MAIN_LOG) -> LogPlace:
        """One of the directory's logs, as it is on disk now.

        Raises:
            UnknownFormatError: it is of a later release.
            StorageError: it cannot be read.
        """
        path = f"{self.path}/{name}"
        return LogPlace(name, path, self.metadata_path, look_at_log(self.fs, path))

    def close(self) -> None:
        """Release the lock."""
        self._lock.release()


def format_damage(fs: Fs, path: str) -> tuple[str, bytes]:
    """What is wrong with the file ``format`` of a data directory, empty if nothing; and the content
    that this release writes.

    Raises:
        UnknownFormatError: it is of another release.
        OSError: it cannot be read.
    """
    line = _FORMAT_LINE.encode()
    if "format" not in fs.list_directory(path):
        return "the file is missing", line
    text = read_file(fs, f"{path}/format").decode("ascii", "replace")
    if text != _FORMAT_LINE and _FORMAT.fullmatch(text):
        raise UnknownFormatError(
            f"data directory {path} has format {text.strip()!r}: this release knows "
            f"{_FORMAT_LINE.strip()!r}"
        )
    return "" if text == _FORMAT_LINE else "the line is damaged", line


def _lock(fs: Fs, path: str) -> Lock:
    try:
        return fs.lock(f"{path}/lock")
    except BlockingIOError as error:
        raise DirectoryInUseError(
            f"data directory {path} is in use by another broker: stop that one, or choose another "
            "directory with --data-dir"
        ) from error


def check_restored(fs: Fs, path: str) -> None:
    """Return if no restore of the directory is unfinished.

    Raises:
        StorageError: one is.
    """
    if RESTORE_MARKER in fs.list_directory(path):
        raise StorageError(
            f"data directory {path} is an unfinished restore: run headgate restore again, which "
            "begins anew",
            retryable=False,
        )


def _check_format(fs: Fs, path: str) -> None:
    check_restored(fs, path)
    names = fs.list_directory(path)
    if "format" not in names:
        if METADATA_NAME in names or MAIN_LOG in names:
            raise UnknownFormatError(
                f"data directory {path} lacks its file 'format': {_TO_RESTORE}"
            )
        own = {"lock", f"format{TEMPORARY_SUFFIX}", *FILE_SYSTEM_NAMES}
        foreign = [name for name in names if name not in own]
        if foreign:
            raise UnknownFormatError(
                f"data directory {path} holds {foreign[0]!r} but no file 'format': it is not "
                "Headgate's; choose an empty directory with --data-dir"
            )
        write_file(fs, path, "format", [_FORMAT_LINE.encode()])
        return
    text = read_file(fs, f"{path}/format").decode("ascii", "replace")
    if not _FORMAT.fullmatch(text):
        raise UnknownFormatError(
            f"file 'format' of data directory {path} is damaged: its content is {text[:40]!r}; "
            f"{_TO_RESTORE}"
        )
    if text != _FORMAT_LINE:
        raise UnknownFormatError(
            f"data directory {path} has format {text.strip()!r}: this release knows "
            f"{_FORMAT_LINE.strip()!r}"
        )
