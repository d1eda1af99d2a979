"""Attribution over a time range, from the table ``intervals``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headgate.base.units import INT64_MAX
from headgate.pipeline.session import batches_by_count
from headgate.pipeline.steps import attribution, publishing
from headgate.pipeline.store.delta_log import open_table, table_files
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.attribution import DEMONSTRATED_LOOK_BACK_NS
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.fields import Kind


def judge_range(
    spark: SparkSession, root: str, since_ns: int | None, until_ns: int | None
) -> list[dict[str, Any]]:
    """Judge every subscription over a range of the table ``intervals``."""
    return _judged_range(
        spark, root, since_ns, until_ns, attribution.range_judgements,
        columns=attribution.MINUTE_COLUMNS, kinds=(Kind.SUBSCRIPTION,),
        look_back_ns=DEMONSTRATED_LOOK_BACK_NS,
    )  # fmt: skip


def judge_producers(
    spark: SparkSession, root: str, since_ns: int | None, until_ns: int | None
) -> list[dict[str, Any]]:
    """What held the producers of every topic over a range of the table ``intervals``."""
    return _judged_range(
        spark, root, since_ns, until_ns, publishing.publish_judgements,
        columns=publishing.MINUTE_COLUMNS, kinds=(Kind.TOPIC, Kind.LIMITER),
        look_back_ns=MINUTE_NS,
    )  # fmt: skip


def _judged_range(
    spark: SparkSession,
    root: str,
    since_ns: int | None,
    until_ns: int | None,
    step: Callable[[DataFrame, int, int], DataFrame],
    *,
    columns: Collection[str],
    kinds: Collection[Kind],
    look_back_ns: int,
) -> list[dict[str, Any]]:
    """Rows of ``step`` over the files of ``intervals`` that a range needs, of some kinds."""
    first = 0 if since_ns is None else since_ns
    last = INT64_MAX if until_ns is None else until_ns
    wanted = {kind.value for kind in kinds}
    files = [
        file
        for file in table_files(open_table(root, INTERVALS))
        if file.partition["kind"] in wanted
        and (first - look_back_ns) // HOUR_NS <= file.hour <= last // HOUR_NS
    ]
    if not files:
        return []
    minutes = read_files(spark, root, INTERVALS, files, columns)
    with batches_by_count(spark):
        rows = step(minutes, first, last).toArrow()
    found: list[dict[str, Any]] = rows.to_pylist()
    return found
