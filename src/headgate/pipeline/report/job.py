"""The command ``headgate pipeline report``."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.pipeline.options import ReportOptions
from headgate.pipeline.progress import OnProgress, Progress
from headgate.pipeline.report import sections as page_sections
from headgate.pipeline.report.backlogs import Backlogs, backlogs
from headgate.pipeline.report.backtest_section import backtest_section
from headgate.pipeline.report.backtests import newest_run
from headgate.pipeline.report.expectations import check_section, table_checks, unmet_text
from headgate.pipeline.report.grid import ACCOUNT_COLUMNS, Grid, account_span
from headgate.pipeline.report.page import Head, page_html
from headgate.pipeline.report.publishing import limiters, parked_topics
from headgate.pipeline.report.quality import Quality, quality
from headgate.pipeline.report.quotas import Evictions, Quotas, evictions, quota_topics
from headgate.pipeline.report.scores import forecast_scores
from headgate.pipeline.report.sections import Charts
from headgate.pipeline.report.summary import summary_sentences
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.store.storage_failures import plain_storage_failures
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_QUARANTINE
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quality import QUALITY
from headgate.pipeline.time_span import Span, instant, parse_span

PAGE: Final = "report.html"

_MB: Final = 1_000_000


def run_report(options: ReportOptions, err: TextIO) -> Path:
    """Write the page, print its path and size on ``err``, and return its path.

    Raises:
        InputError: a time is malformed, the folder has no tables or no rows in the range, or the
            page cannot be written.
        PipelineError: a table cannot be read.
    """
    with plain_storage_failures(f"report of {options.out} failed"):
        return _run_report(options, err)


def _run_report(options: ReportOptions, err: TextIO) -> Path:
    now_ns = SystemClock.wall_ns()
    requested = parse_span(options.since, options.until, now_ns)
    path = Path(options.out, PAGE) if options.html is None else Path(options.html)
    progress = Progress(err)
    tables = existing_tables(options.out)
    for needed in (INTERVALS.name, ATTRIBUTION.name):
        if needed not in tables:
            raise InputError(
                f"folder {options.out} has no table {needed} yet: headgate pipeline run --out "
                f"{options.out} makes it"
            )
        TableScan(options.out, needed)  # raises for another layout version
    with progress.stage(f"Reading the tables of {options.out}") as stage:
        report = _Report(options.out, tables, requested, options.top)
        html = report.html(f"on {instant(now_ns)}", stage.on_progress)
        stage.result = page_sections.range_text(report.grid)
    _write(path, html)
    progress.say(f"Wrote {path} ({len(html.encode()) / _MB:.1f} MB).")
    return path


def _write(path: Path, html: str) -> None:
    """Replace the page in one step: a reader sees the old page or the new one."""
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # In a folder of all users somebody may have put a link there.
        hidden.unlink(missing_ok=True)
        with hidden.open("x", encoding="utf-8") as file:
            file.write(html)
        hidden.replace(path)
    except OSError as error:
        with suppress(OSError):  # it may fail for the same reason
            hidden.unlink(missing_ok=True)
        raise InputError(f"page {path} cannot be written: {error.strerror} (--html)") from error


class _Report:
    """The page of one folder and range."""

    def __init__(self, root: str, tables: tuple[str, ...], requested: Span, top: int) -> None:
        self._root, self._tables, self._top = root, tables, top
        self._intervals = TableScan(root, INTERVALS.name)
        self._attribution = TableScan(root, ATTRIBUTION.name)
        self.span = _known_span(self._intervals, requested, root)
        self.grid = _known_grid(self._intervals, self.span)
        self._charts = Charts()

    def html(self, written: str, on_progress: OnProgress) -> str:
        """The page; ``on_progress`` is called with the finished and all queries."""
        known = quality(self._intervals, self._scan(BRONZE_QUARANTINE.name), self.span, self.grid)
        on_progress(1, 8)
        found = backlogs(self._attribution, self._intervals, self.span, self.grid, self._top)
        on_progress(2, 8)
        quotas = self._query("quota_usage", quota_topics)
        on_progress(3, 8)
        held = self._query("publish_attribution", parked_topics)
        on_progress(4, 8)
        limits = self._query("throttle_timeline", limiters)
        on_progress(5, 8)
        lost = self._query("evictions", evictions)
        on_progress(6, 8)
        sections = [page_sections.backlog_section(found, self.grid, self._charts)]
        for anchor, title, table, rows, section in (
            (
                "quotas", "Backlog quotas", "quota_usage", quotas and quotas.topics,
                page_sections.quota_section,
            ),
            (
                "producers", "Producers", "publish_attribution", held,
                page_sections.producer_section,
            ),
            ("limits", "Limits", "throttle_timeline", limits, page_sections.limiter_section),
            (
                "evictions", "Evictions", "evictions", lost and lost.worst,
                page_sections.eviction_section,
            ),
        ):  # fmt: skip
            if rows is None:
                sections.append(page_sections.missing(anchor, title, table))
            else:
                sections.append(section(rows, self.grid, self._charts))
        sections.insert(2, page_sections.score_section(self._scores(quotas or Quotas())))
        backtest = self._scan("policy_backtest")
        run = None if backtest is None else newest_run(backtest)
        sections.append(backtest_section(run, self._charts))
        on_progress(7, 8)
        sections.append(page_sections.quality_section(known, self.grid, self._charts))
        checks = table_checks(self._scan(QUALITY.name), self.span)
        sections.append(check_section(checks))
        summary = [
            *summary_sentences(found, quotas or Quotas(), held or (), lost or Evictions(), known)
        ]
        if checks is not None and checks.unmet:
            summary.append(f"Of the checks of the tables, {unmet_text(checks)}.")
        return page_html(self._head(found, known, written), summary, sections, self._charts.by_id)

    def _scores(self, quotas: Quotas) -> list[dict[str, Any]]:
        names = [topic.name for topic in quotas.topics]
        return forecast_scores(self._intervals, names, self.grid.start_ns, self.grid.end_ns)

    def _head(self, found: Backlogs, known: Quality, written: str) -> Head:
        return Head(
            page_sections.range_text(self.grid),
            known.clusters,
            len(known.brokers),
            known.completeness,
            known.evidence,
            found.subscriptions,
            written,
        )

    def _scan(self, table: str) -> TableScan | None:
        return TableScan(self._root, table) if table in self._tables else None

    def _query(self, table: str, query: Callable[..., Any]) -> Any:
        """The result of a query on one table; None if the folder does not have it."""
        scan = self._scan(table)
        return None if scan is None else query(scan, self.span, self.grid, self._top)


def _known_span(intervals: TableScan, requested: Span, root: str) -> Span:
    """The part of the requested range for which the folder has rows; both ends are set.

    Raises:
        InputError: there is none.
    """
    have = intervals.span()
    if have is None or have.since_ns is None or have.until_ns is None:
        raise InputError(
            f"folder {root} holds no telemetry yet: headgate pipeline run --out {root} reads what "
            "brokers have published since"
        )
    since_ns = max(have.since_ns, requested.since_ns or have.since_ns)
    until_ns = min(
        have.until_ns, have.until_ns if requested.until_ns is None else requested.until_ns
    )
    if since_ns >= until_ns:
        raise InputError(
            f"folder {root} has telemetry from {instant(have.since_ns)} to "
            f"{instant(have.until_ns)} and none in this range"
        )
    return Span(since_ns, until_ns)


def _known_grid(intervals: TableScan, span: Span) -> Grid:
    """The grid over a span, cut to the first and the last account."""
    since_ns, until_ns = (ns or 0 for ns in (span.since_ns, span.until_ns))
    first_ns = since_ns // MINUTE_NS * MINUTE_NS
    last_ns = -(-until_ns // MINUTE_NS) * MINUTE_NS
    begin = intervals.rows(ACCOUNT_COLUMNS, Span(first_ns, first_ns + MINUTE_NS))
    end = intervals.rows(ACCOUNT_COLUMNS, Span(last_ns - MINUTE_NS, last_ns))
    begin_ns, end_ns = account_span(begin).since_ns, account_span(end).until_ns
    return Grid.over(
        first_ns if begin_ns is None else begin_ns, last_ns if end_ns is None else end_ns
    )
