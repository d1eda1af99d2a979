"""The file system interface of all durable storage.

Three implementations pass one conformance suite: :class:`headgate.fs.OsFs` (the operating
system's), :class:`headgate.fs.MemFs` (in memory, loses unsynced data in a power cut) and
:class:`headgate.fs.FaultyFs` (wraps another one and fails on demand).

Rules of the interface:

* every call blocks and raises :class:`OSError` with an ``errno`` on failure;
* a file's bytes and size are durable after :meth:`File.sync_data`;
* a file's *name* (created, linked, renamed, removed) is durable after :meth:`Fs.sync_directory`;
* ``rename`` replaces its target atomically.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Error numbers of a process, or system, without free file descriptors."""


FILE_SYSTEM_NAMES: Final = frozenset({"lost+found"})
"""What a new file system has at its root: a directory with nothing else is empty."""


class Space(NamedTuple):
    """The room on a file system."""

    free_bytes: int
    """Bytes that this process may still write."""
    size_bytes: int
    """Capacity of the file system."""


class Lock(Protocol):
    """A lock on a data directory, held until released or until its process ends."""

    def release(self) -> None:
        """Release it. A second call does nothing."""


class File(Protocol):
    """One open file. All offsets and sizes are in bytes."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Read ``size`` bytes from ``offset``; fewer only at the end of the file."""

    def expect_random_reads(self) -> None:
        """Switch the kernel's read-ahead off for this file, where it can be."""

    def write_at(self, offset: int, parts: Sequence[bytes]) -> None:
        """Write all ``parts``, one after the other, from ``offset``.

        If it raises, any part of the bytes may have been written.
        """

    def sync_data(self) -> None:
        """Make the file's bytes and size durable. An error is final: never retry."""

    def allocate(self, size: int) -> None:
        """Reserve room for ``size`` bytes; new bytes read as zeros."""

    def truncate(self, size: int) -> None:
        """Set the file's length to ``size`` bytes."""

    def punch(self, offset: int, size: int) -> bool:
        """Punch a hole: free the room of a range, which then reads as zeros. The length stays.

        False, without effect, if the file system cannot do that.
        """

    def size(self) -> int:
        """The file's length."""

    def allocated_bytes(self) -> int:
        """The room that the file takes on the disk: less than its length if it has holes."""

    def names_count(self) -> int:
        """How many names (hard links) the file has."""

    def close(self) -> None:
        """Close it. A second call does nothing."""


class Fs(Protocol):
    """A tree of directories and files. Paths are strings with ``/`` between parts."""

    def make_directory(self, path: str) -> None:
        """Create ``path`` and its missing parents, unless it exists."""

    def create(self, path: str, *, exclusive: bool = False) -> File:
        """Create an empty file for reading and writing; an existing one is emptied.

        Raises :class:`FileExistsError` if ``exclusive`` and the name exists.
        """

    def open(self, path: str, *, writable: bool = False) -> File:
        """Open an existing file. Raises :class:`FileNotFoundError`."""

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def is_link(self, path: str) -> bool:
        """Whether ``path`` is a symbolic link. :meth:`list_directory` follows one; whoever removes
        all files of a directory asks before."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file within its directory; replaces an existing target."""

    def link(self, source: str, target: str) -> bool:
        """Give a file a second name in its directory (a hard link).

        False, without effect, if the file system cannot do that. Raises :class:`FileExistsError` if
        ``target`` exists.
        """

    def remove(self, path: str) -> None:
        """Remove a file's name. Open files stay readable."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""

    def space(self, path: str) -> Space:
        """The room on the file system of ``path``."""

    def lock(self, path: str) -> Lock:
        """Lock the file ``path``, which is created if it is missing.

        Raises :class:`BlockingIOError` if a process, this one included, holds the lock.
        """
