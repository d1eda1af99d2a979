"""Views: rows that are computed from tables on request and not stored.

The kernels define each view once: ``headgate pipeline show`` computes it from files, and these
steps from DataFrames. ``headgate.pipeline.sql.view_texts`` has the same in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.episodes import SEGMENT_ORDER, joined_table
from headgate.pipeline.kernels.rollup import (
    JUDGED_INPUT,
    JUDGED_SUMS,
    ROLLUP_COLUMNS,
    ROLLUP_KEY,
    SUBSCRIPTION_INPUT,
    SUBSCRIPTION_SUMS,
    TOPIC_INPUT,
    TOPIC_SUMS,
    Sums,
    judged_parts,
    part_columns,
    rollup_rows,
    subscription_parts,
    topic_parts,
)
from headgate.pipeline.steps.joins import left_join
from headgate.pipeline.steps.kernel_runner import Kernel, per_batch, per_key
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.episodes import EPISODE_COLUMNS
from headgate.pipeline.tables.schemas import spark_schema
from headgate.record.fields import Kind

_AGGREGATES: Final = {"sum": F.sum, "max": F.max, "count": F.count}


def backlog_episodes(segments: DataFrame) -> DataFrame:
    """Whole episodes (``EPISODE_COLUMNS``) from rows of ``episodes``.

    Segments of one episode meet at an hour's edge. If an episode continues beyond the rows given,
    ``continues_before`` or ``continues_after`` is true.
    """
    return per_key(
        segments.drop("date", "hour"),
        ATTRIBUTION_KEY,
        SEGMENT_ORDER,
        joined_table,
        spark_schema(EPISODE_COLUMNS),
    )


def namespace_rollup(minutes: DataFrame, judged: DataFrame) -> DataFrame:
    """What happened in each namespace and minute (``ROLLUP_COLUMNS``), from ``intervals`` and
    ``attribution``: a row for each cluster, namespace and minute with a topic.

    Seconds are summed over subscriptions and topics, so a minute may have more than 60.
    """
    topics = minutes.where(F.col("kind") == Kind.TOPIC.value)
    subscriptions = minutes.where(F.col("kind") == Kind.SUBSCRIPTION.value)
    joined = _summed(topics, TOPIC_INPUT, topic_parts, TOPIC_SUMS, "topics")
    for more in (
        _summed(
            subscriptions,
            SUBSCRIPTION_INPUT,
            subscription_parts,
            SUBSCRIPTION_SUMS,
            "subscriptions",
        ),
        _summed(judged, JUDGED_INPUT, judged_parts, JUDGED_SUMS, ""),
    ):
        joined = left_join(joined, more, ROLLUP_KEY)
    return per_batch(joined, rollup_rows, spark_schema(ROLLUP_COLUMNS))


def _summed(
    rows: DataFrame, columns: Sequence[str], parts: Kernel, sums: Sums, count: str
) -> DataFrame:
    """The sums of each namespace and minute; the number of rows is called ``count``."""
    pieces = per_batch(rows.select(*columns), parts, spark_schema(part_columns(sums)))

    def aggregate(name: str, function: str) -> Column:
        return _AGGREGATES[function](name).alias(count if function == "count" else name)

    return pieces.groupBy(*ROLLUP_KEY).agg(*(aggregate(*made) for made in sums))
