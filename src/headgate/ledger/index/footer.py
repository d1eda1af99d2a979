"""The footer of a sealed segment: its index, grouped by topic.

It starts where the records end and ends where the file ends::

    columns      per run: u32 * n offsets | i64 * (n + 1) receive times (ms) before
                 | u32 * (n + 1) publish lags (ms) before | i64 * (n + 1) messages before
                 | i64 * (n + 1) bytes before
    directory    per run: u32 topic | u32 n | u64 first ordinal | u64 file offset of its columns
                 | u32 CRC32C of its columns | u32 zero            (32 bytes)
    trailer      8s magic "HGFOOTR\\0" | u32 version | u32 runs | u64 segment | u64 end of records
                 | u32 CRC32C of the directory | u32 CRC32C of the 36 trailer bytes before

The columns marked "before" begin with the times of the entry before the run, and with the topic's
totals up to it, so a footer can be read without other segments. A start loads all footers; a later
release can keep only the directory in memory.
"""

from __future__ import annotations

import struct
import sys
from array import array
from dataclasses import dataclass
from typing import Final

from headgate.base.errors import CorruptionError, invariant
from headgate.fs.api import File
from headgate.ledger.format.records import CRC, CRC_BYTES, SEGMENT_HEADER_BYTES, crc32c
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.topic_log import TopicLog

FOOTER_VERSION: Final = 2
FOOTER_MAGIC: Final = b"HGFOOTR\0"
FOOTER_ROW = struct.Struct("<IIQQII")
FOOTER_TRAILER = struct.Struct("<8sIIQQI")
TRAILER_BYTES: Final = FOOTER_TRAILER.size + CRC_BYTES

invariant(sys.byteorder == "little", "the stored arrays are little endian")
invariant(array("I").itemsize == 4, "the stored offsets have 4 bytes")


@dataclass(frozen=True, slots=True)
class FooterRun:
    """The index of one topic's entries in a segment."""

    topic_number: int
    first_ordinal: int
    columns: Columns


@dataclass(frozen=True, slots=True)
class FooterEntry:
    """The index of one entry."""

    topic: int
    ordinal: int
    offset: int
    messages: int
    size_bytes: int
    received_ms: int
    lag_ms: int


@dataclass(frozen=True, slots=True)
class Footer:
    """The index of a sealed segment."""

    data_end: int
    runs: tuple[FooterRun, ...]

    def entries(self) -> dict[int, FooterEntry]:
        """Every entry by its offset. Lost entries are absent: they share the offset of the entry
        before them."""
        found: dict[int, FooterEntry] = {}
        for run in self.runs:
            columns = run.columns
            for at, offset in enumerate(columns.offsets):
                if offset not in found:
                    found[offset] = FooterEntry(
                        run.topic_number,
                        run.first_ordinal + at,
                        offset,
                        columns.messages[at + 1] - columns.messages[at],
                        columns.sizes[at + 1] - columns.sizes[at],
                        columns.received[at + 1],
                        columns.publish_lags[at + 1],
                    )
        return found


class FooterBuilder:
    """Collects a segment's index topic by topic, so that the loop can build it in slices."""

    def __init__(self, segment: int, data_end: int) -> None:
        self._segment = segment
        self._data_end = data_end
        self._offset = data_end
        self._blocks: list[bytes] = []
        self._rows: list[tuple[int, int, int, int]] = []

    def add(self, topic: TopicLog) -> None:
        """Add a topic's retained entries of the segment, if it has any."""
        run = topic.run_in(self._segment)
        if run is None:
            return
        first, end = run
        block = b"".join(column.tobytes() for column in topic.columns(first, end))
        self._rows.append((topic.number, end - first, first, self._offset))
        self._blocks.append(block)
        self._offset += len(block)

    def finish(self) -> list[bytes]:
        """The footer in parts. For the upkeep thread: it checksums all columns."""
        rows = [
            FOOTER_ROW.pack(number, count, first, offset, crc32c(block), 0)
            for (number, count, first, offset), block in zip(self._rows, self._blocks, strict=True)
        ]
        directory = b"".join(rows)
        trailer = FOOTER_TRAILER.pack(
            FOOTER_MAGIC,
            FOOTER_VERSION,
            len(rows),
            self._segment,
            self._data_end,
            crc32c(directory),
        )
        return [*self._blocks, directory, trailer, CRC.pack(crc32c(trailer))]


def read_footer(file: File, segment: int, size: int) -> Footer | None:
    """The footer of a segment file of ``size`` bytes; None if it has none.

    Raises :class:`CorruptionError` if the footer is damaged.
    """
    if size < SEGMENT_HEADER_BYTES + TRAILER_BYTES:
        return None
    trailer = file.read_at(size - TRAILER_BYTES, TRAILER_BYTES)
    if not trailer.startswith(FOOTER_MAGIC):
        return None
    _, version, count, owner, data_end, directory_crc = FOOTER_TRAILER.unpack_from(trailer)
    (trailer_crc,) = CRC.unpack_from(trailer, FOOTER_TRAILER.size)
    if trailer_crc != crc32c(trailer[: FOOTER_TRAILER.size]) or owner != segment:
        raise CorruptionError(f"the footer of segment {segment:016x} is damaged at its trailer")
    if version != FOOTER_VERSION:
        raise CorruptionError(f"the footer of segment {segment:016x} has version {version}")
    directory_at = size - TRAILER_BYTES - count * FOOTER_ROW.size
    if not SEGMENT_HEADER_BYTES <= data_end <= directory_at:
        raise CorruptionError(f"the footer of segment {segment:016x} does not fit its file")
    body = file.read_at(data_end, size - TRAILER_BYTES - data_end)
    directory = body[directory_at - data_end :]
    if crc32c(directory) != directory_crc:
        raise CorruptionError(f"the footer of segment {segment:016x} is damaged at its directory")
    runs = tuple(
        _read_run(
            body, data_end, segment, *FOOTER_ROW.unpack_from(directory, row * FOOTER_ROW.size)
        )
        for row in range(count)
    )
    return Footer(data_end, runs)


def _read_run(
    body: bytes,
    body_at: int,
    segment: int,
    number: int,
    count: int,
    first: int,
    offset: int,
    crc: int,
    _zero: int,
) -> FooterRun:
    more = count + 1
    cut = [4 * count, 8 * more, 4 * more, 8 * more, 8 * more]
    at = offset - body_at
    block = body[at : at + sum(cut)]
    if len(block) != sum(cut) or crc32c(block) != crc:
        raise CorruptionError(
            f"the footer of segment {segment:016x} is damaged at the index of topic {number}"
        )
    columns = Columns(*(array(code) for code in "IqIqq"))
    at = 0
    for column, size in zip(columns, cut, strict=True):
        column.frombytes(block[at : at + size])
        at += size
    return FooterRun(number, first, columns)
