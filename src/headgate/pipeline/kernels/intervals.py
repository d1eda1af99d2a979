"""Rows of ``intervals``: differences of cumulative values by subject and minute.

The input is sorted by :data:`SORT_COLUMNS` and has all rows of each of its subjects. A row has
totals since ``counting_since_ns``. So two neighbouring rows of one *stream* (source, boot, start of
counting) give a *piece*: the amounts between two instants. The kernel cuts pieces at minutes in
proportion to time. Every cut is a difference of one rounded-down running total, so no message is
lost or doubled.

Brokers send no row for a subject that did not change. The kernel adds *virtual rows* for it, in
which only the time of its present state grows. If no row was lost, they reach to the window of the
subject's next row. At the end of a boot they reach to its last batch, but at most 60 s.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.kernels.array_types import Flags, Longs
from headgate.pipeline.kernels.coverage_gaps import (
    Coverage,
    CoverageGap,
    input_starts,
    near_hours_of,
    rows_between,
    source_codes,
)
from headgate.pipeline.kernels.interval_columns import minute_columns
from headgate.pipeline.tables.arrow_types import changes, table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS, KEY_COLUMNS
from headgate.record.fields import FULL_PERIOD_NS, Kind, Nature, field_names

SUBJECT_COLUMNS: Final = ("kind", *KEY_COLUMNS)
SORT_COLUMNS: Final = (
    *SUBJECT_COLUMNS,
    "source",
    "counting_since_ns",
    "boot_id",
    "seq",
    "row",
)
"""Order of the input. ``kind`` and the subject lead, so that sorted batches can be split where the
subject changes."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Spans between two rows of one stream; parallel arrays."""

    subject: Longs
    """Number of the subject in the chunk."""
    source_row: Longs
    """Input row with the values at the end."""
    end: Longs
    """Index of the end in :class:`Rows`."""
    start: Longs
    """Index of the start there; -1 if counting began with the piece."""
    from_zero: Flags
    """Amounts count from zero, because counting began or a value fell."""
    from_ns: Longs
    to_ns: Longs
    lost_until_ns: Longs
    """Rows between ``from_ns`` and this instant were lost; ``from_ns`` if none was."""
    virtual: Flags
    restart: Flags
    reset: Flags
    clock_step: Flags
    observed_max_ns: Longs
    """Most time that the piece accounts for; less than its span if the clock stepped."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Input rows and virtual rows, in order; parallel arrays."""

    source: Longs
    """Input row that the values come from."""
    to_ns: Longs
    extra_ns: Longs
    """How much later than its source row a virtual row is; 0 for an input row."""


class Chunk:
    """Input rows of some subjects without duplicates, with their columns as arrays."""

    def __init__(self, table: pa.Table, hours: Longs, start_ns: Longs, kind: Kind) -> None:
        self.kind = kind
        subject = changes(table, SUBJECT_COLUMNS)
        subject[1:] |= hours[1:] != hours[:-1]
        stream = subject | changes(table, ("source", "boot_id", "counting_since_ns"))
        fresh = stream | changes(table, ("seq", "row"))
        if not fresh.all():
            table = table.filter(pa.array(fresh))
            subject, stream = subject[fresh], stream[fresh]
            hours, start_ns = hours[fresh], start_ns[fresh]
        self.table = table
        self.first_of_stream = stream
        self.same_source = ~(subject | changes(table, ("source",)))
        self.subject: Longs = np.cumsum(subject) - 1
        self.hours = hours
        self.hour_ns = hours * HOUR_NS
        self.start_ns = start_ns

    def longs(self, name: str) -> Longs:
        """A column of whole numbers; null is 0."""
        column = self.table.column(name)
        if column.type != pa.int64():
            column = column.cast(pa.int64())
        return np.asarray(pc.fill_null(column, 0).to_numpy(), dtype=np.int64)

    def valid(self, name: str) -> Flags | None:
        """Which values of a column are not null; None if all are."""
        column = self.table.column(name)
        return None if column.null_count == 0 else column.is_valid().to_numpy()


_NAMES: Final = {
    Kind.TOPIC: ("topic",),
    Kind.SUBSCRIPTION: ("topic", "subscription"),
    Kind.LIMITER: ("level", "subject", "dimension"),
}
"""Columns without which a row is about nothing."""


def interval_table(
    table: pa.Table, kind: Kind, hours: Collection[int], arrived: Coverage
) -> pa.Table:
    """The rows of some hours (numbers since the epoch), of all subjects in a sorted table.

    Rows that name no subject are left out. No broker sends them, and a reader of the tables needs
    the names.
    """
    for name in _NAMES[kind]:
        if table.column(name).null_count:
            table = table.filter(table.column(name).is_valid())
    rows_of_hours, hour_of_row, start_ns = _by_hour(table, hours, arrived.gaps)
    if len(rows_of_hours) == 0:
        return table_arrow_schema(INTERVALS).empty_table()
    chunk = Chunk(table.take(pa.array(rows_of_hours)), hour_of_row, start_ns, kind)
    rows = _with_virtual_rows(chunk, arrived)
    return minute_columns(chunk, rows, _pieces(chunk, rows))


def _by_hour(
    table: pa.Table, hours: Collection[int], gaps: Collection[CoverageGap]
) -> tuple[Longs, Longs, Longs]:
    """Rows, the hour that each is input of, and where that input begins; by subject and hour.

    Each hour is computed alone, from its own rows, those within look-back, and those at both ends
    of a gap over its edge. So the result does not depend on the other hours. A row near an edge is
    input of two hours.
    """
    ends = table.column("window_end_ns").to_numpy()
    row, hour = near_hours_of(ends - 1)
    codes, of_gap = source_codes(table, gaps)
    here = [pair for pair in zip(gaps, of_gap, strict=True) if pair[1] >= 0]
    if here:
        more_rows, more_hours = rows_between(ends, codes, here)
        row, hour = _distinct_pairs(np.append(row, more_rows), np.append(hour, more_hours))
    wanted = np.isin(hour, np.fromiter(hours, dtype=np.int64))
    row, hour = row[wanted], hour[wanted]
    start_ns = input_starts(codes[row], hour, here)
    subject = np.cumsum(changes(table, SUBJECT_COLUMNS))[row] if len(row) else row
    order = np.lexsort((row, hour, subject))
    return row[order], hour[order], start_ns[order]


def _distinct_pairs(row: Longs, hour: Longs) -> tuple[Longs, Longs]:
    first, width = hour.min(), np.ptp(hour) + 1
    pair = np.unique(row * width + hour - first)
    return pair // width, pair % width + first


def _with_virtual_rows(chunk: Chunk, arrived: Coverage) -> Rows:
    to_ns = chunk.longs("covered_to_ns")
    until = to_ns.copy()
    following = ~chunk.first_of_stream[1:]
    unbroken = (
        following
        & (chunk.longs("covered_from_ns")[1:] == to_ns[:-1])
        & (chunk.longs("clock_step")[1:] == 0)
    )
    starts = chunk.longs("window_start_ns")[1:]
    until[:-1] = np.where(unbroken, np.maximum(until[:-1], starts), until[:-1])
    last = np.append(~following, True) & (chunk.longs("gone") == 0)
    ends = np.flatnonzero(last)
    keys = zip(
        chunk.hours[ends].tolist(),
        chunk.table.column("source").take(pa.array(ends)).to_pylist(),
        chunk.table.column("boot_id").take(pa.array(ends)).to_pylist(),
        strict=True,
    )
    last_windows = np.array([arrived.last_window(*key) for key in keys], dtype=np.int64)
    until[ends] = np.maximum(to_ns[ends], np.minimum(last_windows, to_ns[ends] + FULL_PERIOD_NS))
    added = until > to_ns
    source = np.repeat(np.arange(len(to_ns)), 1 + added)
    virtual = np.append(False, source[1:] == source[:-1])
    rows_to = np.where(virtual, until[source], to_ns[source])
    return Rows(source, rows_to, rows_to - to_ns[source])


def _pieces(chunk: Chunk, rows: Rows) -> Pieces:
    virtual = rows.extra_ns > 0
    first = chunk.first_of_stream[rows.source] & ~virtual
    since = chunk.longs("counting_since_ns")
    covered_from = chunk.longs("covered_from_ns")
    # A row that precedes its own start of counting follows a clock that was set back.
    whole = (covered_from >= since) & ((since >= chunk.start_ns) | (covered_from == since))
    # The amounts of a stream's first row are known only if all its rows are input. If they are not,
    # the row contributes only the time that it covers.
    unseen = first & ~whole[rows.source]
    places = np.flatnonzero(~unseen | (covered_from[rows.source] < rows.to_ns))
    source, unseen, virtual = rows.source[places], unseen[places], virtual[places]
    begins = first[places] & ~unseen
    start = np.where(begins, -1, np.where(unseen, places, places - 1))
    step = (chunk.longs("clock_step")[source] != 0) & ~virtual
    to_ns = rows.to_ns[places]
    from_ns = np.where(begins, since[source], rows.to_ns[places - 1])
    from_ns = np.where(unseen, covered_from[source], from_ns)
    # After a clock is set back there is no span: the whole amount counts in the row's minute.
    from_ns = np.minimum(from_ns, to_ns - 1)
    lost = np.where(virtual | step, from_ns, np.clip(covered_from[source], from_ns, to_ns))
    lost = np.where(unseen, to_ns, lost)
    reset = ~begins & ~unseen & ~virtual & _fell(chunk)[source]
    windows = chunk.longs("window_end_ns") - chunk.longs("window_start_ns")
    span = to_ns - from_ns
    return Pieces(
        subject=chunk.subject[source],
        source_row=source,
        end=places,
        start=start,
        from_zero=begins | reset,
        from_ns=from_ns,
        to_ns=to_ns,
        lost_until_ns=lost,
        virtual=virtual,
        restart=begins & chunk.same_source[source],
        reset=reset,
        clock_step=step,
        observed_max_ns=np.where(step, np.clip(windows[source], 0, span), span),
    )


def _fell(chunk: Chunk) -> Flags:
    """Which rows have a cumulative value below that of the previous row."""
    fell = np.zeros(chunk.table.num_rows, dtype=np.bool_)
    for name in field_names(chunk.kind, Nature.CUMULATIVE):
        values: Any = chunk.longs(name)
        fell[1:] |= values[1:] < values[:-1]
    return fell
