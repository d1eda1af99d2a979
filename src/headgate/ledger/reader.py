"""Backlog reads: one extent of a segment with every wanted entry in it.

The plan is made on the loop from the index. Fetching its bytes blocks and belongs to a reader
thread, which needs the interpreter for nothing else; what lies in them is taken out on the loop, a
slice at a time. Each body is checked against its CRC32C before it is given out.
"""

from __future__ import annotations

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

_OPEN_FILES_MAX = 64


@dataclass(slots=True)
class ReadPlan:
    """One read to do; made by :meth:`headgate.ledger.CommitLog.locate`."""

    topic_number: int
    segment: int
    offset: int
    """Where the extent starts in the segment."""
    size_bytes: int
    """How long the extent is when other topics are wanted too."""
    needed_bytes: int
    """How much of it the planned entries need."""
    first_ordinal: int
    count: int
    """Entries of ``topic_number`` that will be given out, from ``first_ordinal`` on."""
    offsets: array[int]
    sizes: list[int]
    wanted_topics: set[int] = field(default_factory=set)
    """Other topics whose entries in the extent are to be given out as well."""

    @property
    def others(self) -> set[int]:
        """The wanted topics beside its own."""
        return self.wanted_topics - {self.topic_number}


class LogReader:
    """Reads planned extents; may be used by several threads at once."""

    def __init__(self, fs: Fs, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._files: dict[int, File] = {}
        self._lock = threading.Lock()

    def fetch(self, plan: ReadPlan) -> bytes:
        """The bytes of the planned extent, as far as they are needed. Blocks.

        Raises :class:`StorageError` when the disk cannot be read.
        """
        size = plan.size_bytes if plan.others else plan.needed_bytes
        try:
            return self._file(plan.segment).read_at(plan.offset, size)
        except OSError as error:
            raise StorageError(
                f"reading {segment_name(plan.segment)} at {plan.offset} failed: {error}",
                retryable=True,
            ) from error

    def forget(self, segment: int) -> None:
        """A segment is deleted: let its file go."""
        with self._lock:
            self._files.pop(segment, None)

    def close(self) -> None:
        """Let all files go."""
        with self._lock:
            self._files.clear()

    def _file(self, segment: int) -> File:
        """An open file. The oldest ones are let go; whoever still reads one keeps it alive."""
        with self._lock:
            file = self._files.pop(segment, None)
            if file is None:
                file = self._open(f"{self._directory}/{segment_name(segment)}")
                # Commits share the disk. What a kernel reads ahead, in pieces of its own size and
                # at its own time, made one commit in a hundred twice as long.
                file.expect_random_reads()
                if len(self._files) >= _OPEN_FILES_MAX:
                    del self._files[next(iter(self._files))]
            self._files[segment] = file
            return file

    def _open(self, path: str) -> File:
        """Where there are no more descriptors, at the cost of those that are kept for later."""
        try:
            return self._fs.open(path)
        except OSError as error:
            if error.errno not in NO_FILES or not self._files:
                raise
        self._files.clear()
        return self._fs.open(path)


def entries_of(plan: ReadPlan, data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """``(topic number, ordinal, body)`` of the planned entries in order, then of other wanted ones
    in the order of the log; ``data`` is what was fetched.

    Raises :class:`CorruptionError` naming topic, ordinal and place when it comes to a planned entry
    that is damaged. Damage of entries that were only wanted is left to the read that plans them.
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
