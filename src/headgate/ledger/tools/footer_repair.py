"""Makes the damaged footer of a segment anew from what is sound in the file.

Two sources tell what a footer said. Each of its blocks has its own checksum, so the blocks around a
damaged one still count, and the directory gives the totals around it. And the records of the
segment tell all that a footer lists, unless maintenance has punched holes between them.

A footer is made anew only if nothing stays open but entries that were released before: see
:attr:`RebuiltFooter.omitted`.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple, cast

from headgate.base.errors import CorruptionError
from headgate.ledger.format.records import (
    CRC_END,
    ENTRY,
    ENTRY_FIXED_BYTES,
    KIND_ENTRY,
    KINDS,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    SEGMENT_HEADER_BYTES,
    crc32c,
)
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.footer import FOOTER_TRAILER, TRAILER_BYTES, FooterBuilder
from headgate.ledger.index.index_block import block_bytes, decode_block
from headgate.ledger.index.state import LogState
from headgate.ledger.index.stored_run import StoredRun
from headgate.ledger.recovery.replay import Replay
from headgate.ledger.tools.footer_check import FooterCheck, IndexedRun

_BLOCK_HEAD: Final = struct.Struct("<IIQ")
_COLUMN_TYPES: Final = "IqIqq"


class RebuiltFooter(NamedTuple):
    """A footer made anew."""

    data_end: int
    """The offset in the file where it begins."""
    content: bytes
    omitted: tuple[IndexedRun, ...]
    """Entries that the old footer listed and that this one leaves out, because nothing tells their
    values. It may be used only if all of them are released."""


class _Run(NamedTuple):
    topic: int
    first: int
    columns: Columns


class _Entry(NamedTuple):
    """What a sound record tells of its entry."""

    offset: int
    messages: int
    size_bytes: int
    received_ms: int
    lag_ms: int
    end: int


def rebuild_footer(
    data: bytes, segment: int, check: FooterCheck, topics: Collection[int]
) -> RebuiltFooter | None:
    """Make the footer of a segment file anew; None if what is sound does not tell all of it.

    ``check`` is what is known of the damaged footer, ``topics`` are the numbers of the topics with
    records in the segment.
    """
    omitted: tuple[IndexedRun, ...] = ()
    end, runs = check.data_end, None
    if end is not None and check.directory is not None:
        runs, omitted = _from_directory(data, end, check.directory)
    elif end is not None:
        runs = _from_blocks(data, end)
    if runs is None or omitted:
        replayed = _from_records(data[:end], segment, topics)
        if replayed is not None:
            content = _encode(segment, *replayed)
            if _ends_at(data, check, replayed[0], content):
                return RebuiltFooter(replayed[0], content, ())
    if runs is None or end is None:
        return None
    return RebuiltFooter(end, _encode(segment, end, runs), omitted)


def _encode(segment: int, data_end: int, runs: list[_Run]) -> bytes:
    builder = FooterBuilder(segment, data_end)
    for run in runs:
        builder.add_columns(run.topic, run.first, run.columns)
    return b"".join(builder.finish())


def _ends_at(data: bytes, check: FooterCheck, end: int, content: bytes) -> bool:
    """Whether the records of a segment end where reading them ended: its footer says so, or is as
    long as that of these records. Else records behind a damaged one could be missed."""
    said = FOOTER_TRAILER.unpack_from(data, len(data) - TRAILER_BYTES)[4]
    if check.data_end is not None:
        return end == check.data_end
    return end == said or len(content) == len(data) - end


# From the directory ------------------------------------------------------------------------------


def _from_directory(
    data: bytes, data_end: int, directory: list[StoredRun]
) -> tuple[list[_Run] | None, tuple[IndexedRun, ...]]:
    """The runs that a sound directory lists, and what stays open of them. The first are None if
    that is everything."""
    blocks = {
        (run.topic_number, block): _sound_block(data, run, block)
        for run in directory
        for block in range(run.blocks)
    }
    records = _entries_near(data, data_end, directory, blocks)
    runs: list[_Run] = []
    omitted: list[IndexedRun] = []
    for run in directory:
        columns = _empty_columns()
        first = run.first
        for block in range(run.blocks):
            low, count = run.first_of(block), run.count_of(block)
            part = blocks[run.topic_number, block]
            if part is None:
                start, part = _block_from_records(run, block, records)
                if start > low:
                    columns, first = _empty_columns(), start
                if start == low + count:
                    continue
            _extend(columns, part)
        if first > run.first:
            omitted.append(IndexedRun(run.topic_number, run.first, first))
        if len(columns.offsets):
            runs.append(_Run(run.topic_number, first, columns))
    return runs, tuple(omitted)


def _sound_block(data: bytes, run: StoredRun, block: int) -> Columns | None:
    at, first, count = run.place_of(block), run.first_of(block), run.count_of(block)
    body = data[at : at + block_bytes(count)]
    try:
        return decode_block(body, run.topic_number, first, first + count)[1]
    except CorruptionError:
        return None


def _entries_near(
    data: bytes,
    data_end: int,
    directory: list[StoredRun],
    blocks: dict[tuple[int, int], Columns | None],
) -> dict[tuple[int, int], _Entry]:
    """The entries whose records are sound and lie where a chain of sound records leads: from the
    beginning of the segment, from where a damaged block begins, and from each listed entry."""
    starts = {SEGMENT_HEADER_BYTES}
    for run in directory:
        for block in range(run.blocks):
            columns = blocks[run.topic_number, block]
            if columns is None:
                starts.add(run.sparse.offsets[run.row + block])
            else:
                starts.update(columns.offsets)
    found: dict[tuple[int, int], _Entry] = {}
    reached = 0
    for start in sorted(starts):
        if start < reached:
            continue
        reached = start
        for topic, ordinal, entry in _chain(data, start, data_end):
            reached = entry.end
            if topic:
                found[topic, ordinal] = entry
    return found


def _chain(data: bytes, at: int, stop: int) -> Iterator[tuple[int, int, _Entry]]:
    """The sound records from an offset on, as topic, ordinal and entry; 0 as the topic of a record
    of another kind."""
    while at + PREFIX_BYTES <= stop:
        crc, size, kind, version, _, _ = PREFIX.unpack_from(data, at)
        end = at + PREFIX_BYTES + size
        if version != RECORD_VERSION or kind not in KINDS or end > stop:
            return
        if crc32c(data[at + CRC_END : end]) != crc:
            return
        topic = ordinal = messages = received = lag = 0
        if kind == KIND_ENTRY:
            topic, messages, ordinal, received, lag = ENTRY.unpack_from(data, at)[6:11]
        yield topic, ordinal, _Entry(at, messages, size - ENTRY_FIXED_BYTES, received, lag, end)
        at = end


def _block_from_records(
    run: StoredRun, block: int, records: dict[tuple[int, int], _Entry]
) -> tuple[int, Columns]:
    """The last entries of a damaged block without a gap, from their records; the first of them."""
    low, count = run.first_of(block), run.count_of(block)
    stop = start = low + count
    entries: list[_Entry] = []
    while start > low and (run.topic_number, start - 1) in records:
        start -= 1
        entries.append(records[run.topic_number, start])
    entries.reverse()
    before, after = run.totals_before(block), run.totals_before(block + 1)
    messages = after.messages - sum(entry.messages for entry in entries)
    size = after.size_bytes - sum(entry.size_bytes for entry in entries)
    last = (entries[-1].received_ms, entries[-1].lag_ms) if entries else (0, 0)
    is_right = last == (after.received_ms, after.publish_lag_ms)
    if start == low:
        is_right &= (messages, size) == (before.messages, before.size_bytes)
    if not entries or not is_right:
        return stop, _empty_columns()
    # The times before the range are those of the last entry before it that is known.
    columns = Columns(
        array("I"),
        array("q", [before.received_ms]),
        array("I", [before.publish_lag_ms]),
        array("q", [messages]),
        array("q", [size]),
    )
    for entry in entries:
        columns.offsets.append(entry.offset)
        columns.received.append(entry.received_ms)
        columns.publish_lags.append(entry.lag_ms)
        columns.messages.append(columns.messages[-1] + entry.messages)
        columns.sizes.append(columns.sizes[-1] + entry.size_bytes)
    return start, columns


# From the blocks alone ---------------------------------------------------------------------------


def _from_blocks(data: bytes, data_end: int) -> list[_Run] | None:
    """The runs of sound blocks that lie side by side; None if any block between them is damaged.

    What follows the last one must be as long as the directory of these blocks.
    """
    end = len(data) - TRAILER_BYTES
    runs: list[_Run] = []
    at = data_end
    while at + _BLOCK_HEAD.size <= end:
        topic, count, first = _BLOCK_HEAD.unpack_from(data, at)
        stop = at + block_bytes(count)
        try:
            _, part = decode_block(data[at : min(stop, end)], topic, first, first + count)
        except CorruptionError:
            break
        last = runs[-1] if runs else None
        if last is not None and last.topic == topic:
            if last.first + len(last.columns.offsets) != first:
                return None
            _extend(last.columns, part)
        else:
            runs.append(_Run(topic, first, part))
        at = stop
    return runs if len(_encode(0, data_end, runs)) == len(data) - data_end else None


# From the records --------------------------------------------------------------------------------


def _from_records(
    data: bytes, segment: int, topics: Collection[int]
) -> tuple[int, list[_Run]] | None:
    """The end of the records and the runs that they tell; None if a record is damaged."""
    replay = Replay(LogState(), topics)
    end, rows = replay.index_only(data, segment)
    assessment = replay.assessment
    if replay.damaged_places or assessment.losses or assessment.doubts:
        return None
    # A range that was read from records has columns; only one from a footer is a stored run.
    return end, [_Run(row.topic_number, row.first, cast(Columns, row.columns)) for row in rows]


def _empty_columns() -> Columns:
    return Columns(*(array(code) for code in _COLUMN_TYPES))


def _extend(columns: Columns, part: Columns) -> None:
    """Append the columns of the entries that follow."""
    columns.offsets.extend(part.offsets)
    for column, values in zip(columns[1:], part[1:], strict=True):
        column.extend(values[1:] if column else values)
