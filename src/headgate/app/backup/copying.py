"""Copies one file, at a bounded rate, and returns the checksum of what it copied."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from headgate.app.backup.manifest import BackupError
from headgate.base.units import KIB, MIB
from headgate.fs import Fs

CHUNK_BYTES: Final = 256 * KIB
"""Bytes that are read at once."""
SYNC_BYTES: Final = MIB
"""Bytes between two syncs: a sync of a whole segment would hold up the commits of a broker on the
same disk for as long as it takes to write that (decision 0043)."""
HOLE_BYTES: Final = 4 * KIB
"""A block of this size without any set bit becomes a hole."""
_ZEROS = bytes(HOLE_BYTES)
SLEEP_S_MAX: Final = 0.5
"""Longest pause between two calls of ``tick``."""


class Pace:
    """Holds a copy to a rate and reports how far it is."""

    def __init__(
        self,
        bytes_per_s: float,
        now_s: Callable[[], float],
        sleep: Callable[[float], None],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """``bytes_per_s`` is 0 for no bound. ``tick`` runs after each chunk, and at least every
        half second during a pause."""
        self._bytes_per_s = bytes_per_s
        self._now_s = now_s
        self._sleep = sleep
        self.tick = tick
        self._free_at_s = now_s()

    def spent(self, size_bytes: int) -> None:
        """Note that this many bytes were read, and wait until more may be."""
        self.tick()
        if not self._bytes_per_s:
            return
        now_s = self._now_s()
        self._free_at_s = max(self._free_at_s, now_s) + size_bytes / self._bytes_per_s
        while (left_s := self._free_at_s - now_s) > 0:
            self._sleep(min(left_s, SLEEP_S_MAX))
            self.tick()
            now_s = self._now_s()


def copy_file(
    fs: Fs,
    source: str,
    target: str,
    size_bytes: int,
    pace: Pace,
    progress: Callable[[int], None] = lambda _: None,
) -> str:
    """Copy the first ``size_bytes`` of ``source`` durably into the new file ``target``. Returns
    the SHA-256 of the copy in hexadecimal digits. Blocks.

    Blocks of zeros become holes. ``progress`` gets the bytes of each step. The name ``target`` is
    durable once the caller synced its directory.

    Raises:
        BackupError: the source is shorter than that.
        OSError: a file cannot be read or written.
    """
    digest = hashlib.sha256()
    reader = fs.open(source)
    try:
        writer = fs.create(target)
        try:
            at = 0
            while at < size_bytes:
                with _path_in_errors(source):
                    data = reader.read_at(at, min(CHUNK_BYTES, size_bytes - at))
                if not data:
                    raise BackupError(f"{source} ends at {at:,} of {size_bytes:,} bytes")
                digest.update(data)
                with _path_in_errors(target):
                    for start, end in set_ranges(data):
                        writer.write_at(at + start, [data[start:end]])
                    if at // SYNC_BYTES != (at + len(data)) // SYNC_BYTES:
                        writer.sync_data()
                at += len(data)
                progress(len(data))
                pace.spent(len(data))
            with _path_in_errors(target):
                writer.truncate(size_bytes)
                writer.sync_data()
        finally:
            writer.close()
    finally:
        reader.close()
    return digest.hexdigest()


@contextmanager
def _path_in_errors(path: str) -> Iterator[None]:
    """Name the file in an error of the disk, which knows only its descriptor."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def sha256_of(
    fs: Fs, path: str, pace: Pace, progress: Callable[[int], None] = lambda _: None
) -> str:
    """The SHA-256 of a file in hexadecimal digits. Blocks. Raises :class:`OSError`."""
    digest, at = hashlib.sha256(), 0
    file = fs.open(path)
    try:
        while True:
            with _path_in_errors(path):
                data = file.read_at(at, CHUNK_BYTES)
            if not data:
                break
            digest.update(data)
            at += len(data)
            progress(len(data))
            pace.spent(len(data))
    finally:
        file.close()
    return digest.hexdigest()


def set_ranges(data: bytes) -> list[tuple[int, int]]:
    """The ranges of ``data`` beside its blocks of zeros, in order."""
    found: list[tuple[int, int]] = []
    for start in range(0, len(data), HOLE_BYTES):
        block = data[start : start + HOLE_BYTES]
        if block == _ZEROS[: len(block)]:
            continue
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], start + len(block))
        else:
            found.append((start, start + len(block)))
    return found
