"""The disk by itself: what one write and fdatasync costs, without any server."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

FILE_BYTES = 256 * 1024 * 1024

READ_BYTES = 256 * 1024
"""What a broker reads of a backlog at a time."""


class RawDisk:
    """A preallocated file that is appended to, each write made durable by itself."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / "raw.data", os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(self._fd, 0, FILE_BYTES)
        os.fsync(self._fd)
        self._offset = 0

    def commit(self, data: bytes) -> float:
        """Write ``data`` and make it durable; return the seconds that it took."""
        if self._offset + len(data) > FILE_BYTES:
            self._offset = 0
        began_s = time.perf_counter()
        os.pwrite(self._fd, data, self._offset)
        os.fdatasync(self._fd)
        self._offset += len(data)
        return time.perf_counter() - began_s

    def commits(self, data: bytes, duration_s: float) -> list[float]:
        """One commit after the other for so long; the seconds that each took."""
        end_s = time.perf_counter() + duration_s
        taken_s = []
        while time.perf_counter() < end_s:
            taken_s.append(self.commit(data))
        return taken_s

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def forget_pages(path: Path) -> None:
    """Have the kernel drop what it keeps of a file, so that reading it means the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def read_forever(path: Path, bytes_per_s: float) -> None:
    """Read a file in rounds at that rate, in pieces like a broker's, without read-ahead."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    offset = 0
    while True:
        data = os.pread(descriptor, READ_BYTES, offset)
        os.posix_fadvise(descriptor, offset, READ_BYTES, os.POSIX_FADV_DONTNEED)
        offset = offset + READ_BYTES if len(data) == READ_BYTES else 0
        time.sleep(READ_BYTES / bytes_per_s)


def main() -> None:
    """A process that reads. Arguments: file, bytes a second."""
    path, bytes_per_s = sys.argv[1:]
    print("ready at port 0", flush=True)
    read_forever(Path(path), float(bytes_per_s))
