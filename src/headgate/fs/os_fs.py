"""The operating system's file system (POSIX)."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Sequence

from headgate.base.units import STAT_BLOCK_BYTES
from headgate.fs.api import NO_FILES, Space
from headgate.fs.spare_files import SpareFiles

_IOV_PARTS_MAX = min(1024, os.sysconf("SC_IOV_MAX"))
"""Most parts of one ``pwritev``."""
_JOIN_PART_BYTES_MAX = 16 * 1024
"""Parts below this average size are joined into one write. Measured: 4 times as fast as ``pwritev``
for 2,000 parts of 64 bytes, 1.6 times for 1 KiB, and one system call."""
_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_NO_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EMLINK, errno.EXDEV}
"""FAT and some network file systems have no hard links, and say so with ``EPERM``."""


DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
"""The broker's user alone may read messages and metadata."""

_PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01
"""``FALLOC_FL_PUNCH_HOLE`` and ``FALLOC_FL_KEEP_SIZE`` of Linux."""

_READ = os.O_CLOEXEC | os.O_NONBLOCK
"""Opening a pipe in the place of a file does not wait for its writer; it is the same for files."""
_WRITTEN = _READ | os.O_NOFOLLOW
"""A directory may come from elsewhere, as a damaged one or an unpacked archive does: a link in it
leads to a file that is none of its own."""
_NO_LINK = "a symbolic link is in the place of a file, and is not written through"
_NO_FILE = "what is in the place of a file is none"


def _find_fallocate() -> Callable[[int, int, int, int], int] | None:
    """Linux's ``fallocate``, which Python lacks; None on other systems."""
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate64", None)
    if function is None:
        function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return function


_fallocate = _find_fallocate()


def _regular(fd: int, path: str) -> int:
    """``fd``, if it is that of a file; closes it otherwise."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, _NO_FILE, path)


class OsFile:
    """One open file descriptor."""

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path

    def read_at(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size:
            data = os.pread(self._fd, size - got, offset + got)
            if not data:
                break
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def expect_random_reads(self) -> None:
        """A hint to the kernel, if the system has it."""
        if hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)

    def write_at(self, offset: int, parts: Sequence[bytes]) -> None:
        total = sum(map(len, parts))
        if total < _JOIN_PART_BYTES_MAX * len(parts):
            data = b"".join(parts)
            written = os.pwrite(self._fd, data, offset)
            if written != total:
                self._write_rest(offset + written, data[written:])
            return
        for start in range(0, len(parts), _IOV_PARTS_MAX):
            group = parts[start : start + _IOV_PARTS_MAX]
            wanted = sum(map(len, group))
            written = os.pwritev(self._fd, group, offset)
            if written != wanted:
                self._write_rest(offset + written, b"".join(group)[written:])
            offset += wanted

    def _write_rest(self, offset: int, rest: bytes) -> None:
        """Finish a short write: the next call raises its cause, if there is one."""
        while rest:
            written = os.pwrite(self._fd, rest, offset)
            if written == 0:
                raise OSError(errno.EIO, "the disk accepts no bytes", self._path)
            offset += written
            rest = rest[written:]

    def sync_data(self) -> None:
        os.fdatasync(self._fd)

    def allocate(self, size: int) -> None:
        """Falls back to a longer, sparse file if the file system cannot reserve room."""
        try:
            os.posix_fallocate(self._fd, 0, size)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            if os.fstat(self._fd).st_size < size:
                os.ftruncate(self._fd, size)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def punch(self, offset: int, size: int) -> bool:
        if _fallocate is None:
            return False
        if _fallocate(self._fd, _PUNCH_HOLE_KEEP_SIZE, offset, size) == 0:
            return True
        code = ctypes.get_errno()
        if code in _UNSUPPORTED:
            return False
        raise OSError(code, os.strerror(code), self._path)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def allocated_bytes(self) -> int:
        return os.fstat(self._fd).st_blocks * STAT_BLOCK_BYTES

    def names_count(self) -> int:
        return os.fstat(self._fd).st_nlink

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        """Close it with the last reference: readers share files."""
        self.close()


class OsLock:
    """A ``flock`` on a file, which the kernel releases when the process ends."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class OsFs:
    """The operating system's files."""

    __slots__ = ("_spare",)

    def __init__(self, spare: SpareFiles | None = None) -> None:
        """``spare`` are descriptors for writing when the process has no others."""
        self._spare = spare

    def make_directory(self, path: str) -> None:
        os.makedirs(path, DIRECTORY_MODE, exist_ok=True)

    def create(self, path: str, *, exclusive: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if exclusive else os.O_TRUNC)
        return OsFile(self._open(path, flags | _WRITTEN), path)

    def open(self, path: str, *, writable: bool = False) -> OsFile:
        if not writable:
            return OsFile(_regular(os.open(path, os.O_RDONLY | _READ), path), path)
        return OsFile(self._open(path, os.O_RDWR | _WRITTEN), path)

    def _open(self, path: str, flags: int) -> int:
        spare = self._spare
        while True:
            try:
                fd = os.open(path, flags, FILE_MODE)
            except OSError as error:
                if error.errno == errno.ELOOP and os.path.islink(path):
                    raise OSError(errno.ELOOP, _NO_LINK, path) from error
                if error.errno not in NO_FILES or spare is None or not spare.give():
                    raise
            else:
                if spare is not None:
                    spare.keep()
                return fd if flags & os.O_DIRECTORY else _regular(fd, path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def is_link(self, path: str) -> bool:
        return os.path.islink(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def link(self, source: str, target: str) -> bool:
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
        return True

    def remove(self, path: str) -> None:
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        fd = self._open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def space(self, path: str) -> Space:
        found = os.statvfs(path)
        return Space(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)

    def lock(self, path: str) -> OsLock:
        fd = self._open(path, os.O_RDWR | os.O_CREAT | _WRITTEN)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(fd)
            raise
        return OsLock(fd)
