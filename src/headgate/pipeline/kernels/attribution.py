"""Rows of ``attribution`` from the minutes of many subscriptions.

A minute's verdict depends on that minute only, so rows may come in any order and any batches. The
verdict of a range needs all runs of a subscription together
(:mod:`headgate.pipeline.kernels.ranges`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import Level
from headgate.pipeline.kernels.account_windows import (
    GAINS,
    LIMIT_COLUMNS,
    LOSSES,
    AccountWindows,
    judgement_columns,
    minute_windows,
)
from headgate.pipeline.kernels.array_types import Flags
from headgate.pipeline.kernels.ranges import (
    SOLE_SHARE_MIN,
    one_at_a_time,
    permits_of,
    range_circumstances,
    range_windows,
    waiters_of_blamed_limit,
)
from headgate.pipeline.kernels.sentences import CircumstanceArrays, sentence_column
from headgate.pipeline.kernels.verdict_arrays import (
    LEVEL_CODES,
    NO_CODE,
    JudgementArrays,
    judge_arrays,
)
from headgate.pipeline.tables.arrow_types import arrow_schema, conform, table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION, ATTRIBUTION_KEY, JUDGEMENT_COLUMNS
from headgate.pipeline.tables.columns import ColumnType, TableColumn
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY
from headgate.record.fields import STATE_FIELD_NAMES

INPUT_COLUMNS: Final = (
    *ATTRIBUTION_KEY,
    "date",
    "hour",
    "minute",
    "broker",
    "evidence",
    "from_ns",
    "to_ns",
    "covered_ns",
    *GAINS,
    *LOSSES,
    "msgs_out",
    "bytes_out",
    "backlog_messages_start",
    "backlog_messages",
    "delayed_start",
    "delayed",
    "unacked_start",
    "unacked",
    "oldest_age_max_ns",
    "permits",
    "consumers",
    "type",
    *EVICTED_BY,
    *EXPIRED_BY,
    *LIMIT_COLUMNS,
    *STATE_FIELD_NAMES,
)
"""Columns of ``intervals`` that a verdict needs."""

DEMONSTRATED_RATE: Final = next(c for c in JUDGEMENT_COLUMNS if c.name == "proven_rate_per_s")
"""Column that the caller joins to the input: the consumers' demonstrated rate."""

RANGE_COLUMNS: Final = (
    *(column for column in ATTRIBUTION.columns if column.name in ATTRIBUTION_KEY),
    TableColumn("broker", ColumnType.STRING, "Broker that wrote the last row."),
    *JUDGEMENT_COLUMNS,
)
"""Columns of a verdict over a range."""

_COPIED: Final = ("date", "hour", "minute", *ATTRIBUTION_KEY, "broker")


def attribution_table(table: pa.Table) -> pa.Table:
    """The rows of ``attribution``, one for each row of ``table``.

    ``table`` has :data:`INPUT_COLUMNS`, :data:`DEMONSTRATED_RATE` and
    :data:`topic_waiters.WAITERS`.
    """
    windows = minute_windows(table)
    judged = judge_arrays(windows.evidence())
    columns: dict[str, Any] = {
        **{name: table.column(name) for name in _COPIED},
        **judgement_columns(windows, judged),
        "sentence": sentence_column(windows, judged, _minute_circumstances(table, windows, judged)),
    }
    return conform(columns, table_arrow_schema(ATTRIBUTION), table.num_rows)


def range_table(runs: pa.Table) -> pa.Table:
    """One row of :data:`RANGE_COLUMNS` for each subscription.

    ``runs`` are sorted by ``ranges.SORT_COLUMNS``. They also have :data:`DEMONSTRATED_RATE` and
    :data:`topic_waiters.WAITERS`.
    """
    schema = arrow_schema(RANGE_COLUMNS)
    if runs.num_rows == 0:
        return schema.empty_table()
    ranges = range_windows(runs)
    judged = judge_arrays(ranges.windows.evidence())
    last = runs.select([*ATTRIBUTION_KEY, "broker"]).take(pa.array(ranges.ends))
    columns: dict[str, Any] = {
        **{name: last.column(name) for name in last.column_names},
        **judgement_columns(ranges.windows, judged),
        "sentence": sentence_column(ranges.windows, judged, range_circumstances(ranges, judged)),
    }
    return conform(columns, schema, len(ranges.begins))


def _minute_circumstances(
    table: pa.Table, windows: AccountWindows, judged: JudgementArrays
) -> CircumstanceArrays:
    most = np.argmax(judged.shares, axis=0)
    span_s = (windows.to_ns - windows.from_ns) / NS_PER_S
    return CircumstanceArrays(
        sources=tuple(
            table.column(f"limit_{level.name.lower()}_source").combine_chunks() for level in Level
        ),
        permits=permits_of(table),
        one_at_a_time=one_at_a_time(table),
        evicted_by=table.select(EVICTED_BY),
        expired_by=table.select(EXPIRED_BY),
        since_s=np.where(most == judged.verdict, span_s, np.nan),
        silent_s=np.where(windows.sums["acked"] == 0, span_s, 0.0),
        waiting=waiters_of_blamed_limit(table, judged, _is_sole(windows, judged)),
    )


def _is_sole(windows: AccountWindows, judged: JudgementArrays) -> Flags:
    """Whether the subscription used nearly all of the blamed topic limit itself."""
    rates = windows.limits.per_s()[Level.TOPIC]
    dimension = np.maximum(judged.dimension, 0)
    place = np.arange(len(dimension))
    got = np.stack([windows.sums["msgs_out"], windows.sums["bytes_out"]])[dimension, place]
    allowed = rates[dimension, place] * windows.accounted_ns() / NS_PER_S
    named = (LEVEL_CODES[judged.verdict] == Level.TOPIC) & (judged.dimension != NO_CODE)
    return np.asarray(named & (allowed > 0) & (got >= SOLE_SHARE_MIN * allowed))
