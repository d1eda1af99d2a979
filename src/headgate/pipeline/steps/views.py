"""Views: what follows from tables whenever somebody asks, so that nothing of it is stored.

Pure functions ``DataFrame -> DataFrame``, as :mod:`headgate.pipeline.steps.intervals`. The guide
has the same as SQL for DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.blame import LIMITERS
from headgate.pipeline.kernels.episodes import SEGMENT_ORDER, joined_table
from headgate.pipeline.kernels.rollup import ROLLUP_KEY
from headgate.pipeline.tables.arrow_types import whole_subjects
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY, BLAMES, SHARE_COLUMNS
from headgate.pipeline.tables.episodes import EPISODE_COLUMNS
from headgate.pipeline.tables.quotas import EVICTION_FIELDS
from headgate.pipeline.tables.schemas import spark_schema
from headgate.record.fields import PARK_CAUSES, Kind


def backlog_episodes(segments: DataFrame) -> DataFrame:
    """Whole episodes (``EPISODE_COLUMNS``) from rows of ``episodes``.

    Segments that meet at an hour's edge and say so are one episode. Of an episode that goes on
    beyond the rows given, ``continues_before`` or ``continues_after`` is true.
    """

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, ATTRIBUTION_KEY):
            yield from joined_table(table).to_batches()

    return (
        segments.drop("date", "hour")
        .repartition(*ATTRIBUTION_KEY)
        .sortWithinPartitions(*SEGMENT_ORDER)
        .mapInArrow(kernel, spark_schema(EPISODE_COLUMNS))
    )


_NAMESPACE: Final = r"^[^:]+://([^/]+/[^/]+)/"
"""A topic's tenant and namespace."""


def namespace_rollup(minutes: DataFrame, judged: DataFrame) -> DataFrame:
    """What happened in each namespace and minute, from ``intervals`` and ``attribution``.

    One row for each cluster, namespace and minute with a topic: how many ``topics`` (each partition
    by itself) and ``subscriptions``, messages and bytes in and out, the backlog at the minute's
    end (``backlog_messages`` over subscriptions, ``backlog_bytes`` of each topic's slowest),
    ``blame_CLASS_s`` (as :mod:`headgate.pipeline.kernels.blame` has it) and their part that limits
    are to blame for (``throttled_s``), evictions, and ``parked_s``: for how long producers were
    held, also by cause. Seconds are summed over subscriptions and topics: 120 in a minute are two
    of them all the time.
    """
    topics = _of_namespaces(minutes.where(F.col("kind") == Kind.TOPIC.value)).agg(
        F.count("*").alias("topics"),
        *(_sum(name).alias(name) for name in ("msgs_in", "bytes_in", "msgs_out", "bytes_out")),
        _sum("backlog_bytes").alias("backlog_bytes"),
        F.max("oldest_age_max_ns").alias("oldest_age_max_ns"),
        *(
            sum((_sum(f) for f in EVICTION_FIELDS if f.endswith(unit)), F.lit(0)).alias(
                f"evicted_{unit}"
            )
            for unit in ("messages", "bytes")
        ),
        *(_seconds(f"parked_{cause}_ns").alias(f"parked_{cause}_s") for cause in PARK_CAUSES),
    )
    backlogs = _of_namespaces(minutes.where(F.col("kind") == Kind.SUBSCRIPTION.value)).agg(
        F.count("*").alias("subscriptions"), _sum("backlog_messages").alias("backlog_messages")
    )
    covered_ns = F.col("completeness") * (F.col("to_ns") - F.col("from_ns"))
    weight_s = F.coalesce("accounted_ns", covered_ns) / NS_PER_S
    blamed = _of_namespaces(judged).agg(
        *(
            F.sum(share * weight_s).alias(f"blame_{blame.lower()}_s")
            for blame, share in _blamed_shares().items()
        )
    )
    joined = topics.join(backlogs, [*ROLLUP_KEY], "left").join(blamed, [*ROLLUP_KEY], "left")
    throttled = [f"blame_{limiter.lower()}_s" for limiter in LIMITERS]
    return joined.na.fill(0, ["subscriptions", "backlog_messages"]).select(
        *ROLLUP_KEY,
        *(name for name in joined.columns if name not in ROLLUP_KEY),
        sum((F.coalesce(name, F.lit(0.0)) for name in throttled), F.lit(0.0)).alias("throttled_s"),
        sum((F.col(f"parked_{c}_s") for c in PARK_CAUSES), F.lit(0.0)).alias("parked_s"),
    )


def _blamed_shares() -> dict[str, Column]:
    """:func:`headgate.pipeline.kernels.blame.blamed_shares` as expressions over ``attribution``."""
    shares = {blame: F.col(name) for blame, name in zip(BLAMES, SHARE_COLUMNS, strict=True)}
    for limiter in LIMITERS:
        stood_by = F.col("bystander") & (F.col("second") == limiter)
        moved = F.when(stood_by, shares[limiter]).otherwise(0.0)
        shares[limiter] = shares[limiter] - moved
        shares["CONSUMER"] = shares["CONSUMER"] + moved
    nobody = F.col("verdict") == "NONE"
    return {
        blame: F.when(nobody, 1.0 if blame == "NONE" else 0.0).otherwise(share)
        for blame, share in shares.items()
    }


def _of_namespaces(rows: DataFrame) -> GroupedData:
    named = rows.withColumn("namespace", F.regexp_extract("topic", _NAMESPACE, 1))
    return named.groupBy(*ROLLUP_KEY)


def _sum(name: str) -> Column:
    return F.coalesce(F.sum(name), F.lit(0))


def _seconds(name: str) -> Column:
    return _sum(name) / NS_PER_S
