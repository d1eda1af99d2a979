"""Runs of minutes: partial sums of a range that need no shuffle.

A *run* is a sequence of consecutive minutes of one subscription under the same limits, with the
same last eviction and expiry. It has what the sum over a range needs: amounts, seconds, levels at
both ends, and how many of its minutes blame each cause. The minutes of a run are consecutive, so a
range has the same result however its rows are batched. Better sorted input only gives fewer runs.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import LABELS
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE
from headgate.flow.limits.rate_limit import Level
from headgate.pipeline.kernels.account_windows import (
    LIMIT_COLUMNS,
    LIMIT_PARTS,
    SUMMED,
    accounted_ns,
    cells_of,
    inferred_rows,
    limits_of,
    longs,
)
from headgate.pipeline.kernels.array_types import Flags, Longs
from headgate.pipeline.kernels.verdict_arrays import VERDICTS, blame_shares, winners
from headgate.pipeline.tables.arrow_types import arrow_schema, changes, conform
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import DOUBLE, LONG, MINUTE_NS, ColumnType, TableColumn
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY, INTERVALS
from headgate.record.fields import STATE_FIELD_NAMES

LAST_COLUMNS: Final = (
    "to_ns", "backlog_messages", "delayed", "unacked", "permits", "consumers", "type",
    "broker",
)  # fmt: skip
FIRST_COLUMNS: Final = ("from_ns", "backlog_messages_start", "delayed_start", "unacked_start")
VOTE_COLUMNS: Final = tuple(f"voted_{verdict.value.lower()}_ns" for verdict in VERDICTS)
"""Accounted time of the minutes that blame each cause."""
HELD_FIRST_COLUMNS: Final = tuple(f"held_first_{level.name.lower()}_ns" for level in Level)
"""How long the limiter of each level throttled in the first minute."""
FIRST_LIMIT_COLUMNS: Final = tuple(
    f"first_limit_{level.name.lower()}_{part}" for level in Level for part in LIMIT_PARTS
)
"""The limits at the first minute's end. A relative limit changes within a run."""

RUN_COLUMNS: Final = (
    *(INTERVALS.column(name) for name in (*ATTRIBUTION_KEY, *FIRST_COLUMNS, *LAST_COLUMNS)),
    *(INTERVALS.column(name) for name in (*SUMMED, *STATE_FIELD_NAMES)),
    *(INTERVALS.column(name) for name in (*EVICTED_BY, *EXPIRED_BY, *LIMIT_COLUMNS)),
    INTERVALS.column("oldest_age_max_ns"),
    TableColumn("is_inferred", ColumnType.BOOLEAN, "Whether one of its minutes is inferred."),
    TableColumn("minutes", LONG, "Number of its minutes."),
    *(TableColumn(name, LONG) for name in VOTE_COLUMNS),
    *(TableColumn(name, LONG) for name in (*HELD_FIRST_COLUMNS, *FIRST_LIMIT_COLUMNS)),
    TableColumn("last_most", LONG, "Code of the largest share of its last minute, NONE included."),
    TableColumn(
        "last_most_from_ns", LONG, "Start of its last minutes with that same largest share."
    ),
    TableColumn("silent_from_ns", LONG, "Start of its last minutes without an acknowledgement."),
    TableColumn("got_messages", LONG, "Delivered in minutes with a topic limit in messages."),
    TableColumn("got_bytes", LONG, "Delivered in minutes with a topic limit in bytes."),
    TableColumn("allowed_messages", DOUBLE, "What that limit allowed in the time accounted for."),
    TableColumn("allowed_bytes", DOUBLE, "What that limit allowed in the time accounted for."),
)

_CELLS_OF_LEVEL: Final = [
    [cell for cell, labels in enumerate(LABELS) if labels.level is level] for level in Level
]


def throttled_ns(cells_ns: Longs) -> Longs:
    """How long the limiter of each level throttled, [Level, n]."""
    return np.stack([cells_ns[cells].sum(axis=0) for cells in _CELLS_OF_LEVEL])


def moves_with_rate(sources: pa.Array) -> Flags:
    """Which limits are relative: while the source is the same, they count as one limit."""
    moves = pc.fill_null(pc.ends_with(sources, ABOVE_PUBLISH_RATE), False)
    return np.asarray(moves.to_numpy(zero_copy_only=False), dtype=np.bool_)


def minute_runs(table: pa.Table) -> pa.Table:
    """The runs of some rows of ``intervals``, in the same order."""
    cells = cells_of(table)
    starts = _run_starts(table)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], table.num_rows) - 1
    if table.num_rows == 0:
        return arrow_schema(RUN_COLUMNS).empty_table()
    shares = blame_shares(cells)
    votes = np.equal.outer(np.arange(len(VERDICTS)), winners(shares)) * cells.sum(axis=0)
    limits = limits_of(table)
    amounts = dict(
        zip(
            FIRST_LIMIT_COLUMNS,
            (
                p[level]
                for level in Level
                for p in (limits.messages, limits.bytes, limits.period_ns)
            ),
            strict=True,
        )
    )
    kept = [*ATTRIBUTION_KEY, *LAST_COLUMNS, *EVICTED_BY, *EXPIRED_BY, *LIMIT_COLUMNS]
    ends = table.select(kept).take(pa.array(last))
    begins = table.select(FIRST_COLUMNS).take(pa.array(first))
    summed = {name: np.add.reduceat(longs(table, name), first) for name in SUMMED}
    columns: dict[str, Any] = {
        **{name: ends.column(name) for name in ends.column_names},
        **{name: begins.column(name) for name in begins.column_names},
        **summed,
        **dict(zip(STATE_FIELD_NAMES, np.add.reduceat(cells, first, axis=1), strict=True)),
        "oldest_age_max_ns": np.maximum.reduceat(longs(table, "oldest_age_max_ns"), first),
        "is_inferred": np.logical_or.reduceat(inferred_rows(table), first),
        "minutes": last - first + 1,
        **dict(zip(VOTE_COLUMNS, np.add.reduceat(votes, first, axis=1), strict=True)),
        **dict(zip(HELD_FIRST_COLUMNS, throttled_ns(cells)[:, first], strict=True)),
        **{name: values[first] for name, values in amounts.items()},
        **_streaks(table, starts, shares, last),
        "silent_from_ns": silent_from_ns(table, starts)[last],
        **_use_of_topic_limit(table, cells, limits.per_s()[Level.TOPIC], first),
    }
    arrays = {
        name: pa.array(values) if isinstance(values, np.ndarray) else values
        for name, values in columns.items()
    }
    return conform(arrays, arrow_schema(RUN_COLUMNS), len(first))


def _run_starts(table: pa.Table) -> Flags:
    starts = changes(table, (*ATTRIBUTION_KEY, *EVICTED_BY, *EXPIRED_BY))
    minute = table.column("minute").cast(pa.int64()).to_numpy()
    starts[1:] |= minute[1:] != minute[:-1] + MINUTE_NS // 1_000
    limits = limits_of(table)
    for level in Level:
        name = f"limit_{level.name.lower()}_source"
        moves = moves_with_rate(table.column(name).combine_chunks())
        there = (limits.messages[level] > 0) | (limits.bytes[level] > 0)
        starts |= changes(table, (name,))
        for part in (limits.messages, limits.bytes, limits.period_ns):
            values = np.where(there & ~moves, part[level], 0)
            starts[1:] |= values[1:] != values[:-1]
    return starts


def _streaks(table: pa.Table, starts: Flags, shares: Any, last: Longs) -> dict[str, Longs]:
    """The last minutes of each run that have the same largest share: its code and their start."""
    most = np.argmax(shares, axis=0)
    begins = starts.copy()
    begins[1:] |= most[1:] != most[:-1]
    place = np.maximum.accumulate(np.where(begins, np.arange(len(most)), 0))
    from_ns = longs(table, "from_ns")
    return {"last_most": most[last].astype(np.int64), "last_most_from_ns": from_ns[place][last]}


def silent_from_ns(table: pa.Table, starts: Flags) -> Longs:
    """By minute: since when, within its run, no message was acknowledged.

    It is the minute's end if messages were acknowledged in it. ``starts``: which rows begin a run.
    """
    silent = longs(table, "acked") == 0
    begins = starts.copy()
    begins[1:] |= ~silent[:-1]
    place = np.maximum.accumulate(np.where(begins, np.arange(len(silent)), 0))
    since = longs(table, "from_ns")[place]
    return np.asarray(np.where(silent, since, longs(table, "to_ns")), dtype=np.int64)


def _use_of_topic_limit(table: pa.Table, cells: Longs, rates: Any, first: Longs) -> dict[str, Any]:
    window_ns = accounted_ns(cells, longs(table, "covered_ns"))
    columns: dict[str, Any] = {}
    for dimension, (name, rate) in enumerate(zip(("messages", "bytes"), rates, strict=True)):
        limited = ~np.isnan(rate)
        got = longs(table, ("msgs_out", "bytes_out")[dimension])
        allowed = np.where(limited, rate, 0.0) * window_ns / NS_PER_S
        columns[f"got_{name}"] = np.add.reduceat(np.where(limited, got, 0), first)
        columns[f"allowed_{name}"] = np.add.reduceat(allowed, first)
    return columns
