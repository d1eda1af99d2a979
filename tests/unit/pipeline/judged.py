"""Rows of ``intervals`` judged by the kernels over arrays, as plain rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headgate.pipeline.kernels.attribution import INPUT_COLUMNS, attribution_table, range_table
from headgate.pipeline.kernels.minute_runs import minute_runs
from headgate.pipeline.kernels.ranges import SORT_COLUMNS
from headgate.pipeline.kernels.topic_waiters import WAITERS
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS


def input_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """What the kernels look at of some rows of ``intervals``."""
    return pa.Table.from_pylist(list(rows), table_arrow_schema(INTERVALS)).select(INPUT_COLUMNS)


def with_demonstrated_rate(
    table: pa.Table, per_s: float | None, topic_waiters: int | None = None
) -> pa.Table:
    """The same with one demonstrated rate for all, and so many that wait for each topic's limit."""
    rates = pa.array([per_s] * table.num_rows, pa.float64())
    waiters = pa.array([topic_waiters] * table.num_rows, pa.int64())
    return table.append_column("proven_rate_per_s", rates).append_column(WAITERS.name, waiters)


def judge_each(
    rows: Sequence[Mapping[str, Any]], per_s: float | None, topic_waiters: int | None = None
) -> list[dict[str, Any]]:
    """Every minute by itself."""
    found: list[dict[str, Any]] = attribution_table(
        with_demonstrated_rate(input_table(rows), per_s, topic_waiters)
    ).to_pylist()
    return found


def judge_ranges(
    rows: Sequence[Mapping[str, Any]],
    per_s: float | None,
    batch_rows: int = 1_000,
    topic_waiters: int | None = None,
) -> list[dict[str, Any]]:
    """One row for each subscription; ``batch_rows`` of the minutes are made runs of at once."""
    table = input_table(rows)
    runs = pa.concat_tables(
        [
            minute_runs(table.slice(first, batch_rows))
            for first in range(0, table.num_rows, batch_rows)
        ]
    ).sort_by([(name, "ascending") for name in SORT_COLUMNS])
    found: list[dict[str, Any]] = range_table(
        with_demonstrated_rate(runs, per_s, topic_waiters)
    ).to_pylist()
    return found
