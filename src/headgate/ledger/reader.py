"""Fetches one extent of a segment and decodes the wanted entries in it.

The event loop plans a read from the index (read_planner.py). A reader thread fetches the bytes; it
blocks, and barely needs the interpreter. The event loop then decodes them a slice at a time, and
checks each body against its CRC32C.
"""

from __future__ import annotations

import errno
import threading
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate.base.errors import CorruptionError, StorageError
from headgate.fs.api import NO_FILES, File, Fs
from headgate.ledger.format.records import (
    CRC_END,
    ENTRY,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_ENTRY,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    crc32c,
    crc32c_extend,
    segment_name,
)
from headgate.ledger.index.stored_run import file_id, segment_of_file, version_of_file

_OPEN_FILES_MAX = 64


@dataclass(slots=True)
class ReadPlan:
    """One planned read; :class:`headgate.ledger.read_planner.ReadPlanner` creates it."""

    topic_number: int
    segment: int
    version: int
    """The version of the segment's file; see :class:`headgate.ledger.index.state.SegmentInfo`."""
    offset: int
    """Offset of the extent in its segment."""
    size_bytes: int
    """Length of the extent if entries of other topics are wanted too."""
    needed_bytes: int
    """Length that the planned entries alone need."""
    first_ordinal: int
    count: int
    """Planned entries of ``topic_number``, from ``first_ordinal`` on."""
    offsets: array[int]
    sizes: list[int]
    wanted_topics: set[int] = field(default_factory=set)
    """Other topics whose entries in the extent are decoded as well."""

    @property
    def others(self) -> set[int]:
        """The wanted topics without its own."""
        return self.wanted_topics - {self.topic_number}


class LogReader:
    """Reads planned extents. Thread-safe."""

    def __init__(self, fs: Fs, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._files: dict[tuple[int, int], File] = {}
        """Open files by segment and version, the one used last at the end."""
        self._versions: dict[int, int] = {}
        """The present version of each segment whose file was replaced."""
        self._before: dict[tuple[int, int], File] = {}
        """Replaced files that topics are still read from."""
        self._lock = threading.Lock()

    def fetch(self, plan: ReadPlan) -> bytes:
        """The needed bytes of the planned extent. Blocks.

        Raises :class:`StorageError` if the disk cannot be read.
        """
        size = plan.size_bytes if plan.others else plan.needed_bytes
        return self.read(file_id(plan.segment, plan.version), plan.offset, size)

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Bytes of a segment's file; fewer only at its end. Blocks. ``file`` is its
        :func:`headgate.ledger.index.stored_run.file_id`.

        Raises :class:`StorageError` if the disk cannot be read.
        """
        segment, version = segment_of_file(file), version_of_file(file)
        try:
            return self._file(segment, version).read_at(offset, size)
        except OSError as error:
            raise StorageError(
                f"reading {segment_name(segment)} at {offset} failed: {error}", retryable=True
            ) from error

    def forget(self, segment: int) -> None:
        """Close the file of a deleted segment."""
        with self._lock:
            self._files.pop((segment, self._versions.pop(segment, 0)), None)

    def replace(self, segment: int, temporary: str) -> None:
        """Put the file named ``temporary`` in the place of a segment's. Blocks.

        Reads that were planned for the file before still find it, until :meth:`forget_before`.
        Raises :class:`OSError`; then nothing has changed.
        """
        path = f"{self._directory}/{segment_name(segment)}"
        with self._lock:
            version = self._versions.get(segment, 0)
            before = self._files.get((segment, version)) or self._fs.open(path)
            self._fs.rename(f"{self._directory}/{temporary}", path)
            self._files.pop((segment, version), None)
            self._before[segment, version] = before
            self._versions[segment] = version + 1

    def forget_before(self) -> None:
        """Close the replaced files; a read that was planned for one fails from now on."""
        with self._lock:
            self._before.clear()

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._files.clear()
            self._before.clear()

    def _file(self, segment: int, version: int) -> File:
        """An open file, from a cache. A file that leaves the cache closes after its last read."""
        with self._lock:
            file = self._before.get((segment, version))
            if file is not None:
                return file
            file = self._files.pop((segment, version), None)
            if file is None:
                if version != self._versions.get(segment, 0):
                    raise FileNotFoundError(errno.ENOENT, "the segment was rewritten meanwhile")
                file = self._open(f"{self._directory}/{segment_name(segment)}")
                # Commits share the disk: the kernel's read-ahead doubled the time of one commit in
                # a hundred.
                file.expect_random_reads()
                if len(self._files) >= _OPEN_FILES_MAX:
                    del self._files[next(iter(self._files))]
            self._files[segment, version] = file
            return file

    def _open(self, path: str) -> File:
        """Open a file. If the process has no free descriptor, close the cached files first."""
        try:
            return self._fs.open(path)
        except OSError as error:
            if error.errno not in NO_FILES or not self._files:
                raise
        self._files.clear()
        return self._fs.open(path)


def entries_of(plan: ReadPlan, data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """``(topic number, ordinal, body)`` of the planned entries in order, then of the other wanted
    topics' entries in the order of the log. ``data`` are the fetched bytes.

    Raises :class:`CorruptionError` with topic, ordinal and place at a planned entry that is
    damaged. Damaged entries of other topics are skipped: a read that plans them reports them.
    """
    number, ordinal, start, end = plan.topic_number, plan.first_ordinal, plan.offset, len(data)
    unpack = ENTRY.unpack_from
    for offset, size in zip(plan.offsets, plan.sizes, strict=True):
        at = offset - start
        body_at = at + ENTRY_HEAD_BYTES
        if body_at + size > end:
            raise _damaged(plan, ordinal, "it is cut short")
        crc, rest_bytes, kind, version, _, _, in_topic, _, found, _, _ = unpack(data, at)
        if (rest_bytes, kind) != (size + ENTRY_FIXED_BYTES, KIND_ENTRY) or (
            (in_topic, found) != (number, ordinal)
        ):
            raise _damaged(plan, ordinal, "another record is in its place")
        if version != RECORD_VERSION:
            raise _damaged(plan, ordinal, f"it has version {version}")
        body = data[body_at : body_at + size]
        if crc != crc32c_extend(crc32c(data[at + CRC_END : body_at]), body):
            raise _damaged(plan, ordinal, "its checksum is wrong")
        yield number, ordinal, body
        ordinal += 1
    if others := plan.others:
        yield from _walk(data, others)


def _damaged(plan: ReadPlan, ordinal: int, reason: str) -> CorruptionError:
    index = ordinal - plan.first_ordinal
    return CorruptionError(
        f"entry {ordinal} of topic number {plan.topic_number}, "
        f"{segment_name(plan.segment)} offset {plan.offsets[index]}, "
        f"{plan.sizes[index]} bytes, is damaged: {reason}"
    )


def _walk(data: bytes, wanted: set[int]) -> Iterator[tuple[int, int, bytes]]:
    """Sound entries of the wanted topics in an extent that starts at a record."""
    at = 0
    last = len(data) - PREFIX_BYTES
    while at <= last:
        _, size, kind, _, _, _ = PREFIX.unpack_from(data, at)
        stop = at + PREFIX_BYTES + size
        if stop > len(data) or size == 0:
            break
        if kind == KIND_ENTRY and size >= ENTRY_FIXED_BYTES:
            crc, _, _, _, _, _, number, _, ordinal, _, _ = ENTRY.unpack_from(data, at)
            if number in wanted and crc == crc32c(data[at + CRC_END : stop]):
                yield number, ordinal, data[at + ENTRY_HEAD_BYTES : stop]
        at = stop
