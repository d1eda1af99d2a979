"""The step to ``throttle_timeline``: the use of each limiter, by minute."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels import limiters
from headgate.pipeline.steps.joins import left_join
from headgate.pipeline.steps.kernel_runner import per_batch
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.publishing import LIMITER_KEY, THROTTLE_TIMELINE
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind

LIMITER_MINUTE_COLUMNS: Final = ("kind", *limiters.INTERVAL_COLUMNS)
"""Columns of ``intervals`` that :func:`throttle_timeline` reads."""

LIMITER_SAMPLE_COLUMNS: Final = tuple(
    dict.fromkeys(("kind", *LIMITER_KEY, "covered_to_ns", *limiters.SAMPLE_COLUMNS))
)
"""Columns of ``bronze_samples`` that :func:`throttle_timeline` reads."""


def throttle_timeline(minutes: DataFrame, samples: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``throttle_timeline`` for some hours, from ``intervals`` and ``bronze_samples`` of
    these."""
    key = (*LIMITER_KEY, "minute")
    # A row belongs to the minute of its last nanosecond. A division of doubles would round up.
    minute = F.expr(f"(covered_to_ns - 1) div {MINUTE_NS}") * (MINUTE_NS // NS_PER_S)
    waiters = (
        samples.where((F.col("kind") == Kind.LIMITER.value) & F.col("waiter_1").isNotNull())
        .withColumn("minute", F.timestamp_seconds(minute))
        .groupBy(*key)
        .agg(F.collect_list(F.struct(*limiters.SAMPLE_COLUMNS)).alias(limiters.SAMPLES))
    )
    limits = minutes.where(F.col("kind") == Kind.LIMITER.value).select(*limiters.INTERVAL_COLUMNS)
    kernel = partial(limiters.timeline_table, hours=frozenset(hours))
    return per_batch(left_join(limits, waiters, key), kernel, table_schema(THROTTLE_TIMELINE))
