"""A file system that fails on demand, for tests.

:class:`FaultyFs` wraps another file system and calls a *plan* before each operation. The plan may
do nothing, raise an exception (an :class:`OSError`, or one that ends a simulated process), or, for
a write, return the number of bytes that fit before the disk is full.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.fs.api import File, Fs, Lock, Space


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on the disk, before it happens."""

    index: int
    """Its number, counted from 0 since the :class:`FaultyFs` was made."""
    kind: str
    """``read``, ``write``, ``sync``, ``allocate``, ``truncate``, ``punch``, ``create``,
    ``open``, ``link``, ``rename``, ``remove``, ``sync_directory`` or ``lock``."""
    path: str
    """The file or directory; the source of a link or a rename."""
    size: int
    """Bytes to read, write, allocate, punch or truncate to; else 0."""


Plan = Callable[[Operation], int | None]
"""A function called before each operation: it returns None, or for a write the bytes that fit."""


def _nothing(_operation: Operation) -> None:
    return None


class FaultyFs:
    """A file system with planned faults."""

    def __init__(self, inner: Fs, plan: Plan = _nothing) -> None:
        """``plan`` may be replaced at any time: set the attribute ``plan``."""
        self.inner = inner
        self.plan = plan
        self.operations_count = 0

    def make_directory(self, path: str) -> None:
        """Passed through without a fault."""
        self.inner.make_directory(path)

    def create(self, path: str, *, exclusive: bool = False) -> FaultyFile:
        self._ask("create", path)
        return FaultyFile(self, self.inner.create(path, exclusive=exclusive), path)

    def open(self, path: str, *, writable: bool = False) -> FaultyFile:
        self._ask("open", path)
        return FaultyFile(self, self.inner.open(path, writable=writable), path)

    def list_directory(self, path: str) -> list[str]:
        """Passed through without a fault."""
        return self.inner.list_directory(path)

    def is_link(self, path: str) -> bool:
        """Passed through without a fault."""
        return self.inner.is_link(path)

    def rename(self, source: str, target: str) -> None:
        self._ask("rename", source)
        self.inner.rename(source, target)

    def link(self, source: str, target: str) -> bool:
        self._ask("link", source)
        return self.inner.link(source, target)

    def remove(self, path: str) -> None:
        self._ask("remove", path)
        self.inner.remove(path)

    def sync_directory(self, path: str) -> None:
        self._ask("sync_directory", path)
        self.inner.sync_directory(path)

    def space(self, path: str) -> Space:
        """Passed through without a fault."""
        return self.inner.space(path)

    def lock(self, path: str) -> Lock:
        self._ask("lock", path)
        return self.inner.lock(path)

    def _ask(self, kind: str, path: str, size: int = 0) -> int | None:
        operation = Operation(self.operations_count, kind, path, size)
        self.operations_count += 1
        return self.plan(operation)


class FaultyFile:
    """An open file of a :class:`FaultyFs`."""

    __slots__ = ("_fs", "_inner", "_path")

    def __init__(self, fs: FaultyFs, inner: File, path: str) -> None:
        self._fs = fs
        self._inner = inner
        self._path = path

    def read_at(self, offset: int, size: int) -> bytes:
        self._fs._ask("read", self._path, size)
        return self._inner.read_at(offset, size)

    def write_at(self, offset: int, parts: Sequence[bytes]) -> None:
        kept = self._fs._ask("write", self._path, sum(map(len, parts)))
        if kept is None:
            self._inner.write_at(offset, parts)
            return
        self._inner.write_at(offset, [b"".join(parts)[:kept]])
        raise OSError(errno.ENOSPC, "no space left on device", self._path)

    def sync_data(self) -> None:
        self._fs._ask("sync", self._path)
        self._inner.sync_data()

    def expect_random_reads(self) -> None:
        """Passed through without a fault."""
        self._inner.expect_random_reads()

    def allocate(self, size: int) -> None:
        self._fs._ask("allocate", self._path, size)
        self._inner.allocate(size)

    def truncate(self, size: int) -> None:
        self._fs._ask("truncate", self._path, size)
        self._inner.truncate(size)

    def punch(self, offset: int, size: int) -> bool:
        self._fs._ask("punch", self._path, size)
        return self._inner.punch(offset, size)

    def size(self) -> int:
        """Passed through without a fault."""
        return self._inner.size()

    def allocated_bytes(self) -> int:
        """Passed through without a fault."""
        return self._inner.allocated_bytes()

    def names_count(self) -> int:
        """Passed through without a fault."""
        return self._inner.names_count()

    def close(self) -> None:
        """Passed through without a fault."""
        self._inner.close()
