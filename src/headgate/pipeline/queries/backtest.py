"""``headgate pipeline backtest``: what other limits and quotas would have done."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from textwrap import fill
from typing import Final, TextIO

from pyspark.sql import SparkSession

from headgate.base.clock import SystemClock
from headgate.base.input_errors import InputErrors
from headgate.base.units import NS_PER_S
from headgate.pipeline.backtest.grid import Grid, load_grid
from headgate.pipeline.backtest.job import check_run_id
from headgate.pipeline.backtest.job import run_backtest as replay_range
from headgate.pipeline.backtest.ranking_text import (
    FRONT_TEXT,
    IS_CENSORED_TEXT,
    TIE_TEXT,
    rank_text,
    settings_count,
    share_text,
)
from headgate.pipeline.job_session import filling_session
from headgate.pipeline.lineage.datasets import table_set
from headgate.pipeline.lineage.job_lineage import job_lineage
from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import BacktestOptions
from headgate.pipeline.output.attribution import WIDTH_MAX
from headgate.pipeline.output.policy_settings import readable_settings
from headgate.pipeline.output.rows import WIDTH_MIN
from headgate.pipeline.progress import Progress
from headgate.pipeline.queries.writing import Rows, write_found
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.time_span import (
    Span,
    parse_span,
)

_BACKTEST_SHOWN: Final = (
    "rank", "name", "settings", "is_pareto", "score", "over_share", "lost_share", "parked_share",
    "is_censored",
)  # fmt: skip
"""Columns of a table on a terminal, if the rows have them."""

_SHARES: Final = ("over_share", "lost_share", "parked_share")

_HEADINGS: Final = {
    "is_pareto": "front", "is_censored": "censored",
    **{name: name.removesuffix("_share") for name in _SHARES},
}  # fmt: skip
"""Short headings, which leave room for the settings on a terminal."""


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
    session: AbstractContextManager[SparkSession] = filling_session(
        root, POLICY_BACKTEST.name, "headgate pipeline backtest", progress, folder.spark
    )
    inputs = [table_set(root, TABLES[name]) for name in POLICY_BACKTEST.follows_from]
    lineage = job_lineage(
        options.lineage, root, "backtest", inputs, [POLICY_BACKTEST], progress.say
    )
    with lineage.running(), session as spark:
        rows = replay_range(spark, root, grid, span.since_ns, span.until_ns, run_id, progress)
    is_table = folder.format == "table"
    if is_table:
        headings = [_HEADINGS.get(name, name) for name in _BACKTEST_SHOWN]
        write_found(folder, _as_text(rows), headings, out)
    else:
        write_found(folder, rows, _BACKTEST_SHOWN, out)
    if rows and is_table:
        out.write(f"\n{_notes(rows, folder.width)}\n{_settings_text(rows)}")
    progress.say(f"Run {run_id}: {settings_count(len(rows))}.")
    return run_id


def _as_text(rows: Rows) -> Rows:
    """Ranked settings as text."""
    ranks = Counter(row["rank"] for row in rows)
    texts = [
        {
            **row,
            "rank": rank_text(row["rank"], ranks[row["rank"]] > 1),
            "settings": readable_settings(row["settings"]),
            **{name: share_text(row[name]) for name in _SHARES},
        }
        for row in rows
    ]
    return [{_HEADINGS.get(name, name): value for name, value in row.items()} for row in texts]


def _notes(rows: Rows, width: int) -> str:
    """A legend of the table's marks."""
    is_tie = len({row["rank"] for row in rows}) < len(rows)
    texts = [TIE_TEXT] * is_tie + [FRONT_TEXT, IS_CENSORED_TEXT]
    columns = min(max(width, WIDTH_MIN), WIDTH_MAX)
    return "".join(f"{fill(text, columns, break_long_words=False)}\n" for text in texts)


def _settings_text(rows: Rows) -> str:
    """The lines and commands that apply the best point, without unchanged settings."""
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
        lines += ["", "  in a running broker, without settings that need a start"]
        lines += [f"    {line}" for line in row["commands"]]
    return "\n".join(lines) + "\n"
