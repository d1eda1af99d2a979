"""Steps about quota forecasts."""

from __future__ import annotations

from functools import partial
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.forecast_score import SCORE_COLUMNS, score_table
from headgate.pipeline.kernels.quota_forecast import FORECAST_COLUMNS
from headgate.pipeline.steps.kernel_runner import per_key
from headgate.pipeline.tables.intervals import TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.schemas import spark_schema
from headgate.record.fields import Kind

_FRESH: Final = "interval 5 minutes"
"""A topic whose last minute is older than its cluster's newest by more than this was deleted, or
moved to a broker that publishes no telemetry."""

_SCORED: Final = tuple(dict.fromkeys((*FORECAST_COLUMNS, *TOPIC_ORDER)))

SCORED_COLUMNS: Final = ("kind", *_SCORED)
"""Columns of ``intervals`` that :func:`forecast_scores` reads."""


def newest_usage(usage: DataFrame) -> DataFrame:
    """The last row of each topic in ``quota_usage``, of topics that have a quota in that minute.

    If a topic was deleted and created again, only the newer one counts. Topics whose last row is
    more than five minutes older than the newest of their cluster are left out.
    """
    topic = Window.partitionBy("cluster", "topic", "partition")
    last = topic.orderBy(F.desc("minute"), F.desc("incarnation"))
    newest = F.max("minute").over(Window.partitionBy("cluster"))
    return (
        usage.withColumn("_newest", newest)
        .where(F.col("minute") > F.col("_newest") - F.expr(_FRESH))
        .withColumn("_rank", F.row_number().over(last))
        # A row without a method has no quota.
        .where((F.col("_rank") == 1) & F.col("method").isNotNull())
        .drop("_newest", "_rank")
    )


def forecast_scores(minutes: DataFrame, since_ns: int, until_ns: int) -> DataFrame:
    """One row for each topic and quota: how good the forecasts of minutes that begin in
    ``[since_ns, until_ns)`` were.

    ``minutes`` are ``intervals`` of that time, of the hour before it, and of the day after it as
    far as there is telemetry.
    """
    topics = minutes.where(F.col("kind") == Kind.TOPIC.value).select(*_SCORED)
    kernel = partial(score_table, since_ns=since_ns, until_ns=until_ns)
    return per_key(topics, TOPIC_KEY, TOPIC_ORDER, kernel, spark_schema(SCORE_COLUMNS))
