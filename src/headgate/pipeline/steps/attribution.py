"""Steps that attribute backlogs to their causes, by minute and over a range.

A consumer's demonstrated rate needs a day of minutes, but only few of them demonstrate a rate, and
of these only the rate is needed. A table keeps it, by subscription and hour
(``demonstrated_rates``). So a verdict reads its own minute and these small rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.flow.account.demonstrated import HELD_BY_OTHERS, HELD_SHARE_MAX
from headgate.flow.account.verdict import YOUNG_NS
from headgate.pipeline.kernels import demonstrated_rates as rates_kernel
from headgate.pipeline.kernels import topic_waiters
from headgate.pipeline.kernels.attribution import (
    DEMONSTRATED_RATE,
    INPUT_COLUMNS,
    RANGE_COLUMNS,
    attribution_table,
    range_table,
)
from headgate.pipeline.kernels.demonstrated_rates import HOUR, MINUTE, OVERALL, RATE, RUNNING
from headgate.pipeline.kernels.minute_runs import RUN_COLUMNS, minute_runs
from headgate.pipeline.kernels.ranges import SORT_COLUMNS
from headgate.pipeline.steps.hours import HOUR_COLUMNS, hour_of, only_minutes
from headgate.pipeline.steps.joins import left_join
from headgate.pipeline.steps.kernel_runner import per_batch, per_key
from headgate.pipeline.tables.attribution import (
    ATTRIBUTION,
    ATTRIBUTION_KEY,
    DEMONSTRATED_LOOK_BACK_NS,
)
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES, RATES
from headgate.pipeline.tables.schemas import spark_schema, table_schema
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from headgate.record.fields import STATE_FIELD_NAMES, Kind

_DEMONSTRATING: Final = (
    "oldest_age_max_ns", "backlog_messages_start", "backlog_messages", "delayed_start", "delayed",
    "acked",
)  # fmt: skip

MINUTE_COLUMNS: Final = tuple(
    dict.fromkeys(("kind", *HOUR_COLUMNS, *INPUT_COLUMNS, *STATE_FIELD_NAMES, *_DEMONSTRATING))
)
"""Columns of ``intervals`` that the steps here read."""

LOOK_BACK_HOURS: Final = DEMONSTRATED_LOOK_BACK_NS // HOUR_NS
"""How many hours before a minute's own its demonstrated rate is taken from."""


def attribution(
    minutes: DataFrame, rates: DataFrame, touched: TouchedMinutes, *, broadcast: bool = False
) -> DataFrame:
    """Rows of ``attribution`` for some minutes, from ``intervals`` of their hours.

    ``rates``: :func:`rates_up_to` these minutes. With ``broadcast``, if they and the minutes are
    few, wide rows of minutes are judged where they were read.
    """
    rows, hour = _subscriptions(minutes), hour_of()
    inside = only_minutes(rows.where(hour.isin(sorted(touched))), touched)
    judged = inside.select(*INPUT_COLUMNS).withColumn(HOUR.name, hour)
    key = (*ATTRIBUTION_KEY, HOUR.name)
    joined = left_join(judged, rates, key, broadcast=broadcast)
    rate = F.get(F.col(RATES.name), F.minute("minute")).alias(DEMONSTRATED_RATE.name)
    judged = _with_waiters(
        joined.select(*INPUT_COLUMNS, rate),
        inside,
        (*topic_waiters.TOPIC_KEY, "minute"),
        broadcast=broadcast,
    )
    return per_batch(judged, attribution_table, table_schema(ATTRIBUTION))


def hourly_rates(minutes: DataFrame, before: DataFrame, touched: TouchedMinutes) -> DataFrame:
    """Rows of ``demonstrated_rates`` of some hours, from these minutes of ``intervals`` and, for
    the other minutes of the hours, from the rows that the table has."""
    new = _demonstrating(only_minutes(_subscriptions(minutes), touched))
    old = (
        before.where(hour_of().isin(sorted(touched.partial)))
        .select(
            *ATTRIBUTION_KEY,
            hour_of().alias(HOUR.name),
            F.posexplode(RATES.name).alias(MINUTE.name, RATE.name),
        )
        .where(F.col(RATE.name).isNotNull() & ~_is_touched(touched))
    )
    key = (*ATTRIBUTION_KEY, HOUR.name)
    return per_key(
        new.unionByName(old) if touched.partial else new,
        key,
        key,
        rates_kernel.hourly_rates,
        table_schema(DEMONSTRATED_RATES),
    )


def _is_touched(touched: TouchedMinutes) -> Column:
    found = F.lit(False)
    for hour in sorted(touched.partial):
        minutes = touched[hour]
        inside = F.col(MINUTE.name).between(minutes.start, minutes.stop - 1)
        found = found | ((F.col(HOUR.name) == hour) & inside)
    return found


def rates_up_to(hourly: DataFrame, touched: TouchedMinutes) -> DataFrame:
    """The demonstrated rates up to some minutes, from ``demonstrated_rates`` of their hours and the
    day before."""
    kernel = partial(rates_kernel.running_rates, touched=touched, look_back_hours=LOOK_BACK_HOURS)
    order = (*ATTRIBUTION_KEY, *HOUR_COLUMNS)
    return per_key(hourly, ATTRIBUTION_KEY, order, kernel, spark_schema(RUNNING))


def range_judgements(minutes: DataFrame, since_ns: int, until_ns: int) -> DataFrame:
    """One row per subscription for the minutes that touch ``[since_ns, until_ns)``, judged from
    their summed seconds. Minutes before the range only demonstrate the consumer's rate."""
    before_end = _subscriptions(minutes).where(F.col("from_ns") < until_ns)
    inside = before_end.where(F.col("to_ns") > since_ns)
    runs = per_batch(inside.select(*INPUT_COLUMNS), minute_runs, spark_schema(RUN_COLUMNS))
    judged = _with_demonstrated(runs, before_end)
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
        & (_or_zero("evicted", "expired") == 0)
        & (_or_zero("backlog_messages_start") > _or_zero("delayed_start"))
        & (_or_zero("backlog_messages") > _or_zero("delayed"))
        & (_or_zero(*held) <= HELD_SHARE_MAX * accounted_ns)
    ).select(
        *ATTRIBUTION_KEY,
        hour_of().alias(HOUR.name),
        F.minute("minute").alias(MINUTE.name),
        F.try_divide(_or_zero("acked") * float(NS_PER_S), accounted_ns).alias(RATE.name),
    )


def _with_demonstrated(rows: DataFrame, minutes: DataFrame) -> DataFrame:
    """The rows, each with the rate that its subscription demonstrated in all of some minutes."""
    rates = per_key(
        _demonstrating(minutes).select(*ATTRIBUTION_KEY, RATE.name),
        ATTRIBUTION_KEY,
        ATTRIBUTION_KEY,
        rates_kernel.demonstrated_rates,
        spark_schema(OVERALL),
    )
    joined = left_join(rows, rates, ATTRIBUTION_KEY)
    return joined.select(*rows.columns, F.col(RATE.name).alias(DEMONSTRATED_RATE.name))


def _with_waiters(
    rows: DataFrame, minutes: DataFrame, key: Sequence[str], *, broadcast: bool = False
) -> DataFrame:
    """The rows, each with how many subscriptions with the same ``key`` waited for their topic's
    limit, as :func:`headgate.pipeline.kernels.topic_waiters.waiters` counts them: null for less
    than two.

    Few topics have such a limit in force, and of these few columns are counted. But of many topics
    few are many, too: without ``broadcast`` Spark measures them first.
    """
    name = topic_waiters.WAITERS.name
    held_ns, total_ns = _or_zero(*topic_waiters.HUNGRY_FIELDS), _or_zero(*STATE_FIELD_NAMES)
    waited = (held_ns > 0) & (held_ns >= topic_waiters.WAITING_SHARE_MIN * total_ns)
    # A set, because a distinct count would shuffle twice.
    names = F.size(F.collect_set("subscription")).cast("long").alias(name)
    counted = minutes.where(waited).groupBy(*key).agg(names).where(F.col(name) > 1)
    return left_join(rows, counted, key, broadcast=broadcast)
