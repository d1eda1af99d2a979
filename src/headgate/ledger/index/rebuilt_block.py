"""Rebuilds the index of a range of entries from their records, for a damaged block."""

from __future__ import annotations

from array import array
from typing import Final

from headgate.ledger.format.records import (
    CRC_END,
    ENTRY,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_ENTRY,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    U32_MASK,
    crc32c,
)
from headgate.ledger.index.columns import Columns, TopicTotals

_ORDINAL_AT: Final = 24
"""Where an ENTRY record has its ordinal."""


def rebuild_block(
    data: bytes,
    begin: int,
    topic: int,
    first: int,
    stop: int,
    before: TopicTotals,
    after: TopicTotals,
) -> tuple[Columns, bool]:
    """The index of entries ``first`` to ``stop`` of a topic, and whether all their records were
    found.

    ``data`` are the bytes of the segment from offset ``begin`` on, where the record of ``first``
    begins. ``before`` and ``after`` are the topic's totals before and after these entries. An entry
    without a sound record gets the offset of the one before it, one message and no bytes: reads of
    it find another record there, and refuse it as damaged. The first of them gets the messages and
    bytes of all, so that the totals are right.

    The records are followed from one to the next, and over a damaged one if a sound record follows
    at the length that it says. Where that ends, because a hole was punched or such a length is
    damaged, too, the next record of the topic is found by its ordinal and its checksum.
    """
    columns = Columns(
        array("I"),
        array("q", (before.received_ms,)),
        array("I", (before.publish_lag_ms,)),
        array("q", (before.messages,)),
        array("q", (before.size_bytes,)),
    )
    at, lost = 0, -1
    for ordinal in range(first, stop):
        found = _next(data, at, topic, ordinal)
        if found is None:
            offset = columns.offsets[-1] if columns.offsets else begin
            _append(columns, offset, columns.received[-1], columns.publish_lags[-1], 1, 0)
            lost = ordinal - first if lost < 0 else lost
            continue
        _, size, _, _, _, _, _, messages, _, received, lag = ENTRY.unpack_from(data, found)
        _append(columns, begin + found, received, lag, messages, size - ENTRY_FIXED_BYTES)
        at = found + PREFIX_BYTES + size
    totals = (columns.messages, after.messages), (columns.sizes, after.size_bytes)
    is_whole = lost < 0 and all(sums[-1] == total for sums, total in totals)
    for sums, total in totals:
        missing = max(total - sums[-1], 0)
        for row in range(max(lost, 0) + 1, len(sums)):
            sums[row] += missing
    return columns, is_whole


def _append(
    columns: Columns, offset: int, received_ms: int, lag_ms: int, messages: int, size: int
) -> None:
    columns.offsets.append(offset)
    columns.received.append(received_ms)
    columns.publish_lags.append(lag_ms)
    columns.messages.append(columns.messages[-1] + messages)
    columns.sizes.append(columns.sizes[-1] + size)


def _next(data: bytes, at: int, topic: int, ordinal: int) -> int | None:
    """The place of the next record of an entry, from a place where a record begins, or may."""
    while at + PREFIX_BYTES <= len(data):
        _, size, kind, version, _, _ = PREFIX.unpack_from(data, at)
        is_sound = bool(size) and _is_sound(data, at, size)
        end = at + PREFIX_BYTES + size
        if is_sound and kind == KIND_ENTRY:
            number, _, in_record = ENTRY.unpack_from(data, at)[6:9]
            if number == topic and in_record >= ordinal:
                return at if in_record == ordinal else None
        elif not is_sound and (version != RECORD_VERSION or not _begins_sound(data, end)):
            break  # also its length may be damaged
        at = end
    return _search(data, at, topic, ordinal)


def _search(data: bytes, at: int, topic: int, ordinal: int) -> int | None:
    """The place of a sound record of an entry behind a place; None if there is none, or if it is
    unknown which of several it is.

    Bytes within a damaged message may look like this record. If so, and if the real one is sound,
    the records are followed from the first to the second of them.
    """
    found = _candidate(data, at, topic, ordinal)
    if found is None:
        return None
    other = _candidate(data, found + 1, topic, ordinal)
    while other is not None:
        reached = _follow(data, found, other)
        if reached < other:
            return None  # either may be within a damaged message
        if reached == other:
            found = other  # the first one cannot be, or it would not be followed by the second
        other = _candidate(data, other + 1, topic, ordinal)
    return found


def _candidate(data: bytes, at: int, topic: int, ordinal: int) -> int | None:
    wanted = ordinal.to_bytes(8, "little")
    found = data.find(wanted, at + _ORDINAL_AT)
    while found >= 0:
        place = found - _ORDINAL_AT
        if place + ENTRY_HEAD_BYTES <= len(data):
            _, size, kind, _, _, _, number, *_ = ENTRY.unpack_from(data, place)
            if (kind, number) == (KIND_ENTRY, topic) and _is_sound(data, place, size):
                return place
        found = data.find(wanted, found + 1)
    return None


def _follow(data: bytes, at: int, stop: int) -> int:
    """Follow sound records up to ``stop`` or behind it; returns where the last one ends."""
    while at < stop and _begins_sound(data, at):
        at += PREFIX_BYTES + PREFIX.unpack_from(data, at)[1]
    return at


def _begins_sound(data: bytes, at: int) -> bool:
    """Whether a sound record begins at a place."""
    if at + PREFIX_BYTES > len(data):
        return False
    size = PREFIX.unpack_from(data, at)[1]
    return bool(size) and _is_sound(data, at, size)


def _is_sound(data: bytes, at: int, size: int) -> bool:
    end = at + PREFIX_BYTES + size
    if size > U32_MASK or end > len(data):
        return False
    (crc,) = PREFIX.unpack_from(data, at)[:1]
    return bool(crc == crc32c(data[at + CRC_END : end]))
