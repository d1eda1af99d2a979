"""The log's directory: its lock, its format version, atomic file writes.

An open log holds a ``flock`` on the file ``lock``. The file ``format`` holds one line,
``headgate-log <version>``. The version changes when an older release could not read the data. This
release also opens the version before, and rewrites the line once it has found the log sound.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
from collections.abc import Iterator
from typing import Final

from headgate.base.units import GIB, MIB
from headgate.fs.api import File, Fs, Lock
from headgate.ledger.errors import DirectoryInUseError, UnknownFormatError
from headgate.ledger.format.records import segment_of_name

logger = logging.getLogger("headgate.ledger")

FORMAT_VERSION: Final = 3
_ADOPTED_VERSION = 2
"""The format before this one: all its files are readable as they are."""
_PROGRAM = "headgate-log"
FORMAT_NAME: Final = "format"
_LOCK_NAME = "lock"
READ_BYTES_MAX: Final = 2 * GIB
"""Twice the longest segment. A longer file that takes less room on the disk has a length that
damage or a stranger made, and may take more memory than there is. A checkpoint may be longer."""
PIECE_BYTES: Final = 8 * MIB
"""Bytes of a file that are written between two syncs: a checkpoint may have hundreds of megabytes,
and a commit waits as long as the disk takes for a piece."""
_ADOPTED_TEXT = f"{_PROGRAM} {_ADOPTED_VERSION}\n"
TEMPORARY_SUFFIX: Final = ".tmp"
METADATA_COPY_NAME: Final = "metadata.copy"
"""A copy of the metadata, whose content the log does not know (headgate.app.metadata_copy)."""
_TO_RESTORE: Final = (
    f"put it back from a backup, or make it anew with the one line '{_PROGRAM} {FORMAT_VERSION}' "
    "if a release like this one wrote the log"
)


def lock_directory(fs: Fs, directory: str) -> Lock:
    """Create the directory if it is missing, lock it and check its format.

    Raises :class:`DirectoryInUseError` or :class:`UnknownFormatError`.
    """
    fs.make_directory(directory)
    try:
        lock = fs.lock(f"{directory}/{_LOCK_NAME}")
    except BlockingIOError as error:
        raise DirectoryInUseError(
            f"data directory {directory} is in use by another process; "
            "stop it or choose another directory"
        ) from error
    try:
        _check_format(fs, directory)
    except BaseException:
        lock.release()
        raise
    return lock


def write_file(fs: Fs, directory: str, name: str, parts: list[bytes]) -> None:
    """Write a file durably and atomically: after a crash it is whole or absent.

    Raises :class:`OSError`. The file that was there before then stays, unless only the sync of the
    directory failed, and no temporary file does: on a full disk its room may be the last.
    """
    file = GrowingFile(fs, directory, name)
    try:
        file.append(parts)
        file.finish()
    except OSError:
        file.discard()
        raise
    fs.sync_directory(directory)


class GrowingFile:
    """A file that is written a part at a time, and gets its name when it is whole. It is for what
    should not be in memory as a whole. Until then it is a temporary file, which the next start
    removes. It is open from its first part until :meth:`finish` or :meth:`discard`."""

    def __init__(self, fs: Fs, directory: str, name: str) -> None:
        self._fs = fs
        self._path = f"{directory}/{name}"
        self._temporary = f"{self._path}{TEMPORARY_SUFFIX}"
        self._size_bytes = 0
        self._file: File | None = None

    def append(self, parts: list[bytes]) -> None:
        """Write more, durably. Raises :class:`OSError`: then :meth:`discard` it."""
        if self._file is None:
            self._file = self._fs.create(self._temporary)
        for piece in _pieces(parts):
            self._file.write_at(self._size_bytes, piece)
            self._file.sync_data()
            self._size_bytes += sum(map(len, piece))

    def finish(self) -> None:
        """Give the file its name; the directory is not synced. Raises :class:`OSError`: then
        :meth:`discard` it."""
        self._fs.rename(self._temporary, self._path)
        self._close()

    def discard(self) -> None:
        """Close and remove what was written, unless it has its name."""
        if self._file is not None:
            self._close()
            with contextlib.suppress(OSError):
                self._fs.remove(self._temporary)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _pieces(parts: list[bytes]) -> Iterator[list[bytes]]:
    """The parts in groups of about :data:`PIECE_BYTES`; one group, if there are no parts."""
    start = size_bytes = 0
    for at, part in enumerate(parts):
        if size_bytes >= PIECE_BYTES:
            yield parts[start:at]
            start, size_bytes = at, 0
        size_bytes += len(part)
    yield parts[start:]


def read_file(fs: Fs, path: str) -> bytes:
    """The content of a file.

    Raises :class:`OSError`, also if it is longer than :data:`READ_BYTES_MAX` and takes less room
    than its length.
    """
    file = fs.open(path)
    try:
        return file.read_at(0, size_to_read(file, path))
    finally:
        file.close()


def size_to_read(file: File, path: str) -> int:
    """The bytes of a file that is to be read. Raises as :func:`read_file`."""
    size_bytes = file.size()
    if size_bytes > READ_BYTES_MAX and file.allocated_bytes() < size_bytes:
        what = f"{size_bytes:,} bytes, where {READ_BYTES_MAX:,} are the most"
        raise OSError(errno.EFBIG, what, path)
    return size_bytes


def file_size(fs: Fs, path: str) -> int:
    """The bytes of a file."""
    file = fs.open(path)
    try:
        return file.size()
    finally:
        file.close()


def _check_format(fs: Fs, directory: str) -> None:
    names = fs.list_directory(directory)
    if FORMAT_NAME not in names:
        if any(segment_of_name(name) is not None for name in names):
            raise UnknownFormatError(
                f"log directory {directory} lacks its file {FORMAT_NAME!r}: {_TO_RESTORE}"
            )
        known = {_LOCK_NAME, FORMAT_NAME + TEMPORARY_SUFFIX}
        foreign = [name for name in names if name not in known]
        if foreign:
            raise UnknownFormatError(
                f"data directory {directory} holds {foreign[0]!r} but no file {FORMAT_NAME!r}: "
                "it is not Headgate's; choose an empty directory"
            )
        line = f"{_PROGRAM} {FORMAT_VERSION}\n".encode()
        write_file(fs, directory, FORMAT_NAME, [line])
        return
    text = _format_text(fs, directory)
    if not re.fullmatch(rf"{_PROGRAM} \d+\n", text):
        raise UnknownFormatError(
            f"file {FORMAT_NAME!r} of log directory {directory} is damaged: it says "
            f"{text[:40]!r}; {_TO_RESTORE}"
        )
    if text not in {f"{_PROGRAM} {FORMAT_VERSION}\n", _ADOPTED_TEXT}:
        raise UnknownFormatError(
            f"data directory {directory} has format {text.strip()!r}; "
            f"this release reads {_PROGRAM} {FORMAT_VERSION} and {_ADOPTED_VERSION}"
        )


def is_adopted(fs: Fs, directory: str) -> bool:
    """Whether the directory has this release's format rather than the one before."""
    return _format_text(fs, directory) != _ADOPTED_TEXT


def adopt(fs: Fs, directory: str) -> None:
    """Change a directory of the format before to this release's, and log that.

    Its files stay as they are. New files have the new format, so older releases refuse it from
    here on.
    """
    if is_adopted(fs, directory):
        return
    line = f"{_PROGRAM} {FORMAT_VERSION}\n".encode()
    write_file(fs, directory, FORMAT_NAME, [line])
    logger.warning(
        "%s had format %d of an older release and has format %d from now on, which that release "
        "refuses",
        directory,
        _ADOPTED_VERSION,
        FORMAT_VERSION,
    )


def _format_text(fs: Fs, directory: str) -> str:
    return read_file(fs, f"{directory}/{FORMAT_NAME}").decode("ascii", "replace")
