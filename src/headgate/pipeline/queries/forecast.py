"""Questions to a folder that Spark answers: forecasts, their scores, and the policy backtest.

What is computed is in ``forecasts`` and ``backtest``; here are folder, session, and how rows are
written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from textwrap import fill
from typing import Any, Final, TextIO

from pyspark.sql import SparkSession

from headgate.base.clock import SystemClock
from headgate.base.input_errors import InputErrors
from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.backtest.grid import Grid, load_grid
from headgate.pipeline.backtest.job import check_run_id
from headgate.pipeline.backtest.job import run_backtest as replay_range
from headgate.pipeline.backtest.policy import settings_words
from headgate.pipeline.backtest.words import (
    FRONT_TEXT,
    IS_CENSORED_TEXT,
    TIE_TEXT,
    rank_text,
    settings_count,
    share_text,
)
from headgate.pipeline.jobs import locked_folder, opened_folder
from headgate.pipeline.kernels.breach import SAMPLES_MIN
from headgate.pipeline.options import BacktestOptions, FolderOptions, ForecastOptions
from headgate.pipeline.output.attribution import WIDTH_MAX
from headgate.pipeline.output.rows import WIDTH_MIN, write_rows
from headgate.pipeline.progress import Progress
from headgate.pipeline.queries.forecast_rows import (
    ForecastScores,
    clusters_behind,
    forecast_rows,
    forecast_score,
)
from headgate.pipeline.store.location import resolved_root
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

Rows = Sequence[Mapping[str, Any]]

_FORECAST_SHOWN: Final = (
    "topic", "quota", "use", "likely_at", "seconds_to_breach_earliest", "seconds_to_breach",
    "seconds_to_breach_latest", "sentence",
)  # fmt: skip
_SCORE_SHOWN: Final = (
    "topic", "quota", "forecasts", "breached", "coverage", "level_coverage", "missed_share",
    "pinball_50_s",
)  # fmt: skip
_BACKTEST_SHOWN: Final = (
    "rank", "name", "settings", "is_pareto", "score", "over_share", "lost_share", "parked_share",
    "is_censored",
)  # fmt: skip
"""What a table for people shows; the columns that rows do not have are left out."""

_SHARES: Final = ("over_share", "lost_share", "parked_share")

_HEADINGS: Final = {
    "is_pareto": "front", "is_censored": "censored",
    **{name: name.removesuffix("_share") for name in _SHARES},
}  # fmt: skip
"""Short ones, so that the settings have room beside them on a terminal."""


def run_forecast(options: ForecastOptions, out: TextIO, err: TextIO) -> int:
    """Write forecasts, or how right they were, to ``out``, progress to ``err``.

    Returns how many quotas are likely reached within ``options.within``, of clusters that are heard
    of.

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
        # What is not there is said before Spark is started.
        TableScan(folder.out, INTERVALS.name if options.is_score else QUOTA_USAGE.name)
    faults.raise_any()
    root, progress = resolved_root(folder.out), Progress(err)
    with opened_folder(root, "headgate pipeline forecast", progress) as spark:
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
        progress.say(f"Of cluster {name!r} nothing later is known than of {minute}.")
    _write(folder, rows, _FORECAST_SHOWN, out)
    # What was likely when a cluster was last heard of is no reason to wake anybody now.
    current = (row for row in rows if (row["cluster"] or "") not in behind)
    return sum(_is_near(row, within_ns) for row in current)


def _write_scores(
    folder: FolderOptions, scores: ForecastScores, out: TextIO, progress: Progress
) -> None:
    """A table of zeros would look like a verdict; programs get them."""
    if not scores.total.forecasts:
        progress.say(
            "There is nothing to score: no forecast was made in this range. One needs a backlog "
            f"quota that is not reached, and {SAMPLES_MIN} samples of its topic in the hour before."
        )
    if scores.total.forecasts or folder.format != "table":
        _write(folder, scores.rows(), _SCORE_SHOWN, out)


def _is_near(row: Mapping[str, Any], within_ns: int | None) -> bool:
    seconds = row["seconds_to_breach"]
    return within_ns is not None and seconds is not None and seconds * NS_PER_S <= within_ns


def run_backtest(options: BacktestOptions, out: TextIO, err: TextIO) -> str:
    """Replay a range and write the ranked settings to ``out``, progress to ``err``.

    Returns the run's id, under which ``policy_backtest`` has its rows.

    Raises:
        InputError: a time or the grid file is malformed, no Java is there, or the folder cannot be
            used.
        PipelineError: the job failed in Spark.
    """
    now_ns = SystemClock.wall_ns()
    folder = options.folder
    faults, span, grid = InputErrors(), Span(), Grid(())
    with faults.collecting():
        span = parse_span(folder.since, folder.until, now_ns)
    with faults.collecting():
        grid = load_grid(options.grid)
    run_id = options.run_id or f"{datetime.fromtimestamp(now_ns // NS_PER_S, UTC):%Y%m%dT%H%M%SZ}"
    with faults.collecting():
        check_run_id(run_id)
    with faults.collecting():
        existing_tables(folder.out)
    faults.raise_any()
    root, progress = resolved_root(folder.out), Progress(err)
    held: AbstractContextManager[SparkSession] = locked_folder(
        root, "headgate pipeline backtest", progress
    )
    with held as spark:
        rows = replay_range(spark, root, grid, span.since_ns, span.until_ns, run_id, progress)
    is_table = folder.format == "table"
    if is_table:
        headings = [_HEADINGS.get(name, name) for name in _BACKTEST_SHOWN]
        _write(folder, _told(rows), headings, out)
    else:
        _write(folder, rows, _BACKTEST_SHOWN, out)
    if rows and is_table:
        out.write(f"\n{_notes(rows, folder.width)}\n{_settings_text(rows)}")
    progress.say(f"Run {run_id}: {settings_count(len(rows))}.")
    return run_id


def _told(rows: Rows) -> Rows:
    """Ranked settings as people read them."""
    ranks = Counter(row["rank"] for row in rows)
    told = [
        {
            **row,
            "rank": rank_text(row["rank"], ranks[row["rank"]] > 1),
            "settings": settings_words(row["settings"]),
            **{name: share_text(row[name]) for name in _SHARES},
        }
        for row in rows
    ]
    return [{_HEADINGS.get(name, name): value for name, value in row.items()} for row in told]


def _notes(rows: Rows, width: int) -> str:
    """What the table's marks mean."""
    is_tie = len({row["rank"] for row in rows}) < len(rows)
    told = [TIE_TEXT] * is_tie + [FRONT_TEXT, IS_CENSORED_TEXT]
    columns = min(max(width, WIDTH_MIN), WIDTH_MAX)
    return "".join(f"{fill(text, columns, break_long_words=False)}\n" for text in told)


def _settings_text(rows: Rows) -> str:
    """How to set the best point, to be pasted; what it leaves as recorded is not in it."""
    row = rows[0]
    best = sum(other["rank"] == row["rank"] for other in rows)
    which = "the best one" if best == 1 else f"the first of the {best:,} best ones"
    if not row["conf"] and not row["commands"]:
        return f"{which.capitalize()}, {row['name']}, is in force: there is nothing to set.\n"
    lines = [f"To set {which}, {row['name']}:"]
    if row["conf"]:
        lines += ["", "  in broker.conf, for the next start"]
        lines += [f"    {line}" for line in row["conf"]]
    if row["commands"]:
        lines += ["", "  in a running broker, as far as that can be"]
        lines += [f"    {line}" for line in row["commands"]]
    return "\n".join(lines) + "\n"


def _write(folder: FolderOptions, rows: Rows, shown: Sequence[str], out: TextIO) -> None:
    have = [name for name in (rows[0] if rows else ()) if _is_plain(rows[0][name])]
    columns = [name for name in shown if name in have] if folder.format == "table" else have
    write_rows(
        folder.format,
        columns if have else shown,
        rows,
        out,
        width=folder.width,
        color=folder.color,
    )


def _is_plain(value: Any) -> bool:
    """Whether JSON and CSV have it, as ``rows.plain_value`` writes it."""
    return value is None or isinstance(
        value, str | int | float | bytes | datetime | list | tuple | dict
    )
