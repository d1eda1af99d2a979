"""Judgements of many subscriptions: sorted minutes in Arrow, judged rows out.

The input holds all minutes of each subscription that it mentions, sorted by
:data:`SORT_COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from headgate.pipeline.kernels.judging import (
    MINUTE_COLUMNS,
    Minute,
    judge_minutes,
    proven_rate_per_s,
)
from headgate.pipeline.tables.arrow_types import arrow_schema, table_arrow_schema
from headgate.pipeline.tables.attribution import (
    ATTRIBUTION,
    ATTRIBUTION_KEY,
    JUDGEMENT_COLUMNS,
    PROVEN_LOOK_BACK_NS,
)
from headgate.pipeline.tables.columns import HOUR_NS, ColumnType, TableColumn

SORT_COLUMNS: Final = (*ATTRIBUTION_KEY, "minute")
"""Order of the input."""

INPUT_COLUMNS: Final = (*ATTRIBUTION_KEY, *MINUTE_COLUMNS)
"""Columns of ``intervals`` that are needed."""

RANGE_COLUMNS: Final = (
    *(column for column in ATTRIBUTION.columns if column.name in ATTRIBUTION_KEY),
    TableColumn("broker", ColumnType.STRING, "Broker that wrote the last row."),
    *JUDGEMENT_COLUMNS,
)
"""Columns of a judgement over a range."""

_LOOK_BACK_HOURS: Final = PROVEN_LOOK_BACK_NS // HOUR_NS


def _subjects(table: pa.Table) -> Iterator[tuple[dict[str, Any], list[Minute]]]:
    rows = table.to_pylist()
    for key, group in groupby(rows, key=lambda row: tuple(row[n] for n in ATTRIBUTION_KEY)):
        yield dict(zip(ATTRIBUTION_KEY, key, strict=True)), list(group)


def _hour_of(minute: Minute) -> int:
    return int(minute["from_ns"]) // HOUR_NS


def attribution_table(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row per subscription and minute of the wanted hours (numbers since the epoch).

    A consumer's proven rate is taken over the minute's hour and the 24 hours before it.
    """
    found: list[dict[str, Any]] = []
    for key, minutes in _subjects(table):
        for hour, group in groupby(minutes, key=_hour_of):
            if hour not in hours:
                continue
            before = [m for m in minutes if hour - _LOOK_BACK_HOURS <= _hour_of(m) <= hour]
            proven = proven_rate_per_s(before)
            start = datetime.fromtimestamp(hour * 3_600, UTC)
            place = {"date": start.date(), "hour": start.hour}
            for minute in group:
                names = {"minute": minute["minute"], "broker": minute["broker"]}
                found.append({**place, **key, **names, **judge_minutes([minute], proven)})
    return pa.Table.from_pylist(found, schema=table_arrow_schema(ATTRIBUTION))


def range_table(table: pa.Table, since_ns: int, until_ns: int) -> pa.Table:
    """One row per subscription for the minutes that touch ``[since_ns, until_ns)``.

    Minutes before the range only prove the consumer's rate.
    """
    found: list[dict[str, Any]] = []
    for key, minutes in _subjects(table):
        inside = _within(minutes, since_ns, until_ns)
        if inside:
            upto = [m for m in minutes if m["from_ns"] < until_ns]
            judged = judge_minutes(inside, proven_rate_per_s(upto))
            found.append({**key, "broker": inside[-1]["broker"], **judged})
    return pa.Table.from_pylist(found, schema=arrow_schema(RANGE_COLUMNS))


def _within(minutes: Sequence[Minute], since_ns: int, until_ns: int) -> list[Minute]:
    return [m for m in minutes if m["from_ns"] < until_ns and m["to_ns"] > since_ns]
