"""Steps that attribute what held the producers of each topic, by minute and over a range."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.publish_limits import BROKER_LIMIT_COLUMNS
from headgate.pipeline.kernels.publishing import (
    INTERVAL_COLUMNS,
    RANGE_COLUMNS,
    publish_range_table,
    publish_table,
)
from headgate.pipeline.steps.hours import HOUR_COLUMNS, hour_of
from headgate.pipeline.steps.joins import left_join
from headgate.pipeline.steps.kernel_runner import per_key
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION
from headgate.pipeline.tables.schemas import spark_schema, table_schema
from headgate.record.fields import DIMENSIONS, Kind

_BROKER_LEVEL: Final = "publish_broker"
"""Value of ``level`` in rows of the limiter for all topics of a broker."""

_BROKER_MINUTE: Final = ("cluster", "broker", "minute")

_LIMIT_COLUMNS: Final = ("level", "dimension", "limit", "limit_period_ns", "limit_source")

MINUTE_COLUMNS: Final = tuple(
    dict.fromkeys(("kind", *HOUR_COLUMNS, *_BROKER_MINUTE, *INTERVAL_COLUMNS, *_LIMIT_COLUMNS))
)
"""Columns of ``intervals`` that the steps here read."""


def publish_attribution(minutes: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``publish_attribution`` for some hours (numbers since the epoch), from ``intervals``
    of these and the minute before each."""
    near = minutes.where(hour_of().isin(sorted(hours)) | (F.minute("minute") == 59))
    kernel = partial(publish_table, hours=frozenset(hours))
    return per_key(
        _topics_with_limits(near), TOPIC_KEY, TOPIC_ORDER, kernel, table_schema(PUBLISH_ATTRIBUTION)
    )


def publish_judgements(minutes: DataFrame, since_ns: int, until_ns: int) -> DataFrame:
    """One row for each topic (``RANGE_COLUMNS``): what held its producers in ``[since_ns,
    until_ns)``, from the summed seconds of the minutes of ``intervals`` that touch it."""
    # The minute before the range has the limit with which the first one inside began.
    near = minutes.where((F.col("to_ns") > since_ns - MINUTE_NS) & (F.col("from_ns") < until_ns))
    kernel = partial(publish_range_table, since_ns=since_ns, until_ns=until_ns)
    return per_key(
        _topics_with_limits(near), TOPIC_KEY, TOPIC_ORDER, kernel, spark_schema(RANGE_COLUMNS)
    )


def _topics_with_limits(minutes: DataFrame) -> DataFrame:
    """Minutes of topics, each with the publish limit that its broker had for all its topics."""
    topics = minutes.where(F.col("kind") == Kind.TOPIC.value).select(*INTERVAL_COLUMNS)
    limiters_of_brokers = minutes.where(
        (F.col("kind") == Kind.LIMITER.value) & (F.col("level") == _BROKER_LEVEL)
    )
    per_s = F.col("limit") * float(NS_PER_S) / F.coalesce("limit_period_ns", F.lit(NS_PER_S))
    limits = limiters_of_brokers.groupBy(*_BROKER_MINUTE).agg(
        *(
            F.max(F.when(F.col("dimension") == dimension, value)).alias(
                f"broker_limit_{dimension}_{part}"
            )
            for dimension in DIMENSIONS
            for part, value in (("per_s", per_s), ("source", F.col("limit_source")))
        )
    )
    # Brokers are few, and most have no such limit.
    joined = left_join(topics, limits, _BROKER_MINUTE, broadcast=True)
    return joined.select(*INTERVAL_COLUMNS, *BROKER_LIMIT_COLUMNS)
