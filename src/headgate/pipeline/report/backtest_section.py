"""The report's section about the newest policy backtest."""

from __future__ import annotations

from collections import Counter
from typing import Final

from headgate.base.texts import percent, size_text, time_text
from headgate.pipeline.backtest.ranking_text import (
    CENSORED_TEXT,
    TIE_TEXT,
    rank_text,
    settings_count,
)
from headgate.pipeline.output.attribution import topics_text
from headgate.pipeline.report import figures
from headgate.pipeline.report.backtests import BacktestRun, GridPoint
from headgate.pipeline.report.sections import ROWS_SHOWN, Block, Charts, Section, TableView
from headgate.pipeline.time_span import minute_text, since_epoch_us

_COLUMNS: Final = (
    "rank", "point", "settings", "front", "over quota", "held", "drain used", "evicted", "censored",
)  # fmt: skip
_NUMERIC: Final = frozenset({0, 4, 5, 6, 7, 8})


def backtest_section(run: BacktestRun | None, charts: Charts) -> Section:
    """The newest run: a chart of all settings, and a table of the best."""
    title = "Policy backtest"
    if run is None:
        return Section(
            "backtest", title,
            "This folder has no backtest yet. Run headgate pipeline backtest --grid FILE.",
        )  # fmt: skip
    when = "" if run.run_at is None else f" of {minute_text(since_epoch_us(run.run_at) * 1_000)}"
    ranks = Counter(point.rank for point in run.points)
    notes = [TIE_TEXT] if any(ranks[p.rank] > 1 for p in run.points[:ROWS_SHOWN] if p.rank) else []
    return Section(
        "backtest",
        title,
        f"Run {run.run_id}{when}: {settings_count(run.count)} replayed over "
        f"{topics_text(run.topics)}. {run.front:,} {'is' if run.front == 1 else 'are'} on the "
        "Pareto front: no other setting is at least as good in every measure and better in one.",
        [
            Block(
                "Cost and use of each setting",
                "Each point is one setting. The Pareto front uses four measures. The chart shows "
                "two of them, and the line joins the best settings in these two.",
                charts.add(figures.pareto_figure(run)),
                "Time over the quota against time in which producers were held, by setting",
            )
        ],
        TableView(
            _COLUMNS, tuple(_row(p, ranks[p.rank] > 1) for p in run.points[:ROWS_SHOWN]), _NUMERIC
        ),
        " ".join([*notes, f"Times are sums over topics. Censored: {CENSORED_TEXT}."]),
    )


def _row(point: GridPoint, is_tie: bool) -> tuple[str, ...]:
    return (
        "" if point.rank is None else rank_text(point.rank, is_tie),
        point.name,
        point.settings,
        "yes" if point.is_pareto else "",
        time_text(point.seconds_over_quota),
        time_text(point.parked_seconds),
        _percent(point.drain_used),
        size_text(point.evicted_bytes),
        _percent(point.censored_share),
    )


def _percent(share: float | None) -> str:
    return "" if share is None else percent(share)
