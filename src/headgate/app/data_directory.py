"""A broker's data directory: its layout, who owns it, and what wrote it.

    DIR/lock                held with flock while a broker runs
    DIR/format              one line, ``headgate-data <version>``
    DIR/metadata.sqlite3    what exists (headgate.metadata)
    DIR/log/                what it holds (headgate.ledger), with a lock and a format of its own
    DIR/telemetry-names.key once names in the telemetry were to be hashed (names_key)

The lock is taken before anything in the directory is looked at.
"""

from __future__ import annotations

from headgate.base.errors import StorageError
from headgate.fs import Fs
from headgate.fs.api import Lock
from headgate.ledger.directory import TEMPORARY_SUFFIX, read_file, write_file
from headgate.ledger.errors import DirectoryInUseError, UnknownFormatError

FORMAT_VERSION = 1
"""Grows when an older release could not use the directory."""

_FORMAT_LINE = f"headgate-data {FORMAT_VERSION}\n"


class DataDirectory:
    """A directory that this broker owns until :meth:`close`."""

    def __init__(self, path: str, lock: Lock) -> None:
        """For :meth:`open` only."""
        self.path = path
        self.log_path = f"{path}/log"
        self.metadata_path = f"{path}/metadata.sqlite3"
        self._lock = lock

    @classmethod
    def open(cls, fs: Fs, path: str) -> DataDirectory:
        """Own ``path``, which is made when missing. Blocks.

        Raises:
            DirectoryInUseError: another broker runs on it.
            UnknownFormatError: it is not Headgate's, or of a format that is not known.
            StorageError: it cannot be made, read or written.
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
        return cls(path, lock)

    def close(self) -> None:
        """Let others have it."""
        self._lock.release()


def _lock(fs: Fs, path: str) -> Lock:
    try:
        return fs.lock(f"{path}/lock")
    except BlockingIOError as error:
        raise DirectoryInUseError(
            f"data directory {path} is in use by another broker: stop that one, or choose another "
            "directory with --data-dir"
        ) from error


def _check_format(fs: Fs, path: str) -> None:
    names = fs.list_directory(path)
    if "format" not in names:
        foreign = [name for name in names if name not in ("lock", f"format{TEMPORARY_SUFFIX}")]
        if foreign:
            raise UnknownFormatError(
                f"data directory {path} holds {foreign[0]!r} but no file 'format': it is not "
                "Headgate's; choose an empty directory with --data-dir"
            )
        write_file(fs, path, "format", [_FORMAT_LINE.encode()])
        return
    text = read_file(fs, f"{path}/format").decode("ascii", "replace")
    if text != _FORMAT_LINE:
        raise UnknownFormatError(
            f"data directory {path} has format {text.strip()!r}: this release knows "
            f"{_FORMAT_LINE.strip()!r}"
        )
