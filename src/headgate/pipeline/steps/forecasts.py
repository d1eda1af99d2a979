"""Steps about quota forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.forecast_score import SCORE_COLUMNS, score_table
from headgate.pipeline.kernels.quota_forecast import FORECAST_COLUMNS
from headgate.pipeline.tables.arrow_types import whole_subjects
from headgate.pipeline.tables.intervals import TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.schemas import spark_schema
from headgate.record.fields import Kind

_FRESH: Final = "interval 5 minutes"
"""A topic whose last minute is further behind its cluster's is gone, or is told of no more."""


_SCORED: Final = tuple(dict.fromkeys((*FORECAST_COLUMNS, *TOPIC_ORDER)))

SCORED_COLUMNS: Final = ("kind", *_SCORED)
"""What :func:`forecast_scores` uses of ``intervals``."""


def newest_usage(usage: DataFrame) -> DataFrame:
    """The last row of each topic in ``quota_usage`` that has a quota in force then.

    Of a name that was used again only the last topic counts; of one that is behind the newest
    minute of its cluster by five minutes nothing is known.
    """
    topic = Window.partitionBy("cluster", "topic", "partition")
    last = topic.orderBy(F.desc("minute"), F.desc("incarnation"))
    newest = F.max("minute").over(Window.partitionBy("cluster"))
    return (
        usage.withColumn("_newest", newest)
        .where(F.col("minute") > F.col("_newest") - F.expr(_FRESH))
        .withColumn("_place", F.row_number().over(last))
        .where((F.col("_place") == 1) & F.col("method").isNotNull())
        .drop("_newest", "_place")
    )


def forecast_scores(minutes: DataFrame, since_ns: int, until_ns: int) -> DataFrame:
    """One row for each topic and quota: how good the forecasts of minutes that begin in
    ``[since_ns, until_ns)`` were.

    ``minutes`` are ``intervals`` of that time, of the hour before it, and of the day after it as
    far as there is telemetry.
    """

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, TOPIC_KEY):
            yield from score_table(table, since_ns, until_ns).to_batches()

    return (
        minutes.where(F.col("kind") == Kind.TOPIC.value)
        .select(*_SCORED)
        .repartition(*TOPIC_KEY)
        .sortWithinPartitions(*TOPIC_ORDER)
        .mapInArrow(kernel, spark_schema(SCORE_COLUMNS))
    )
