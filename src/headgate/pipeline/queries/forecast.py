"""``headgate pipeline forecast``: when backlog quotas will be reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TextIO

from headgate.base.clock import SystemClock
from headgate.base.input_errors import InputErrors
from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.job_session import query_session
from headgate.pipeline.kernels.breach import SAMPLES_MIN
from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import FolderOptions, ForecastOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.queries.forecast_rows import (
    ForecastScores,
    clusters_behind,
    forecast_rows,
    forecast_score,
)
from headgate.pipeline.queries.writing import write_found
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from headgate.pipeline.time_span import (
    Span,
    minute_text,
    parse_duration,
    parse_span,
    parse_time,
    since_epoch_us,
)

_FORECAST_SHOWN: Final = (
    "topic", "quota", "use", "likely_at", "seconds_to_breach_earliest", "seconds_to_breach",
    "seconds_to_breach_latest", "sentence",
)  # fmt: skip
_SCORE_SHOWN: Final = (
    "topic", "quota", "forecasts", "breached", "coverage", "level_coverage", "missed_share",
    "pinball_50_s",
)  # fmt: skip
"""Columns of a table on a terminal, if the rows have them."""


def run_forecast(options: ForecastOptions, out: TextIO, err: TextIO) -> int:
    """Write forecasts or their scores to ``out``, progress to ``err``.

    Returns how many quotas of clusters with current telemetry are likely reached within
    ``options.within``.

    Raises:
        InputError: a time is malformed, no Java is there, or the folder cannot be used.
        PipelineError: the job failed in Spark.
    """
    now_ns = SystemClock.wall_ns()
    folder = options.folder
    faults, span, at_ns, within_ns = InputErrors(), Span(), None, None
    with faults.collecting():
        span = parse_span(folder.since, folder.until, now_ns)
    with faults.collecting():
        if options.at is not None:
            at_ns = parse_time(options.at, now_ns, "--at")
    with faults.collecting():
        if options.within is not None:
            within_ns = parse_duration(options.within, "--fail-within")
    with faults.collecting():
        existing_tables(folder.out)
        # A missing table fails here, before Spark starts.
        TableScan(folder.out, INTERVALS.name if options.is_score else QUOTA_USAGE.name)
    faults.raise_any()
    root, progress = resolved_root(folder.out), Progress(err)
    with query_session(root, "headgate pipeline forecast", progress, folder.spark) as spark:
        if options.is_score:
            with progress.stage("Scoring forecasts"):
                scores = forecast_score(spark, root, span.since_ns, span.until_ns)
            _write_scores(folder, scores, out, progress)
            return 0
        with progress.stage("Forecasting") as stage:
            rows = forecast_rows(spark, root, at_ns)
            stage.result = f"{len(rows):,} topics with a quota"
    behind = clusters_behind(rows)
    for name, at in sorted(behind.items()):
        minute = minute_text(since_epoch_us(at) * NS_PER_US)
        progress.say(f"Cluster {name!r} has no telemetry after {minute}.")
    write_found(folder, rows, _FORECAST_SHOWN, out)
    # A forecast of a cluster that has stopped sending telemetry is too old for an alert.
    current = (row for row in rows if (row["cluster"] or "") not in behind)
    return sum(_is_near(row, within_ns) for row in current)


def _write_scores(
    folder: FolderOptions, scores: ForecastScores, out: TextIO, progress: Progress
) -> None:
    """Write scores. Without any forecast, a table is left out: its zeros would mislead."""
    if not scores.total.forecasts:
        progress.say(
            "There is nothing to score: no forecast was made in this range. One needs a backlog "
            f"quota that is not reached, and {SAMPLES_MIN} samples of its topic in the hour before."
        )
    if scores.total.forecasts or folder.format != "table":
        write_found(folder, scores.rows(), _SCORE_SHOWN, out)


def _is_near(row: Mapping[str, Any], within_ns: int | None) -> bool:
    seconds = row["seconds_to_breach"]
    return within_ns is not None and seconds is not None and seconds * NS_PER_S <= within_ns
