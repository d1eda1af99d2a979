"""Steps that attribute backlogs to their causes, by minute and over a range.

Wide rows of minutes are never shuffled: each is judged where it was read. A consumer's demonstrated
rate needs a day of minutes, but only few of them demonstrate a rate, and of these only the rate is
needed. A separate step computes it and returns one small row for each subscription.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.flow.account.demonstrated import HELD_BY_OTHERS, HELD_SHARE_MAX
from headgate.flow.account.verdict import YOUNG_NS
from headgate.pipeline.kernels import topic_waiters
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
from headgate.pipeline.steps.hours import HOUR_COLUMNS, hour_of
from headgate.pipeline.steps.joins import left_join
from headgate.pipeline.steps.kernel_runner import per_batch, per_key
from headgate.pipeline.tables.attribution import (
    ATTRIBUTION,
    ATTRIBUTION_KEY,
    DEMONSTRATED_LOOK_BACK_NS,
)
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.schemas import spark_schema, table_schema
from headgate.record.fields import STATE_FIELD_NAMES, Kind

_DEMONSTRATING: Final = (
    "oldest_age_max_ns", "backlog_messages_start", "backlog_messages", "acked",
)  # fmt: skip

MINUTE_COLUMNS: Final = tuple(
    dict.fromkeys(("kind", *HOUR_COLUMNS, *INPUT_COLUMNS, *STATE_FIELD_NAMES, *_DEMONSTRATING))
)
"""Columns of ``intervals`` that the steps here read."""

_LOOK_BACK_HOURS: Final = DEMONSTRATED_LOOK_BACK_NS // HOUR_NS
_ALL_HOURS: Final = (-(1 << 62), 1 << 62)


def attribution(minutes: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``attribution`` for some hours, from ``intervals`` of these and the day before.

    A consumer's demonstrated rate is taken over the minute's hour and the 24 hours before it.
    """
    wanted = sorted(hours)
    rows, hour = _subscriptions(minutes), hour_of()
    rates = _demonstrated(rows, [(last - _LOOK_BACK_HOURS, last) for last in wanted])
    position = F.array_position(F.array(*(F.lit(number) for number in wanted)), hour) - 1
    inside = rows.where(hour.isin(wanted))
    judged = _with_demonstrated(inside.select(*INPUT_COLUMNS), rates, position)
    judged = _with_waiters(judged, inside, (*topic_waiters.TOPIC_KEY, "minute"))
    return per_batch(judged, attribution_table, table_schema(ATTRIBUTION))


def range_judgements(minutes: DataFrame, since_ns: int, until_ns: int) -> DataFrame:
    """One row per subscription for the minutes that touch ``[since_ns, until_ns)``, judged from
    their summed seconds. Minutes before the range only demonstrate the consumer's rate."""
    before_end = _subscriptions(minutes).where(F.col("from_ns") < until_ns)
    inside = before_end.where(F.col("to_ns") > since_ns)
    runs = per_batch(inside.select(*INPUT_COLUMNS), minute_runs, spark_schema(RUN_COLUMNS))
    judged = _with_demonstrated(runs, _demonstrated(before_end, [_ALL_HOURS]), F.lit(0))
    judged = _with_waiters(judged, inside, topic_waiters.TOPIC_KEY)
    return per_key(judged, ATTRIBUTION_KEY, SORT_COLUMNS, range_table, spark_schema(RANGE_COLUMNS))


def _subscriptions(minutes: DataFrame) -> DataFrame:
    return minutes.where(F.col("kind") == Kind.SUBSCRIPTION.value)


def _or_zero(*names: str) -> Column:
    """The sum of some columns, where null counts as 0. One text, because Python asks Java once for
    each function of a Column, and the states are dozens."""
    return F.expr(" + ".join(f"coalesce({name}, 0)" for name in names))


def _demonstrating(minutes: DataFrame) -> DataFrame:
    """The minutes that demonstrate a rate, and the rate: ``headgate.flow.account.demonstrated``."""
    held = (
        name for name, is_held in zip(STATE_FIELD_NAMES, HELD_BY_OTHERS, strict=True) if is_held
    )
    total_ns = _or_zero(*STATE_FIELD_NAMES)
    accounted_ns = F.when(total_ns > 0, total_ns).otherwise(F.col("covered_ns"))
    return minutes.where(
        (_or_zero("oldest_age_max_ns") >= YOUNG_NS)
        & (accounted_ns > 0)
        & (_or_zero("evicted") == 0)
        & (_or_zero("backlog_messages_start") > 0)
        & (_or_zero("backlog_messages") > 0)
        & (_or_zero(*held) <= HELD_SHARE_MAX * accounted_ns)
    ).select(
        *ATTRIBUTION_KEY,
        hour_of().alias(HOUR.name),
        F.try_divide(_or_zero("acked") * float(NS_PER_S), accounted_ns).alias(RATE.name),
    )


def _demonstrated(minutes: DataFrame, windows: Sequence[tuple[int, int]]) -> DataFrame:
    """One row per subscription with any demonstrated rate: its rate over each window of hours."""
    rates = T.StructField(RATES, T.ArrayType(T.DoubleType()))
    kernel = partial(
        demonstrated_rates,
        first_hours=[first for first, _ in windows],
        last_hours=[last for _, last in windows],
    )
    return per_key(
        _demonstrating(minutes),
        ATTRIBUTION_KEY,
        (*ATTRIBUTION_KEY, HOUR.name),
        kernel,
        T.StructType([*spark_schema(KEYS).fields, rates]),
    )


def _with_demonstrated(rows: DataFrame, rates: DataFrame, position: Column) -> DataFrame:
    """The rows, each with the rate at a position, from 0, of its subscription's list.

    The lists are sent to every worker: a number for each subscription and wanted hour.
    """
    rate = F.get(F.col(RATES), position.cast("int")).alias(DEMONSTRATED_RATE.name)
    joined = left_join(rows, rates, ATTRIBUTION_KEY, broadcast=True)
    return joined.select(*rows.columns, rate)


def _with_waiters(rows: DataFrame, minutes: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows, each with how many subscriptions with the same ``key`` waited for their topic's
    limit, as :func:`headgate.pipeline.kernels.topic_waiters.waiters` counts them: null for less
    than two.

    Few topics have such a limit in force, and of these few columns are counted.
    """
    name = topic_waiters.WAITERS.name
    held_ns, total_ns = _or_zero(*topic_waiters.HUNGRY_FIELDS), _or_zero(*STATE_FIELD_NAMES)
    waited = (held_ns > 0) & (held_ns >= topic_waiters.WAITING_SHARE_MIN * total_ns)
    # A set, because a distinct count would shuffle twice.
    names = F.size(F.collect_set("subscription")).cast("long").alias(name)
    counted = minutes.where(waited).groupBy(*key).agg(names).where(F.col(name) > 1)
    return left_join(rows, counted, key, broadcast=True)
