"""Steps about limits: what they did to producers, and to those who waited. As
:mod:`headgate.pipeline.steps.intervals`: ``DataFrame -> DataFrame``, no session, no input or
output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import reduce
from operator import and_
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels import limiters
from headgate.pipeline.kernels.publish_limits import BROKER_LIMIT_COLUMNS
from headgate.pipeline.kernels.publishing import (
    INTERVAL_COLUMNS,
    RANGE_COLUMNS,
    publish_range_table,
    publish_table,
)
from headgate.pipeline.tables.arrow_types import whole_subjects
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.publishing import LIMITER_KEY, PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.schemas import spark_schema, table_schema
from headgate.record.fields import DIMENSIONS, Kind

_BROKER_LEVEL: Final = "publish_broker"
"""Value of ``level`` in rows of the limiter for all topics of a broker."""

_PLACE: Final = ("cluster", "broker", "minute")


_LIMIT_COLUMNS: Final = ("level", "dimension", "limit", "limit_period_ns", "limit_source")

MINUTE_COLUMNS: Final = tuple(dict.fromkeys(("kind", *_PLACE, *INTERVAL_COLUMNS, *_LIMIT_COLUMNS)))
"""What :func:`publish_attribution` and :func:`publish_judgements` use of ``intervals``."""

LIMITER_MINUTE_COLUMNS: Final = ("kind", *limiters.INTERVAL_COLUMNS)
"""What :func:`throttle_timeline` uses of ``intervals``."""

LIMITER_SAMPLE_COLUMNS: Final = tuple(
    dict.fromkeys(("kind", *LIMITER_KEY, "covered_to_ns", *limiters.SAMPLE_COLUMNS))
)
"""What it uses of ``bronze_samples``."""


def publish_attribution(minutes: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``publish_attribution`` for some hours (numbers since the epoch), from ``intervals``
    of these and the minute before each."""
    wanted = frozenset(hours)
    hour = F.floor(F.unix_seconds("minute") / (HOUR_NS // NS_PER_S))
    near = minutes.where(hour.isin(sorted(wanted)) | (F.minute("minute") == 59))

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, TOPIC_KEY):
            yield from publish_table(table, wanted).to_batches()

    return _topics_with_limits(near).mapInArrow(kernel, table_schema(PUBLISH_ATTRIBUTION))


def publish_judgements(minutes: DataFrame, since_ns: int, until_ns: int) -> DataFrame:
    """One row for each topic (``RANGE_COLUMNS``): what held its producers in ``[since_ns,
    until_ns)``, from the summed seconds of the minutes of ``intervals`` that touch it."""

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, TOPIC_KEY):
            yield from publish_range_table(table, since_ns, until_ns).to_batches()

    # The minute before the range tells the limit with which its first one began.
    near = minutes.where((F.col("to_ns") > since_ns - MINUTE_NS) & (F.col("from_ns") < until_ns))
    return _topics_with_limits(near).mapInArrow(kernel, spark_schema(RANGE_COLUMNS))


def _topics_with_limits(minutes: DataFrame) -> DataFrame:
    """Minutes of topics with the broker-wide publish limit of the broker that had them, sorted by
    subject."""
    topics = minutes.where(F.col("kind") == Kind.TOPIC.value).select(*INTERVAL_COLUMNS)
    limiters_of_brokers = minutes.where(
        (F.col("kind") == Kind.LIMITER.value) & (F.col("level") == _BROKER_LEVEL)
    )
    per_s = F.col("limit") * float(NS_PER_S) / F.coalesce("limit_period_ns", F.lit(NS_PER_S))
    limits = limiters_of_brokers.groupBy(*_PLACE).agg(
        *(
            F.max(F.when(F.col("dimension") == dimension, value)).alias(
                f"broker_limit_{dimension}_{part}"
            )
            for dimension in DIMENSIONS
            for part, value in (("per_s", per_s), ("source", F.col("limit_source")))
        )
    )
    return (
        # Brokers are few, and most have no such limit.
        topics.join(F.broadcast(limits), [*_PLACE], "left")
        .select(*INTERVAL_COLUMNS, *BROKER_LIMIT_COLUMNS)
        .repartition(*TOPIC_KEY)
        .sortWithinPartitions(*TOPIC_ORDER)
    )


def throttle_timeline(minutes: DataFrame, samples: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``throttle_timeline`` for some hours, from ``intervals`` and ``bronze_samples`` of
    these."""
    wanted = frozenset(hours)
    key = (*LIMITER_KEY, "minute")
    # A row is of the minute of its last nanosecond. Whole numbers: a double would round that up.
    minute = F.expr(f"(covered_to_ns - 1) div {MINUTE_NS}") * (MINUTE_NS // NS_PER_S)
    named = (
        samples.where((F.col("kind") == Kind.LIMITER.value) & F.col("waiter_1").isNotNull())
        .withColumn("minute", F.timestamp_seconds(minute))
        .groupBy(*key)
        .agg(F.collect_list(F.struct(*limiters.SAMPLE_COLUMNS)).alias(limiters.SAMPLES))
    )
    limits = minutes.where(F.col("kind") == Kind.LIMITER.value).select(*limiters.INTERVAL_COLUMNS)
    joined = left_join(limits, named, key)

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            yield from limiters.timeline_table(table, wanted).to_batches()

    return joined.mapInArrow(kernel, table_schema(THROTTLE_TIMELINE))


def left_join(rows: DataFrame, more: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """All rows, with the other columns of those that have the same key, null being one value."""
    right = more.select(
        *(F.col(name).alias(f"_{name}") for name in key),
        *(name for name in more.columns if name not in key),
    )
    same: list[Column] = [F.col(name).eqNullSafe(F.col(f"_{name}")) for name in key]
    return rows.join(right, reduce(and_, same), "left").drop(*(f"_{name}" for name in key))
