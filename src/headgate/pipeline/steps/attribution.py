"""The steps that judge: ``DataFrame -> DataFrame`` over ``intervals``. No session, no input or
output, no collect.

The wide rows of minutes are never shuffled: each is judged where it was read. What a consumer has
demonstrated needs a day of minutes, but of these only the few that prove a rate, and of them only
that rate; it is worked out on the side and comes back as one small row for each subscription.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import add, and_
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.flow.account.demonstrated import HELD_BY_OTHERS, HELD_SHARE_MAX
from headgate.flow.account.verdict import YOUNG_NS
from headgate.pipeline.kernels import sharing
from headgate.pipeline.kernels.attribution import (
    DEMONSTRATED_RATE,
    INPUT_COLUMNS,
    RANGE_COLUMNS,
    attribution_table,
    range_table,
)
from headgate.pipeline.kernels.demonstrated_rates import HOUR, KEYS, RATE, RATES, demonstrated_rates
from headgate.pipeline.kernels.minute_runs import RUN_COLUMNS, minute_runs
from headgate.pipeline.kernels.ranges import SORT_COLUMNS
from headgate.pipeline.tables.arrow_types import whole_subjects
from headgate.pipeline.tables.attribution import (
    ATTRIBUTION,
    ATTRIBUTION_KEY,
    DEMONSTRATED_LOOK_BACK_NS,
)
from headgate.pipeline.tables.columns import DAY_HOURS, HOUR_NS
from headgate.pipeline.tables.schemas import spark_schema, table_schema
from headgate.record.fields import STATE_FIELD_NAMES, Kind

_PROVING: Final = ("oldest_age_max_ns", "backlog_messages_start", "backlog_messages", "acked")

MINUTE_COLUMNS: Final = tuple(
    dict.fromkeys(("kind", *INPUT_COLUMNS, *STATE_FIELD_NAMES, *_PROVING))
)
"""What the steps here use of ``intervals``."""

_LOOK_BACK_HOURS = DEMONSTRATED_LOOK_BACK_NS // HOUR_NS
_ALL_HOURS = (-(1 << 62), 1 << 62)


def attribution(minutes: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``attribution`` for some hours, from ``intervals`` of these and the day before.

    A consumer's demonstrated rate is taken over the minute's hour and the 24 hours before it.
    """
    wanted = sorted(hours)
    rows, hour = _subscriptions(minutes), _hour()
    demonstrated = _demonstrated(rows, [(of - _LOOK_BACK_HOURS, of) for of in wanted])
    place = F.array_position(F.array(*(F.lit(of) for of in wanted)), hour) - 1
    asked = rows.where(hour.isin(wanted))
    judged = _with_demonstrated(asked.select(*INPUT_COLUMNS), demonstrated, place)
    judged = _with_waiters(judged, asked, (*sharing.TOPIC_KEY, "minute"))

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from attribution_table(pa.Table.from_batches([batch])).to_batches()

    return judged.mapInArrow(kernel, table_schema(ATTRIBUTION))


def range_judgements(minutes: DataFrame, since_ns: int, until_ns: int) -> DataFrame:
    """One row per subscription for the minutes that touch ``[since_ns, until_ns)``, judged from
    their summed seconds. Minutes before the range only prove the consumer's rate."""
    before_end = _subscriptions(minutes).where(F.col("from_ns") < until_ns)
    inside = before_end.where(F.col("to_ns") > since_ns)

    def sum_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from minute_runs(pa.Table.from_batches([batch])).to_batches()

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, ATTRIBUTION_KEY):
            yield from range_table(table).to_batches()

    runs = inside.select(*INPUT_COLUMNS).mapInArrow(sum_up, spark_schema(RUN_COLUMNS))
    demonstrated = _with_demonstrated(runs, _demonstrated(before_end, [_ALL_HOURS]), F.lit(0))
    return (
        _with_waiters(demonstrated, inside, sharing.TOPIC_KEY)
        .repartition(*ATTRIBUTION_KEY)
        .sortWithinPartitions(*SORT_COLUMNS)
        .mapInArrow(judge, spark_schema(RANGE_COLUMNS))
    )


def _subscriptions(minutes: DataFrame) -> DataFrame:
    return minutes.where(F.col("kind") == Kind.SUBSCRIPTION.value)


def _hour() -> Column:
    """The hour of a row, counted since the epoch, from the columns that files are laid out by."""
    return F.unix_date("date").cast("bigint") * F.lit(DAY_HOURS) + F.col("hour")


def _number(name: str) -> Column:
    return F.coalesce(F.col(name), F.lit(0))


def _proving(minutes: DataFrame) -> DataFrame:
    """The minutes that demonstrate a rate, and the rate: ``headgate.flow.account.demonstrated``."""
    held = (
        name for name, is_held in zip(STATE_FIELD_NAMES, HELD_BY_OTHERS, strict=True) if is_held
    )
    total_ns = reduce(add, (_number(name) for name in STATE_FIELD_NAMES))
    accounted_ns = F.when(total_ns > 0, total_ns).otherwise(F.col("covered_ns"))
    return minutes.where(
        (_number("oldest_age_max_ns") >= YOUNG_NS)
        & (accounted_ns > 0)
        & (_number("evicted") == 0)
        & (_number("backlog_messages_start") > 0)
        & (_number("backlog_messages") > 0)
        & (reduce(add, (_number(name) for name in held)) <= HELD_SHARE_MAX * accounted_ns)
    ).select(
        *ATTRIBUTION_KEY,
        _hour().alias(HOUR.name),
        F.try_divide(_number("acked") * float(NS_PER_S), accounted_ns).alias(RATE.name),
    )


def _demonstrated(minutes: DataFrame, windows: Sequence[tuple[int, int]]) -> DataFrame:
    """One row per subscription that proves any rate: its rate over each window of hours."""
    firsts, lasts = [first for first, _ in windows], [last for _, last in windows]
    rates = T.StructField(RATES, T.ArrayType(T.DoubleType()))

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, ATTRIBUTION_KEY):
            yield from demonstrated_rates(table, firsts, lasts).to_batches()

    return (
        _proving(minutes)
        .repartition(*ATTRIBUTION_KEY)
        .sortWithinPartitions(*ATTRIBUTION_KEY, HOUR.name)
        .mapInArrow(kernel, T.StructType([*spark_schema(KEYS).fields, rates]))
    )


def _with_demonstrated(rows: DataFrame, demonstrated: DataFrame, place: Column) -> DataFrame:
    """The rows with the demonstrated rate at a place, from 0, of their subscription's list.

    The lists are sent to every worker: a number for each subscription and wanted hour.
    """
    renamed = demonstrated.select(
        F.col(RATES), *(F.col(name).alias(f"demonstrated_{name}") for name in ATTRIBUTION_KEY)
    )
    same = reduce(
        and_, (F.col(name).eqNullSafe(F.col(f"demonstrated_{name}")) for name in ATTRIBUTION_KEY)
    )
    rate = F.get(F.col(RATES), place.cast("int")).alias(DEMONSTRATED_RATE.name)
    return rows.join(F.broadcast(renamed), same, "left").select(*rows.columns, rate)


def _with_waiters(rows: DataFrame, minutes: DataFrame, place: Sequence[str]) -> DataFrame:
    """The rows with how many subscriptions waited for their topic's limit at the same ``place``, as
    :func:`headgate.pipeline.kernels.sharing.waiters` counts them: null for less than two.

    Few topics have such a limit in force, and of these few columns are counted.
    """
    name = sharing.WAITERS.name
    held_ns = reduce(add, (_number(field) for field in sharing.HUNGRY_FIELDS))
    total_ns = reduce(add, (_number(field) for field in STATE_FIELD_NAMES))
    waited = (held_ns > 0) & (held_ns >= sharing.WAITING_SHARE_MIN * total_ns)
    each = minutes.where(waited).select(*place, "subscription").distinct()
    counted = each.groupBy(*place).agg(F.count("*").alias(name)).where(F.col(name) > 1)
    renamed = counted.select(name, *(F.col(key).alias(f"waited_{key}") for key in place))
    same = reduce(and_, (F.col(key).eqNullSafe(F.col(f"waited_{key}")) for key in place))
    return rows.join(F.broadcast(renamed), same, "left").select(*rows.columns, name)
