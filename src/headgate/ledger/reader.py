"""Backlog reads: one extent of a segment, and every wanted entry that lies in it.

The plan is made on the loop from the index; reading it blocks and belongs to a reader thread. Each
body is checked against its CRC32C before it is returned.
"""

from __future__ import annotations

import threading
from array import array
from dataclasses import dataclass, field

from headgate.base.errors import CorruptionError, StorageError
from headgate.fs.api import File, Fs
from headgate.ledger.format import (
    ENTRY,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_ENTRY,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    crc32c,
    segment_name,
)

_OPEN_FILES_MAX = 64
_CRC_END = 4


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
    """Entries of ``topic_number`` that will be returned, from ``first_ordinal`` on."""
    offsets: array[int]
    sizes: list[int]
    wanted_topics: set[int] = field(default_factory=set)
    """Other topics whose entries in the extent are to be returned as well."""


class LogReader:
    """Reads planned extents; may be used by several threads at once."""

    def __init__(self, fs: Fs, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._files: dict[int, File] = {}
        self._lock = threading.Lock()

    def read(self, plan: ReadPlan) -> list[tuple[int, int, bytes]]:
        """The planned entries in order, then other wanted ones in the order of the log.

        Raises :class:`CorruptionError` naming topic, ordinal and place when a planned entry is
        damaged, and :class:`StorageError` when the disk cannot be read. Damage of entries that
        were only wanted is left to the read that plans them.
        """
        others = plan.wanted_topics - {plan.topic_number}
        size = plan.size_bytes if others else plan.needed_bytes
        try:
            data = self._file(plan.segment).read_at(plan.offset, size)
        except OSError as error:
            raise StorageError(
                f"reading {segment_name(plan.segment)} at {plan.offset} failed: {error}",
                retryable=True,
            ) from error
        found = [self._planned(plan, data, index) for index in range(plan.count)]
        if others:
            found.extend(_walk(data, others))
        return found

    def forget(self, segment: int) -> None:
        """A segment is deleted: let its file go."""
        with self._lock:
            self._files.pop(segment, None)

    def close(self) -> None:
        """Let all files go."""
        with self._lock:
            self._files.clear()

    def _planned(self, plan: ReadPlan, data: bytes, index: int) -> tuple[int, int, bytes]:
        ordinal = plan.first_ordinal + index
        at = plan.offsets[index] - plan.offset
        body_at = at + ENTRY_HEAD_BYTES
        body = data[body_at : body_at + plan.sizes[index]]
        reason = "it is cut short"
        if len(body) == plan.sizes[index] and len(data) >= body_at:
            head = ENTRY.unpack_from(data, at)
            wanted = (len(body) + ENTRY_FIXED_BYTES, KIND_ENTRY, plan.topic_number, ordinal)
            if (head[1], head[2], head[6], head[8]) != wanted:
                reason = "another record is in its place"
            elif head[3] != RECORD_VERSION:
                reason = f"it has version {head[3]}"
            elif head[0] == crc32c(data[at + _CRC_END : body_at + len(body)]):
                return plan.topic_number, ordinal, body
            else:
                reason = "its checksum is wrong"
        raise CorruptionError(
            f"entry {ordinal} of topic number {plan.topic_number}, "
            f"{segment_name(plan.segment)} offset {plan.offsets[index]}, "
            f"{plan.sizes[index]} bytes, is damaged: {reason}"
        )

    def _file(self, segment: int) -> File:
        """An open file. The oldest ones are let go; whoever still reads one keeps it alive."""
        with self._lock:
            file = self._files.pop(segment, None)
            if file is None:
                file = self._fs.open(f"{self._directory}/{segment_name(segment)}")
                if len(self._files) >= _OPEN_FILES_MAX:
                    del self._files[next(iter(self._files))]
            self._files[segment] = file
            return file


def _walk(data: bytes, wanted: set[int]) -> list[tuple[int, int, bytes]]:
    """Sound entries of the wanted topics in an extent that starts at a record."""
    found: list[tuple[int, int, bytes]] = []
    at = 0
    last = len(data) - PREFIX_BYTES
    while at <= last:
        _, size, kind, _, _, _ = PREFIX.unpack_from(data, at)
        stop = at + PREFIX_BYTES + size
        if stop > len(data) or size == 0:
            break
        if kind == KIND_ENTRY and size >= ENTRY_FIXED_BYTES:
            crc, _, _, _, _, _, number, _, ordinal, _ = ENTRY.unpack_from(data, at)
            if number in wanted and crc == crc32c(data[at + _CRC_END : stop]):
                found.append((number, ordinal, data[at + ENTRY_HEAD_BYTES : stop]))
        at = stop
    return found
