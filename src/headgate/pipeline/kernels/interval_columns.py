"""Columns of ``intervals`` from pieces that are cut at the minutes they span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import (
    INTERVALS,
    KEY_COLUMNS,
    START_LEVELS,
    cumulative_columns,
    level_columns,
)
from headgate.record.fields import CELL_NAMES, STATE_FIELD_NAMES

if TYPE_CHECKING:
    from headgate.pipeline.kernels.array_types import Flags, Longs
    from headgate.pipeline.kernels.intervals import Chunk, Pieces, Rows

_NET_GAINS = ("appended", "rewound")
_NET_LOSSES = ("acked", "skipped", "expired", "evicted")
_CELL_CODES = {name: i for i, name in enumerate(CELL_NAMES)}


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Parts of pieces within one minute each, in the order of their (subject, minute) groups."""

    piece: Longs
    minute: Longs
    from_ns: Longs
    to_ns: Longs
    group_first: Longs
    """First cut of each (subject, minute)."""
    group_last: Longs

    def total(self, values: Any) -> Longs:
        """Sum of one value per cut, by group."""
        return np.asarray(np.add.reduceat(values, self.group_first), dtype=np.int64)


def minute_columns(chunk: Chunk, rows: Rows, pieces: Pieces) -> pa.Table:
    """The rows of ``intervals``: one for each subject and minute that pieces touch."""
    schema = table_arrow_schema(INTERVALS)
    cuts = _cut(chunk, pieces)
    if cuts is None:
        return schema.empty_table()
    columns = {
        **_bookkeeping(pieces, cuts),
        **_amounts(chunk, rows, pieces, cuts),
        **_levels(chunk, rows, pieces, cuts),
    }
    return conform(columns, schema, len(cuts.group_first))


def _cut(chunk: Chunk, pieces: Pieces) -> _Cuts | None:
    hour = chunk.hour_ns[pieces.source_row]
    begin = np.maximum(pieces.from_ns, hour)
    finish = np.minimum(pieces.to_ns, hour + HOUR_NS)
    inside = np.flatnonzero(begin < finish)
    if len(inside) == 0:
        return None
    begin, finish = begin[inside], finish[inside]
    first_minute = begin // MINUTE_NS
    counts = (finish - 1) // MINUTE_NS - first_minute + 1
    place = np.repeat(np.arange(len(inside)), counts)
    offset = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
    minute = first_minute[place] + offset
    from_ns = np.maximum(begin[place], minute * MINUTE_NS)
    to_ns = np.minimum(finish[place], (minute + 1) * MINUTE_NS)
    piece = inside[place]
    order = np.lexsort((to_ns, minute, pieces.subject[piece]))
    piece, minute = piece[order], minute[order]
    subject = pieces.subject[piece]
    changes = (subject[1:] != subject[:-1]) | (minute[1:] != minute[:-1])
    first = np.append(0, np.flatnonzero(changes) + 1)
    last = np.append(first[1:], len(piece)) - 1
    return _Cuts(piece, minute, from_ns[order], to_ns[order], first, last)


def _bookkeeping(pieces: Pieces, cuts: _Cuts) -> dict[str, pa.Array]:
    p = cuts.piece
    ends_here = cuts.to_ns == pieces.to_ns[p]
    starts_here = cuts.from_ns == pieces.from_ns[p]
    lost = np.clip(pieces.lost_until_ns[p] - cuts.from_ns, 0, cuts.to_ns - cuts.from_ns)
    stepped = (pieces.observed_max_ns / (pieces.to_ns - pieces.from_ns))[p]
    observed = ((cuts.to_ns - cuts.from_ns - lost) * stepped).astype(np.int64)
    from_ns = np.minimum.reduceat(cuts.from_ns, cuts.group_first)
    to_ns = cuts.to_ns[cuts.group_last]
    covered = cuts.total(observed)
    minute = cuts.minute[cuts.group_first]
    return {
        **partition_columns(minute * MINUTE_NS),
        "minute": pa.array(minute * (MINUTE_NS // 1_000)).cast(TIMESTAMP),
        "from_ns": pa.array(from_ns),
        "to_ns": pa.array(to_ns),
        "covered_ns": pa.array(covered),
        "completeness": pa.array(np.minimum(1.0, covered / (to_ns - from_ns))),
        "samples": pa.array(cuts.total(ends_here & ~pieces.virtual[p])),
        "gaps": pa.array(cuts.total(lost > 0)),
        "restarts": pa.array(cuts.total(pieces.restart[p] & starts_here)),
        "resets": pa.array(cuts.total(pieces.reset[p] & ends_here)),
        "clock_steps": pa.array(cuts.total(pieces.clock_step[p] & ends_here)),
    }


def _amounts(chunk: Chunk, rows: Rows, pieces: Pieces, cuts: _Cuts) -> dict[str, pa.Array]:
    p = cuts.piece
    span = pieces.to_ns - pieces.from_ns
    until = ((cuts.to_ns - pieces.from_ns[p]) / span[p]).astype(np.float64)
    after = ((cuts.from_ns - pieces.from_ns[p]) / span[p]).astype(np.float64)
    columns: dict[str, pa.Array] = {}
    for name in cumulative_columns(chunk.kind):
        if chunk.table.column(name).null_count == chunk.table.num_rows:
            continue
        values = _counted(chunk, rows, name)
        before = np.where(pieces.from_zero, 0, values[pieces.start])
        growth = (values[pieces.end] - before)[p]
        part = _running(growth, until) - _running(growth, after)
        missing = _missing(chunk, rows, pieces, name)
        if missing is not None:
            part = np.where(missing[p], 0, part)
            missing = np.logical_and.reduceat(missing[p], cuts.group_first)
        columns[name] = pa.array(cuts.total(part.astype(np.int64)), mask=missing)
    return columns


def _running(growth: Longs, share: Any) -> Any:
    """A running total at a share of its piece, rounded down; at the piece's end the whole total."""
    # The factor keeps a share such as 1/3 times 3 from falling below 1.
    return np.where(share == 1.0, growth, np.floor(growth * share * (1.0 + 2.0**-50)))


def _counted(chunk: Chunk, rows: Rows, name: str) -> Longs:
    """A cumulative column over all rows; in virtual rows the time of the present state
    continues."""
    values = chunk.longs(name)
    found = values[rows.source]
    if name not in STATE_FIELD_NAMES:
        return found
    cell = STATE_FIELD_NAMES.index(name)
    continued_ns = np.where(_state_codes(chunk)[rows.source] == cell, rows.extra_ns, 0)
    # At most what the next row of the stream measured.
    room = np.full(len(values), np.iinfo(np.int64).max)
    growth = np.maximum(values[1:] - values[:-1], 0)
    room[:-1] = np.where(chunk.first_of_stream[1:], room[:-1], growth)
    return found + np.minimum(continued_ns, room[rows.source])


def _state_codes(chunk: Chunk) -> Longs:
    states = chunk.table.column("state").to_pylist()
    return np.array([_CELL_CODES.get(state, -1) for state in states], dtype=np.int64)


def _missing(chunk: Chunk, rows: Rows, pieces: Pieces, name: str) -> Flags | None:
    valid = chunk.valid(name)
    if valid is None:
        return None
    there = valid[rows.source]
    return ~(there[pieces.end] & (pieces.from_zero | there[pieces.start]))


def _levels(chunk: Chunk, rows: Rows, pieces: Pieces, cuts: _Cuts) -> dict[str, pa.Array]:
    last = cuts.piece[cuts.group_last]
    reached = (cuts.to_ns[cuts.group_last] == pieces.to_ns[last]) | (pieces.start[last] < 0)
    source = np.where(reached, pieces.source_row[last], rows.source[pieces.start[last]])
    kept = ["kind", *KEY_COLUMNS, "broker", "evidence", *level_columns(chunk.kind)]
    there = [name for name in kept if name in chunk.table.column_names]
    taken = chunk.table.select(there).take(pa.array(source))
    columns: dict[str, Any] = {name: taken.column(name).combine_chunks() for name in there}
    for name in START_LEVELS:
        if name not in level_columns(chunk.kind) or _absent(chunk, name):
            continue
        at_start, at_end = _level_ends(chunk, rows, pieces, name)
        for column, which, side in (
            (name, cuts.group_last, 1),
            (f"{name}_start", cuts.group_first, 0),
        ):
            values = _level_at(pieces, cuts, at_start, at_end, which, side)
            columns[column] = pa.array(values, mask=_unknown(chunk, pieces, cuts, name, which))
        if name == "backlog_bytes":
            columns["backlog_bytes_max"] = _largest_level(pieces, cuts, at_start, at_end)
    if "oldest_age_ns" in level_columns(chunk.kind) and not _absent(chunk, "oldest_age_ns"):
        columns["oldest_age_max_ns"] = _oldest_ages(chunk, rows, pieces, cuts)
    return columns


def _absent(chunk: Chunk, name: str) -> bool:
    return bool(chunk.table.column(name).null_count == chunk.table.num_rows)


def _unknown(chunk: Chunk, pieces: Pieces, cuts: _Cuts, name: str, which: Longs) -> Flags | None:
    """Of some cuts: whether the row that ends the piece lacks a level; None if none does. A level
    that only the row before lacks was 0 there."""
    valid = chunk.valid(name)
    return None if valid is None else ~valid[pieces.source_row[cuts.piece[which]]]


def _level_ends(chunk: Chunk, rows: Rows, pieces: Pieces, name: str) -> tuple[Longs, Longs]:
    """A level at both ends of every piece."""
    values = chunk.longs(name)
    at_end = values[pieces.source_row]
    # If counting begins with the piece, the stream has no earlier row. The last row of the previous
    # boot has the level. Without one, the level follows from the counted amounts.
    guess = at_end.copy()
    if name == "backlog_messages":
        guess = at_end - _net(chunk)[pieces.source_row]
    elif "backlog_messages" in level_columns(chunk.kind):
        empty = chunk.longs("backlog_messages") <= _net(chunk)
        guess = np.where(empty[pieces.source_row], 0, at_end)
    before = np.where(pieces.restart, values[pieces.source_row - 1], guess)
    return np.where(pieces.start < 0, before, values[rows.source[pieces.start]]), at_end


def _net(chunk: Chunk) -> Longs:
    gains = sum(chunk.longs(name) for name in _NET_GAINS)
    losses = sum(chunk.longs(name) for name in _NET_LOSSES)
    return np.asarray(gains - losses, dtype=np.int64)


def _level_at(
    pieces: Pieces, cuts: _Cuts, at_start: Longs, at_end: Longs, which: Longs, side: int
) -> Longs:
    p = cuts.piece[which]
    instant = (cuts.to_ns if side else cuts.from_ns)[which]
    share = (instant - pieces.from_ns[p]) / (pieces.to_ns[p] - pieces.from_ns[p])
    change = np.floor((at_end[p] - at_start[p]) * share).astype(np.int64)
    return np.asarray(at_start[p] + change, dtype=np.int64)


def _largest_level(pieces: Pieces, cuts: _Cuts, at_start: Longs, at_end: Longs) -> pa.Array:
    """The largest value of a level in each group; within a piece it lies at one of its ends."""
    every = np.arange(len(cuts.piece))
    ends = [_level_at(pieces, cuts, at_start, at_end, every, side) for side in (0, 1)]
    return pa.array(np.maximum.reduceat(np.maximum(*ends), cuts.group_first))


def _oldest_ages(chunk: Chunk, rows: Rows, pieces: Pieces, cuts: _Cuts) -> pa.Array:
    values = chunk.longs("oldest_age_ns")
    valid = chunk.valid("oldest_age_ns")
    there = np.ones(len(values), np.bool_) if valid is None else valid
    age = values[rows.source] + np.where(values[rows.source] > 0, rows.extra_ns, 0)
    ends = age[pieces.end][cuts.piece]
    # At the minute's end the age was smaller by the rest of the piece.
    younger = pieces.to_ns[cuts.piece] - cuts.to_ns
    largest = np.maximum.reduceat(np.maximum(ends - younger, 0), cuts.group_first)
    known = there[pieces.source_row][cuts.piece]
    return pa.array(largest, mask=~np.logical_or.reduceat(known, cuts.group_first))
