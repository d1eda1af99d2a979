"""The interface to the file system for everything durable.

Three implementations share one behaviour suite: :class:`headgate.fs.OsFs` (the machine's),
:class:`headgate.fs.MemFs` (memory that forgets in a power cut what was not synced) and
:class:`headgate.fs.FaultyFs` (wraps another one and fails on demand).

Rules of the interface:

* every call blocks, and failures are plain :class:`OSError` with an ``errno``;
* a file's bytes and size are durable after :meth:`File.sync_data`;
* a file's *name* (created, renamed, removed) is durable after :meth:`Fs.sync_directory`;
* ``rename`` replaces its target atomically.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""The ``errno`` of a call that found no free file descriptor."""


class Space(NamedTuple):
    """The file system that a directory is on."""

    free_bytes: int
    """What this process may still write."""
    size_bytes: int
    """What it holds in all."""


class Lock(Protocol):
    """A lock on a data directory, held until released or until its process ends."""

    def release(self) -> None:
        """Let others have it. A second call does nothing."""


class File(Protocol):
    """One open file. All offsets and sizes are in bytes."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset``: fewer only at the end of the file."""

    def expect_random_reads(self) -> None:
        """Say that reads bring what is asked for and nothing beyond: no read-ahead."""

    def write_at(self, offset: int, parts: Sequence[bytes]) -> None:
        """Write all ``parts``, one after the other, from ``offset``.

        When it raises, any part of it may have been written.
        """

    def sync_data(self) -> None:
        """Make the file's bytes and size durable. An error is final: never retry it."""

    def allocate(self, size: int) -> None:
        """Reserve room so that the file is at least ``size`` bytes long, reading as zeros."""

    def truncate(self, size: int) -> None:
        """Cut or lengthen the file to exactly ``size`` bytes."""

    def punch(self, offset: int, size: int) -> bool:
        """Give back the room of a range, which reads as zeros from then on; the file stays as long
        as it is. False where the file system cannot do that: then nothing happens."""

    def size(self) -> int:
        """The file's length now."""

    def close(self) -> None:
        """Close it. A second call does nothing."""


class Fs(Protocol):
    """A tree of directories and files. Paths are strings with ``/`` between parts."""

    def make_directory(self, path: str) -> None:
        """Make ``path`` and its missing parents; nothing happens when it is there."""

    def create(self, path: str) -> File:
        """Create an empty file for reading and writing; an existing one is emptied."""

    def open(self, path: str, *, writable: bool = False) -> File:
        """Open an existing file. Raises :class:`FileNotFoundError`."""

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in the same directory, replacing what had it."""

    def remove(self, path: str) -> None:
        """Remove a file's name. Open files stay readable."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""

    def space(self, path: str) -> Space:
        """How much room the file system has that ``path`` is on."""

    def lock(self, path: str) -> Lock:
        """Lock the file ``path`` (made when missing).

        Raises :class:`BlockingIOError` when somebody, this process included, holds it.
        """
