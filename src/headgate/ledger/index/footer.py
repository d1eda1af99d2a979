"""The footer of a sealed segment: its index, grouped by topic.

It starts where the records end and ends where the file ends::

    blocks       per run: its entries in blocks of N (see index_block.py), back to back
    directory    per run: u32 topic | u32 n | u64 first ordinal | u64 offset of its first block
                 | i64 messages | i64 bytes | i64 receive time (ms) | u32 publish lag (ms)
                 | u32 zero
                 (56 bytes; the totals of the topic up to and with the run, and its last times)
                 then per block, column by column: u32 offset of its first record
                 | u32 publish lag (ms) before | i64 receive time (ms) before
                 | i64 messages before | i64 bytes before
                 then u32 number of blocks | u32 N
    trailer      8s magic "HGFOOTR\\0" | u32 version | u32 runs | u64 segment | u64 end of records
                 | u32 CRC32C of the directory | u32 CRC32C of the 36 trailer bytes before

The values marked "before" are those of the entry before the block, and the topic's totals up to it,
so a footer can be read without other segments. The directory alone tells the totals at the
beginning of each block. A start reads the blocks, too.

A footer of version 2, which this release reads and does not write, has no blocks: each run has its
columns as a whole, and a row ``u32 topic | u32 n | u64 first ordinal | u64 file offset of its
columns | u32 CRC32C of its columns | u32 zero`` in the directory, which has nothing else.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from headgate.base.errors import CorruptionError
from headgate.fs.api import File
from headgate.ledger.format.records import CRC, CRC_BYTES, SEGMENT_HEADER_BYTES, crc32c
from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.index_block import (
    BLOCK_ENTRIES,
    block_bytes,
    columns_bytes,
    decode_block,
    decode_columns,
    encode_block,
)
from headgate.ledger.index.stored_run import StoredRun, file_id
from headgate.ledger.index.topic_log import TopicLog

FOOTER_VERSION: Final = 3
VERSION_WITHOUT_BLOCKS: Final = 2
FOOTER_MAGIC: Final = b"HGFOOTR\0"
FOOTER_TRAILER = struct.Struct("<8sIIQQI")
TRAILER_BYTES: Final = FOOTER_TRAILER.size + CRC_BYTES
ROW_WITHOUT_BLOCKS = struct.Struct("<IIQQII")
_RUN_ROW = struct.Struct("<IIQQqqqII")
_BLOCK_ROW_BYTES: Final = 32
_DIRECTORY_END = struct.Struct("<II")
END_BYTES: Final = _DIRECTORY_END.size
"""Bytes at the end of a directory that tell where it begins."""


class FooterRun(NamedTuple):
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


class Directory(NamedTuple):
    """What a footer tells without its blocks."""

    data_end: int
    runs: list[StoredRun]


class FooterBuilder:
    """Collects a segment's index topic by topic, so that the loop can build it in slices."""

    def __init__(self, segment: int, data_end: int) -> None:
        self._segment = segment
        self._data_end = data_end
        self._runs: list[FooterRun] = []
        self.directory = Directory(data_end, [])
        """What :meth:`finish` wrote, without the blocks."""

    def add(self, topic: TopicLog) -> None:
        """Add a topic's retained entries of the segment, if it has any."""
        run = topic.run_in(self._segment)
        if run is not None:
            self.add_columns(topic.number, run[0], topic.columns(*run))

    def add_columns(self, topic_number: int, first_ordinal: int, columns: Columns) -> None:
        """Add the index of a topic's entries from ``first_ordinal`` on."""
        self._runs.append(FooterRun(topic_number, first_ordinal, columns))

    def finish(self) -> list[bytes]:
        """The footer in parts. For the upkeep thread: it copies and checksums all columns."""
        return [*self.parts()]

    def parts(self) -> Iterator[bytes]:
        """The footer part by part: each block is made when it is asked for. The
        :attr:`directory` is complete behind the last one."""
        rows: list[bytes] = []
        sparse = _sparse_columns()
        at = self._data_end
        stored: list[StoredRun] = []
        runs, self._runs = self._runs, []
        runs.reverse()
        while runs:
            # One by one: to free all at once would hold the interpreter for long.
            topic, first, columns = runs.pop()
            begin, row = at, len(sparse.offsets)
            count = len(columns.offsets)
            for low in range(0, count, BLOCK_ENTRIES):
                high = min(low + BLOCK_ENTRIES, count)
                block = encode_block(topic, first + low, columns, low, high)
                at += len(block)
                yield block
                for column, values in zip(sparse, columns, strict=True):
                    column.append(values[low])
            _, received, lags, messages, sizes = columns
            after = TopicTotals(messages[-1], sizes[-1], received[-1], lags[-1])
            rows.append(_RUN_ROW.pack(topic, count, first, begin, *after, 0))
            place = file_id(self._segment, 0), begin
            stored.append(StoredRun(topic, first, count, *place, sparse, row, after, BLOCK_ENTRIES))
        self.directory = Directory(self._data_end, stored)
        yield from _directory_and_trailer(self._segment, self._data_end, rows, sparse)


def _directory_and_trailer(
    segment: int, data_end: int, rows: list[bytes], sparse: Columns
) -> list[bytes]:
    order = (sparse.offsets, sparse.publish_lags, sparse.received, sparse.messages, sparse.sizes)
    directory = b"".join(
        [
            *rows,
            *(column.tobytes() for column in order),
            _DIRECTORY_END.pack(len(sparse.offsets), BLOCK_ENTRIES),
        ]
    )
    trailer = FOOTER_TRAILER.pack(
        FOOTER_MAGIC, FOOTER_VERSION, len(rows), segment, data_end, crc32c(directory)
    )
    return [directory, trailer, CRC.pack(crc32c(trailer))]


def _sparse_columns() -> Columns:
    return Columns(*(array(code) for code in "IqIqq"))


class _Trailer(NamedTuple):
    """A sound trailer, and where the directory before it begins and ends."""

    version: int
    runs: int
    data_end: int
    directory_crc: int
    directory_at: int
    directory_end: int


def _read_trailer(file: File, segment: int, size: int) -> _Trailer | None:
    if size < SEGMENT_HEADER_BYTES + TRAILER_BYTES:
        return None
    end = size - TRAILER_BYTES
    before = file.read_at(end - _DIRECTORY_END.size, _DIRECTORY_END.size + TRAILER_BYTES)
    trailer = before[_DIRECTORY_END.size :]
    if not trailer.startswith(FOOTER_MAGIC):
        return None
    _, version, count, owner, data_end, directory_crc = FOOTER_TRAILER.unpack_from(trailer)
    (trailer_crc,) = CRC.unpack_from(trailer, FOOTER_TRAILER.size)
    if trailer_crc != crc32c(trailer[: FOOTER_TRAILER.size]) or owner != segment:
        raise CorruptionError(f"the footer of segment {segment:016x} is damaged at its trailer")
    directory_at = directory_begin(version, count, before, end)
    if directory_at is None:
        raise CorruptionError(f"the footer of segment {segment:016x} has version {version}")
    if not SEGMENT_HEADER_BYTES <= data_end <= directory_at:
        raise CorruptionError(f"the footer of segment {segment:016x} is damaged at its directory")
    return _Trailer(version, count, data_end, directory_crc, directory_at, end)


def directory_begin(version: int, runs: int, end_bytes: bytes, end: int) -> int | None:
    """The file offset where a directory begins that ends at ``end``; None for an unknown version.

    ``end_bytes`` begin with the last :data:`END_BYTES` before ``end``.
    """
    if version == VERSION_WITHOUT_BLOCKS:
        return end - runs * ROW_WITHOUT_BLOCKS.size
    if version != FOOTER_VERSION:
        return None
    blocks, _ = _DIRECTORY_END.unpack_from(end_bytes)
    return int(end - _DIRECTORY_END.size - runs * _RUN_ROW.size - blocks * _BLOCK_ROW_BYTES)


def decode_directory(directory: bytes, runs: int, segment: int) -> list[StoredRun]:
    """The runs of a sound directory of this version.

    Raises :class:`CorruptionError` if its rows do not fit together, or its blocks are too large.
    """
    blocks, block_entries = _DIRECTORY_END.unpack_from(
        directory, len(directory) - _DIRECTORY_END.size
    )
    if not 0 < block_entries <= BLOCK_ENTRIES:
        raise CorruptionError(f"the footer of segment {segment:016x} has blocks of another size")
    at = runs * _RUN_ROW.size
    columns = _sparse_columns()
    offsets, received, lags, messages, sizes = columns
    for column in (offsets, lags, received, messages, sizes):
        column.frombytes(directory[at : at + blocks * column.itemsize])
        at += blocks * column.itemsize
    found: list[StoredRun] = []
    block, file = 0, file_id(segment, 0)
    for row in range(runs):
        topic, count, first, place, *after, _ = _RUN_ROW.unpack_from(directory, row * _RUN_ROW.size)
        stop = block + -(-count // block_entries)
        totals = TopicTotals(*after)
        found.append(
            StoredRun(topic, first, count, file, place, columns, block, totals, block_entries)
        )
        block = stop
    if block != blocks:
        raise CorruptionError(f"the footer of segment {segment:016x} is damaged at its directory")
    return found


def _read_parts(
    file: File, segment: int, size: int, *, whole: bool
) -> tuple[_Trailer, int, bytes] | None:
    """The trailer of a footer, the offset where the bytes read begin, and those bytes up to the end
    of its directory, whose checksum is right."""
    found = _read_trailer(file, segment, size)
    if found is None:
        return None
    begin = found.data_end if whole else found.directory_at
    body = file.read_at(begin, found.directory_end - begin)
    if crc32c(body[found.directory_at - begin :]) != found.directory_crc:
        raise CorruptionError(f"the footer of segment {segment:016x} is damaged at its directory")
    return found, begin, body


def read_directory(file: File, segment: int, size: int) -> Directory | None:
    """What the footer of a segment file of ``size`` bytes tells without its blocks; None if there
    is no footer, or one of version 2, which has no blocks.

    Raises :class:`CorruptionError` if trailer or directory is damaged.
    """
    trailer = _read_trailer(file, segment, size)
    if trailer is None or trailer.version == VERSION_WITHOUT_BLOCKS:
        return None
    parts = _read_parts(file, segment, size, whole=False)
    if parts is None:
        return None
    found, _, directory = parts
    return Directory(found.data_end, decode_directory(directory, found.runs, segment))


def read_footer(file: File, segment: int, size: int) -> Footer | None:
    """The whole footer of a segment file of ``size`` bytes; None if it has none.

    Raises :class:`CorruptionError` if the footer is damaged.
    """
    parts = _read_parts(file, segment, size, whole=True)
    if parts is None:
        return None
    found, begin, body = parts
    directory = body[found.directory_at - begin :]
    if found.version == VERSION_WITHOUT_BLOCKS:
        rows = ROW_WITHOUT_BLOCKS.iter_unpack(directory)
        runs = tuple(_run_without_blocks(body, begin, segment, *row) for row in rows)
    else:
        runs = tuple(
            _whole_run(body, begin, run) for run in decode_directory(directory, found.runs, segment)
        )
    return Footer(found.data_end, runs)


def _whole_run(body: bytes, begin: int, run: StoredRun) -> FooterRun:
    columns = _sparse_columns()
    try:
        for block in range(run.blocks):
            at = run.place_of(block) - begin
            size = block_bytes(run.count_of(block))
            first = run.first_of(block)
            stop = first + run.count_of(block)
            _, part = decode_block(body[at : at + size], run.topic_number, first, stop)
            columns.offsets.extend(part.offsets)
            for column, values in zip(columns[1:], part[1:], strict=True):
                column.extend(values if not column else values[1:])
    except CorruptionError as error:
        raise CorruptionError(
            f"the footer of segment {run.segment:016x} is damaged at the index of topic "
            f"{run.topic_number}: {error}"
        ) from error
    return FooterRun(run.topic_number, run.first, columns)


def _run_without_blocks(
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
    at = offset - body_at
    block = body[at : at + columns_bytes(count)]
    if len(block) != columns_bytes(count) or crc32c(block) != crc:
        raise CorruptionError(
            f"the footer of segment {segment:016x} is damaged at the index of topic {number}"
        )
    return FooterRun(number, first, decode_columns(block, 0, count))
