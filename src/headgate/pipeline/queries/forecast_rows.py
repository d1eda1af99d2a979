"""Forecasts of backlog quotas from ``quota_usage``, and their scores.

These functions only read tables and take no lock, so they run beside a job that writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.flow.sentences.quota import consequence
from headgate.pipeline.kernels.forecast_score import Score
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.output.breach_times import counted_from_ns, likely_ns
from headgate.pipeline.steps.forecasts import SCORED_COLUMNS, forecast_scores, newest_usage
from headgate.pipeline.store.delta_log import TableFile, open_table, table_files
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, Table
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from headgate.pipeline.time_span import Span
from headgate.record.fields import Kind

_OUTCOME_HOURS: Final = 24
"""A forecast is scored against its outcome within this time."""

BEHIND: Final = timedelta(minutes=10)
"""A cluster that lags behind the others by so much has stopped sending telemetry."""

SILENT_HOURS_MAX: Final = 31 * 24
"""A cluster whose telemetry ends so long before that of another one has no forecast: to look
farther back would read the whole history each time."""

_COPIED: Final = (
    "seconds_to_breach_earliest",
    "seconds_to_breach",
    "seconds_to_breach_latest",
    "seconds_to_breach_broker",
    "method",
    "sentence",
)


@dataclass(frozen=True, slots=True)
class ForecastScores:
    """The accuracy of forecasts, for all topics together and for each."""

    total: Score
    by_topic: tuple[tuple[dict[str, Any], Score], ...]
    """With ``cluster``, ``topic``, ``partition``, ``incarnation`` and ``quota``; those with most
    forecasts first."""

    def rows(self) -> list[dict[str, Any]]:
        """The total, its names null, and the topics, as :meth:`Score.document` has them."""
        names = ("cluster", "topic", "quota")
        everything = {**dict.fromkeys(names), **self.total.document()}
        return [
            everything,
            *(
                {
                    "cluster": key["cluster"],
                    "topic": topic_text(key),
                    "quota": key["quota"],
                    **score.document(),
                }
                for key, score in self.by_topic
            ),
        ]


def forecast_rows(spark: SparkSession, root: str, at_ns: int | None) -> list[dict[str, Any]]:
    """The topics with a quota in force, the likely next breach first.

    As of the newest minute of each cluster, or of its last that ended at ``at_ns``. A row has
    ``cluster``, ``topic`` (of a partition with its suffix), ``minute``, ``forecast_at``, ``quota``
    (the one reached first, or else the fuller), its ``policy``, ``source``, ``limit`` (bytes or
    ns) and ``use``, ``to_ns`` (the end of what is known of the minute), the seconds from then on as
    in ``quota_usage``, ``likely_at`` (that instant, or None), ``then`` (what happens at the limit),
    ``method`` and ``sentence``.

    Raises:
        InputError: the folder has no table ``quota_usage``.
    """
    last_hour = None if at_ns is None else (at_ns - MINUTE_NS) // HOUR_NS
    files = _files(root, QUOTA_USAGE, lambda file: last_hour is None or file.hour <= last_hour)
    hours = newest_hours(root, at_ns) or {max((file.hour for file in files), default=0)}
    # A minute's neighbours in the same five minutes are of the same hour, or of the one before.
    near = [file for file in files if not hours.isdisjoint((file.hour, file.hour + 1))]
    usage = _read(spark, root, QUOTA_USAGE, near)
    if usage is None:
        return []
    if at_ns is not None:
        until = F.timestamp_micros(F.lit((at_ns - MINUTE_NS) // NS_PER_US))
        usage = usage.where(F.col("minute") <= until)
    found = [_row(row) for row in newest_usage(usage).toArrow().to_pylist()]
    return sorted(found, key=_soonest)


def newest_hours(root: str, at_ns: int | None) -> set[int]:
    """The hour, counted since the epoch, of the newest telemetry of each cluster at an instant.

    It reads only the rows of kind ``batch``, of which there is one for each message, and of
    :data:`SILENT_HOURS_MAX` at most.

    Raises:
        InputError: the folder has no table ``bronze_samples``.
    """
    until_ns = None if at_ns is None else at_ns + 1
    newest: dict[str | None, int] = {}
    scan = TableScan(root, BRONZE_SAMPLES.name)
    ends_ns = (file.span_ns[1] for file in scan.files if file.partition["kind"] == BATCH_KIND)
    last_ns = max((end for end in ends_ns if until_ns is None or end < until_ns), default=0)
    span = Span(max(0, last_ns - SILENT_HOURS_MAX * HOUR_NS), until_ns)
    batches = scan.batches(["cluster", "window_end_ns"], span, ("kind", [BATCH_KIND]))
    for batch in batches:
        found = pa.table(batch).group_by("cluster").aggregate([("window_end_ns", "max")])
        for row in found.to_pylist():
            hour = (row["window_end_ns_max"] - 1) // HOUR_NS
            newest[row["cluster"]] = max(newest.get(row["cluster"], hour), hour)
    return set(newest.values())


def clusters_behind(rows: Sequence[Mapping[str, Any]]) -> dict[str, datetime]:
    """The clusters that lag by :data:`BEHIND`, each with the start of its newest minute.

    ``rows`` are those of :func:`forecast_rows`.
    """
    newest: dict[str, datetime] = {}
    for row in rows:
        name = row["cluster"] or ""
        newest[name] = max(newest.get(name, row["minute"]), row["minute"])
    last = max(newest.values(), default=None)
    return {name: at for name, at in newest.items() if last is not None and last - at >= BEHIND}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    quota = row["breach_quota"] or max(
        ("size", "time"),
        key=lambda kind: -1.0 if row[f"{kind}_use"] is None else row[f"{kind}_use"],
    )
    likely = likely_ns(row)
    policy = row[f"{quota}_policy"] or ""
    return {
        "cluster": row["cluster"],
        "topic": topic_text(row),
        "minute": row["minute"],
        "to_ns": counted_from_ns(row),
        "forecast_at": row["forecast_at"],
        "quota": quota,
        "policy": policy,
        "source": row[f"{quota}_source"],
        "limit": row["size_limit_bytes" if quota == "size" else "time_limit_ns"],
        "use": row[f"{quota}_use"],
        **{name: row[name] for name in _COPIED},
        "likely_at": None if likely is None else datetime.fromtimestamp(likely / NS_PER_S, UTC),
        "then": consequence(policy, row["oldest_subscription"] if quota == "time" else None),
    }


def _soonest(row: Mapping[str, Any]) -> tuple[bool, float, float, float, str]:
    """Order: reached quotas, then by likely instant, by possible instant, by use."""
    at_s = row["to_ns"] / NS_PER_S
    likely, earliest = row["seconds_to_breach"], row["seconds_to_breach_earliest"]
    return (
        likely != 0.0,
        inf if likely is None else at_s + likely,
        inf if earliest is None else at_s + earliest,
        -(row["use"] or 0.0),
        row["topic"],
    )


def forecast_score(
    spark: SparkSession, root: str, since_ns: int | None, until_ns: int | None
) -> ForecastScores:
    """Score the forecasts of a time range against their outcomes.

    They are recomputed from ``intervals``, with the same results as in ``quota_usage``.

    Raises:
        InputError: the folder has no table ``intervals``.
    """
    first = 0 if since_ns is None else since_ns
    last = SystemClock.wall_ns() if until_ns is None else until_ns
    hours = range(first // HOUR_NS - 1, last // HOUR_NS + _OUTCOME_HOURS + 1)
    files = _files(root, INTERVALS, lambda file: file.hour in hours)
    topics = [file for file in files if file.partition["kind"] == Kind.TOPIC.value]
    minutes = _read(spark, root, INTERVALS, topics, SCORED_COLUMNS)
    if minutes is None:
        return ForecastScores(Score(), ())
    found = []
    for row in forecast_scores(minutes, first, last).toArrow().to_pylist():
        score = Score(**{field.name: row.pop(field.name) for field in fields(Score)})
        found.append((row, score))
    found.sort(key=lambda pair: (-pair[1].forecasts, topic_text(pair[0]), pair[0]["quota"]))
    return ForecastScores(sum((score for _, score in found), Score()), tuple(found))


def _files(root: str, table: Table, wanted: Callable[[TableFile], bool]) -> list[TableFile]:
    if not store_of(root).is_table(table.name):
        raise InputError(
            f"folder {root} has no table {table.name}; an earlier run of the pipeline fills it"
        )
    return [file for file in table_files(open_table(root, table)) if wanted(file)]


def _read(
    spark: SparkSession,
    root: str,
    table: Table,
    files: list[TableFile],
    columns: Collection[str] | None = None,
) -> DataFrame | None:
    return read_files(spark, root, table, files, columns) if files else None
