"""A file system in memory that loses unsynced data in a power cut.

Each file keeps its visible bytes, the bytes at its last sync and the writes since. Each directory
keeps its names and its durable names. :meth:`MemFs.crash_clone` returns the disk after a power cut:
with synced data only, or also with a random part of the rest, torn at page boundaries.
"""

from __future__ import annotations

import errno
import functools
import posixpath
import random
from collections.abc import Sequence

from headgate.fs.api import Space

UNBOUNDED_BYTES = 1 << 60
"""The reported size of a disk without a capacity."""

PAGE_BYTES = 512
"""A power cut keeps or loses each aligned page of this size as a whole."""


class _Content:
    """The bytes of a file, of which zeros behind the last written byte take no memory."""

    __slots__ = ("_written", "size")

    def __init__(self, written: bytes | bytearray = b"", size: int = 0) -> None:
        self._written = bytearray(written)
        self.size = size

    def read(self, offset: int, size: int) -> bytes:
        stop = min(offset + size, self.size)
        piece = bytes(memoryview(self._written)[offset:stop])
        return piece + bytes(max(0, stop - offset - len(piece)))

    def put(self, offset: int, piece: bytes) -> None:
        if offset > len(self._written):
            self._written.extend(bytes(offset - len(self._written)))
        self._written[offset : offset + len(piece)] = piece
        self.size = max(self.size, offset + len(piece))

    def resize(self, size: int) -> None:
        del self._written[size:]
        self.size = size

    def copy(self) -> _Content:
        return _Content(self._written, self.size)


class _Inode:
    """A file's content, independent of its names."""

    __slots__ = ("allocated", "data", "holes", "synced", "unsynced")

    def __init__(self) -> None:
        self.data = _Content()
        self.synced = _Content()
        self.unsynced: list[tuple[int, bytes | None]] = []
        """The changes since the last sync: a sync repeats them, so it costs what was written and
        not what the file holds. None is a change of the size."""
        self.allocated = 0
        """Allocated bytes, punched pages included."""
        self.holes: set[int] = set()
        """Punched pages."""

    def write(self, offset: int, piece: bytes) -> None:
        self.data.put(offset, piece)
        self.unsynced.append((offset, piece))

    def resize(self, size: int) -> None:
        self.data.resize(size)
        self.unsynced.append((size, None))

    def is_hole(self, page: int) -> bool:
        """Whether a page that was punched is one still."""
        begin = page * PAGE_BYTES
        return begin < self.data.size and not any(self.data.read(begin, PAGE_BYTES))

    def sync(self) -> None:
        for offset, piece in self.unsynced:
            if piece is None:
                self.synced.resize(offset)
            else:
                self.synced.put(offset, piece)
        self.unsynced.clear()

    def after_crash(self, rng: random.Random | None) -> _Content:
        """The content after a power cut: only synced bytes, or with ``rng`` random pages of the
        rest."""
        kept = self.synced.copy()
        if rng is None:
            return kept
        for offset, data in self.unsynced:
            if data is None:
                if rng.random() < 0.5:
                    kept.resize(offset)
                continue
            at = 0
            while at < len(data):
                stop = min(len(data), at + PAGE_BYTES - (offset + at) % PAGE_BYTES)
                if rng.random() < 0.5:
                    kept.put(offset + at, data[at:stop])
                at = stop
        return kept


class MemFile:
    """An open file of a :class:`MemFs`."""

    __slots__ = ("_fs", "_inode", "_writable")

    def __init__(self, fs: MemFs, inode: _Inode, *, writable: bool) -> None:
        self._fs = fs
        self._inode = inode
        self._writable = writable

    def read_at(self, offset: int, size: int) -> bytes:
        return self._inode.data.read(offset, size)

    def write_at(self, offset: int, parts: Sequence[bytes]) -> None:
        """On a full disk, the bytes that fit are written."""
        self._may_write()
        data = b"".join(parts)
        room = self._fs._grow(self._inode, offset + len(data))
        taken = data if room is None else data[: max(0, room - offset)]
        if taken:
            self._inode.write(offset, taken)
        if room is not None:
            raise OSError(errno.ENOSPC, "no space left on device")

    def sync_data(self) -> None:
        self._inode.sync()

    def expect_random_reads(self) -> None:
        """No effect: memory has no read-ahead."""

    def allocate(self, size: int) -> None:
        self._may_write()
        if self._fs._grow(self._inode, size) is not None:
            raise OSError(errno.ENOSPC, "no space left on device")
        if size > self._inode.data.size:
            self._inode.resize(size)

    def truncate(self, size: int) -> None:
        self._may_write()
        if self._fs._grow(self._inode, size) is not None:
            raise OSError(errno.ENOSPC, "no space left on device")
        self._inode.allocated = size
        self._inode.holes = {page for page in self._inode.holes if page * PAGE_BYTES < size}
        self._inode.resize(size)

    def punch(self, offset: int, size: int) -> bool:
        """Holes stay until the file is truncated or emptied: the log never writes into a file
        with holes."""
        self._may_write()
        self._inode.write(offset, bytes(size))
        pages = range(-(-offset // PAGE_BYTES), (offset + size) // PAGE_BYTES)
        self._inode.holes.update(pages)
        return True

    def size(self) -> int:
        return self._inode.data.size

    def allocated_bytes(self) -> int:
        return max(self._inode.allocated - len(self._inode.holes) * PAGE_BYTES, 0)

    def names_count(self) -> int:
        return self._fs._names_count(self._inode)

    def close(self) -> None: ...

    def _may_write(self) -> None:
        if not self._writable:
            raise OSError(errno.EBADF, "the file was opened for reading")


class MemLock:
    """A lock in the set of locks of a :class:`MemFs`."""

    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class MemFs:
    """Files in memory, with written and durable content apart."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        """``capacity_bytes`` is the size of the disk, None without a bound. It may be changed."""
        self.capacity_bytes = capacity_bytes
        self._names: dict[str, dict[str, _Inode]] = {}
        self._durable: dict[str, dict[str, _Inode]] = {}
        self._locks: set[str] = set()

    def make_directory(self, path: str) -> None:
        """Directories are durable at once."""
        self._names.setdefault(_clean(path), {})
        self._durable.setdefault(_clean(path), {})

    def create(self, path: str, *, exclusive: bool = False) -> MemFile:
        directory, name = self._split(path)
        inode = directory.get(name)
        if exclusive and inode is not None:
            raise FileExistsError(errno.EEXIST, "file exists", path)
        if inode is None:
            inode = directory[name] = _Inode()
        file = MemFile(self, inode, writable=True)
        if inode.data.size:
            file.truncate(0)
        return file

    def open(self, path: str, *, writable: bool = False) -> MemFile:
        return MemFile(self, self._inode(path), writable=writable)

    def list_directory(self, path: str) -> list[str]:
        names = self._names.get(_clean(path))
        if names is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return sorted(names)

    def is_link(self, path: str) -> bool:  # noqa: ARG002
        return False

    def rename(self, source: str, target: str) -> None:
        inode = self._inode(source)
        source_names, source_name = self._split(source)
        target_names, target_name = self._split(target)
        target_names[target_name] = inode
        del source_names[source_name]

    def link(self, source: str, target: str) -> bool:
        inode = self._inode(source)
        names, name = self._split(target)
        if name in names:
            raise FileExistsError(errno.EEXIST, "file exists", target)
        names[name] = inode
        return True

    def remove(self, path: str) -> None:
        self._inode(path)
        directory, name = self._split(path)
        del directory[name]

    def sync_directory(self, path: str) -> None:
        self._durable[_clean(path)] = dict(self._names[_clean(path)])

    def space(self, path: str) -> Space:
        """Free and total space; without a capacity a very large disk."""
        if _clean(path) not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        size_bytes = UNBOUNDED_BYTES if self.capacity_bytes is None else self.capacity_bytes
        return Space(max(0, size_bytes - self.used_bytes()), size_bytes)

    def lock(self, path: str) -> MemLock:
        path = _clean(path)
        if path in self._locks:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked by another", path)
        directory, name = self._split(path)
        directory.setdefault(name, _Inode())
        self._locks.add(path)
        return MemLock(self._locks, path)

    def crash_clone(self, seed: int | None = None) -> MemFs:
        """A copy of the disk after a power cut now, without locks.

        Without a seed it has synced data only. With one, a seeded coin decides about each unsynced
        page and each unsynced name.
        """
        rng = None if seed is None else random.Random(seed)
        clone = MemFs(self.capacity_bytes)
        copies: dict[int, _Inode] = {}
        for path, names in sorted(self._names.items()):
            kept = dict(self._durable[path])
            if rng is not None:
                for name in sorted(set(kept) | set(names)):
                    if kept.get(name) is names.get(name) or rng.random() < 0.5:
                        continue
                    if name in names:
                        kept[name] = names[name]
                    else:
                        del kept[name]
            clone._names[path] = {}
            for name, inode in sorted(kept.items()):
                copy = copies.get(id(inode))
                if copy is None:
                    copy = copies[id(inode)] = _Inode()
                    copy.synced = inode.after_crash(rng)
                    copy.data = copy.synced.copy()
                    copy.allocated = copy.synced.size
                    copy.holes = {page for page in inode.holes if copy.is_hole(page)}
                clone._names[path][name] = copy
            clone._durable[path] = dict(clone._names[path])
        return clone

    def used_bytes(self) -> int:
        """Bytes of the capacity that named files take."""
        inodes = {id(inode): inode for names in self._names.values() for inode in names.values()}
        return sum(inode.allocated - len(inode.holes) * PAGE_BYTES for inode in inodes.values())

    def _names_count(self, inode: _Inode) -> int:
        return sum(one is inode for names in self._names.values() for one in names.values())

    def _grow(self, inode: _Inode, size: int) -> int | None:
        """Reserve capacity for a file of ``size`` bytes; returns the size that fits if not all
        does."""
        more = size - inode.allocated
        if more <= 0:
            return None
        if self.capacity_bytes is not None:
            room = max(0, self.capacity_bytes - self.used_bytes())
            if more > room:
                inode.allocated += room
                return inode.allocated
        inode.allocated = size
        return None

    def _split(self, path: str) -> tuple[dict[str, _Inode], str]:
        directory, name = _parts(path)
        names = self._names.get(directory)
        if names is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        return names, name

    def _inode(self, path: str) -> _Inode:
        directory, name = self._split(path)
        inode = directory.get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return inode


@functools.lru_cache(maxsize=4_096)
def _clean(path: str) -> str:
    return posixpath.normpath(path)


@functools.lru_cache(maxsize=4_096)
def _parts(path: str) -> tuple[str, str]:
    return posixpath.split(_clean(path))
