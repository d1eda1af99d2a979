"""The backtest as a Spark job, from ``bronze_samples`` to ``policy_backtest``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.units import INT64_MAX, NS_PER_S
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE
from headgate.pipeline.backtest.buckets import BUCKET, pack, sorted_by, unpack
from headgate.pipeline.backtest.grid import Grid
from headgate.pipeline.backtest.input_rows import PATH, input_rows
from headgate.pipeline.backtest.limit_sources import (
    IS_ADAPTIVE,
    LIMIT_COLUMNS,
    SOURCE_COLUMNS,
    VALUE_COLUMNS,
    Namespace,
    is_complete,
    known_name,
    namespaces_of,
    value_name,
    with_older,
)
from headgate.pipeline.backtest.policy import settings_text
from headgate.pipeline.backtest.ranking import PointTotals, Ranked, rank
from headgate.pipeline.backtest.replay_table import replay_table
from headgate.pipeline.backtest.series import GAP_NS_MAX, SORT_COLUMNS
from headgate.pipeline.backtest.settings_commands import settings_commands
from headgate.pipeline.backtest.task_progress import reporting_tasks
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.clustering import clustered
from headgate.pipeline.store.delta_log import TableFile, ensure_table, open_table, table_files
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.store.lock_tokens import writer_options
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.arrow_types import whole_subjects
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST, REPLAY_COLUMNS
from headgate.pipeline.tables.schemas import spark_schema
from headgate.record.fields import Kind

NEWEST_NS: Final = 10 * MINUTE_NS
"""Time in which most topics have a row with the sources of their limits."""

TopicKey = tuple[str | None, str]
"""Cluster and topic."""

BUCKETS_PER_CORE: Final = 4
BUCKET_ROWS: Final = 75_000
"""Most rows of a bucket, for the memory of a worker."""
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAXIMA: Final = ("parked_bytes_max", "backlog_bytes_max")
_SUMMED: Final = (
    "seconds_over_quota",
    "quota_seconds",
    "backlog_bytes_start",
    "wanted_bytes",
    "published_bytes",
    "evicted_bytes",
    "parked_seconds",
    "activations",
)


def replays(
    files: DataFrame, root: str, grid: Grid, since_ns: int, until_ns: int, buckets: int
) -> DataFrame:
    """Rows of :data:`REPLAY_COLUMNS` for every topic under every point.

    ``files`` has a column of paths in the folder of ``bronze_samples``. The topics are divided into
    ``buckets``; a task holds one bucket at a time.
    """

    def packing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from pack(input_rows(batches, root, buckets))

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Keep no reference to the unsorted rows of a bucket: they are large.
        for ordered in (sorted_by(rows, SORT_COLUMNS) for rows in unpack(batches)):
            for table in whole_subjects(ordered.to_batches(), TOPIC_KEY):
                yield from replay_table(table, grid, since_ns, until_ns).to_batches()

    return (
        files.mapInArrow(packing, f"{BUCKET} int, rows binary")
        # A hash of the bucket numbers would put several into one task, and none into others.
        .repartitionById(buckets, BUCKET)
        .sortWithinPartitions(BUCKET)
        .mapInArrow(kernel, spark_schema(REPLAY_COLUMNS))
    )


_NATURAL_RATES: Final = ("natural_rate_messages_per_s", "natural_rate_bytes_per_s")

LEVEL_COLUMNS: Final = (
    "cluster",
    "topic",
    "window_end_ns",
    *SOURCE_COLUMNS.values(),
    *(name for names in VALUE_COLUMNS.values() for name in names),
    *_NATURAL_RATES,
)
"""Columns of ``bronze_samples`` that :func:`topic_sources` uses."""


def topic_sources(samples: DataFrame) -> DataFrame:
    """Rows of :func:`headgate.pipeline.backtest.limit_sources.namespaces_of`, one for each cluster
    and topic, from ``bronze_samples`` of topics.

    The newest row with the source of a setting counts. The controller's limit hides the source, and
    inferred rows do not have it.
    """
    found: list[Column] = []
    for setting, source in SOURCE_COLUMNS.items():
        is_set = reduce(or_, (F.col(name).isNotNull() for name in LIMIT_COLUMNS[setting]))
        within = F.col("window_end_ns")
        is_configured = F.col(source) != ADAPTIVE_SOURCE
        has_source = F.when(F.col(source).isNull(), ~is_set).otherwise(is_configured)
        found += [
            F.max_by(source, F.when(has_source, within)).alias(source),
            F.max_by(F.struct(*VALUE_COLUMNS[setting]), F.when(has_source, within)).alias(
                value_name(setting)
            ),
            F.max(has_source).alias(known_name(setting)),
        ]
    # Only a topic that the controller watches has a natural rate.
    watched = reduce(or_, (F.col(name).isNotNull() for name in _NATURAL_RATES))
    return samples.groupBy("cluster", "topic").agg(F.max(watched).alias(IS_ADAPTIVE), *found)


def point_totals(rows: DataFrame) -> DataFrame:
    """Rows of :class:`PointTotals`, from those of :func:`replays`."""
    # Samples instead of the range: unknown time between them is not replayed.
    seconds = F.col("samples") * F.col("step_ns") / NS_PER_S
    return rows.groupBy("grid_point").agg(
        F.count("*").alias("topics"),
        F.sum(seconds).alias("seconds"),
        *(F.sum(name).alias(name) for name in _SUMMED),
        *(F.max(name).alias(name) for name in _MAXIMA),
        F.sum((1 - F.col("drain_used")) * F.col("parked_seconds")).alias("unused_seconds"),
        F.sum(F.col("jitter") * F.col("published_bytes")).alias("moved_bytes"),
        F.sum(F.col("censored_share") * seconds).alias("censored_seconds"),
    )


def check_run_id(run_id: str) -> None:
    """Check the name of a run.

    Raises:
        InputError: the name is not allowed.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise InputError(
            f"--run-id {run_id!r}: up to 100 letters, digits, '.', '_' and '-' are allowed, the "
            "first of them a letter or digit, such as monday-2"
        )


def run_backtest(
    spark: SparkSession,
    root: str,
    grid: Grid,
    since_ns: int | None,
    until_ns: int | None,
    run_id: str,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Replay a range of bronze under a grid, replace the run's rows of ``policy_backtest`` and
    return the points, the best first; none if the range has no topic.

    A row has the point's ``name`` and ``settings``, the fields of :class:`Ranked` and of its
    totals, ``is_censored``, and ``conf`` and ``commands`` of
    :class:`headgate.pipeline.backtest.settings_commands.SettingsCommands`.

    Raises:
        InputError: the run's name is not allowed, or the range is empty.
    """
    check_run_id(run_id)
    first, last = since_ns or 0, INT64_MAX if until_ns is None else until_ns
    if first >= last:
        raise InputError(f"the range from {first} to {last} ns is empty")
    files = [
        file
        for file in table_files(open_table(root, BRONZE_SAMPLES))
        if file.partition["kind"] == Kind.TOPIC.value
        and file.span_ns[1] >= first - GAP_NS_MAX
        and file.span_ns[0] <= last + GAP_NS_MAX
    ]
    if not files:
        progress.say("There are no samples of topics in this range.")
        return []
    cores = spark.sparkContext.defaultParallelism
    buckets = max(BUCKETS_PER_CORE * cores, -(-sum(file.rows for file in files) // BUCKET_ROWS))
    paths = spark.createDataFrame([(file.path,) for file in files], f"{PATH} string")
    tasks = min(len(files), BUCKETS_PER_CORE * cores)
    rows = replays(paths.repartition(tasks), root, grid, first, last, buckets).persist()
    try:
        with progress.stage(f"Replaying {len(grid.points):,} points") as stage:
            with reporting_tasks(spark, stage.on_progress):
                summed = point_totals(rows).collect()
            totals = [PointTotals(**row.asDict()) for row in summed]
            stage.result = f"{max((t.topics for t in totals), default=0):,} topics"
        ranked = rank(totals)
        with progress.stage(f"Writing {POLICY_BACKTEST.name}"):
            _write(spark, rows, root, grid, ranked, run_id)
    finally:
        rows.unpersist()
    sources = _sources(spark, root, files, replayed_topics(root, run_id), first, last)
    namespaces = namespaces_of(sources)
    return [_row(grid, place, namespaces) for place in ranked]


def replayed_topics(root: str, run_id: str) -> set[TopicKey]:
    """The topics of a run; without Spark."""
    table = ensure_table(root, POLICY_BACKTEST).to_pyarrow_table(
        columns=["cluster", "topic"], filters=[("run_id", "=", run_id)]
    )
    pairs = table.group_by(["cluster", "topic"]).aggregate([]).to_pylist()
    return {(pair["cluster"], pair["topic"]) for pair in pairs}


def _sources(
    spark: SparkSession,
    root: str,
    files: list[TableFile],
    topics: set[TopicKey],
    first_ns: int,
    last_ns: int,
) -> list[dict[str, Any]]:
    """Rows of :func:`topic_sources` for some topics.

    The newest row with a source counts, so :data:`NEWEST_NS` are usually enough. The time before is
    read only if a topic is incomplete.
    """
    cut_ns = min(last_ns, max(file.span_ns[1] for file in files)) - NEWEST_NS
    found: dict[TopicKey, dict[str, Any]] = {}
    for begin_ns, end_ns in ((max(first_ns, cut_ns + 1), last_ns), (first_ns, cut_ns)):
        # A file's span ends a nanosecond before the end of its windows.
        part = [f for f in files if f.span_ns[0] < end_ns and f.span_ns[1] + 1 >= begin_ns]
        rows = read_files(spark, root, BRONZE_SAMPLES, part, LEVEL_COLUMNS)
        within = rows.where(F.col("window_end_ns").between(begin_ns, end_ns))
        for row in topic_sources(within).toArrow().to_pylist():
            key = (row["cluster"], row["topic"])
            if key in topics:
                found[key] = with_older(found[key], row) if key in found else row
        if found.keys() == topics and all(map(is_complete, found.values())):
            break
    return list(found.values())


def _write(
    spark: SparkSession, rows: DataFrame, root: str, grid: Grid, ranked: list[Ranked], run_id: str
) -> None:
    run_at = datetime.fromtimestamp(SystemClock.wall_ns() / NS_PER_S, UTC)
    places = spark.createDataFrame(
        [
            (
                place.totals.grid_point,
                grid.points[place.totals.grid_point].label,
                settings_text(grid.points[place.totals.grid_point]),
                place.score,
                place.rank,
                place.is_pareto,
            )
            for place in ranked
        ],
        "grid_point int, name string, settings string, score double, rank int, is_pareto boolean",
    )
    ranked_rows = (
        rows.join(F.broadcast(places), "grid_point")
        .withColumns({"run_id": F.lit(run_id), "run_at": F.lit(run_at)})
        .select(*POLICY_BACKTEST.column_names())
    )
    (
        clustered(ranked_rows, POLICY_BACKTEST)
        .write.format(FORMAT)
        .mode("append")
        .options(**writer_options(root))
        .option("table", POLICY_BACKTEST.name)
        .option("partition", json.dumps({"run_id": run_id}))
        .save()
    )


def _row(grid: Grid, place: Ranked, namespaces: list[Namespace]) -> dict[str, Any]:
    point = grid.points[place.totals.grid_point]
    commands = settings_commands(point.policy, namespaces, point.written)
    own = asdict(place)
    totals = own.pop("totals")
    return {
        "name": point.label,
        "settings": settings_text(point),
        **totals,
        **own,
        "is_censored": place.is_censored,
        "conf": list(commands.conf),
        "commands": list(commands.commands),
    }
