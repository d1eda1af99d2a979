"""The answers of one folder of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate.base.errors import InputError
from headgate.pipeline.output.rows import plain_value
from headgate.pipeline.report.backtests import BacktestRun, run_names, run_of
from headgate.pipeline.serve import episodes, forecasts, timelines
from headgate.pipeline.serve.selected_scan import SelectedScan
from headgate.pipeline.serve.selection import (
    COUNT_MAX,
    RANGE_NS,
    Selection,
    camel,
    instant_or_none,
    required,
    selection_of,
)
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from headgate.pipeline.time_span import Span, parse_time

SHOWN: Final = (
    INTERVALS.name, ATTRIBUTION.name, EPISODES.name, QUOTA_USAGE.name, POLICY_BACKTEST.name,
)  # fmt: skip
"""The tables that answers are read from."""

Query = Mapping[str, str]


class History:
    """Reads the newest version of a table for each answer, so a running job may write it."""

    def __init__(self, root: str, now_ns: Callable[[], int]) -> None:
        """``root`` is the folder, ``now_ns`` the time since the epoch."""
        self._root = root
        self._now_ns = now_ns

    def about(self, _: Query) -> dict[str, Any]:
        """The folder, its tables and their range of time."""
        tables = existing_tables(self._root)
        span = self._known() if ATTRIBUTION.name in tables else Span()
        return {
            "folder": self._root,
            "tables": [name for name in SHOWN if name in tables],
            "since": instant_or_none(span.since_ns),
            "until": instant_or_none(span.until_ns),
        }

    def episodes(self, query: Query) -> dict[str, Any]:
        """Backlogs of a range, from begin to end."""
        selection = self._selection(query, episodes.RANGE_MAX_NS)
        return episodes.episodes(self._scan(EPISODES.name), selection)

    def episode(self, query: Query) -> dict[str, Any]:
        """One of them, by its subscription and an instant in it."""
        at_ns = parse_time(required(query, "at"), self._now_ns(), "at")
        names = (required(query, "topic"), required(query, "subscription"))
        scan = self._scan(EPISODES.name)
        return episodes.episode(scan, *names, at_ns, query.get("cluster", ""))

    def timelines(self, query: Query) -> dict[str, Any]:
        """The subscriptions with the largest backlogs of a range, with their causes."""
        selection = self._selection(query, RANGE_NS, timelines.SUBSCRIPTIONS_MAX)
        return timelines.timelines(self._scan(ATTRIBUTION.name), selection)

    def timeline(self, query: Query) -> dict[str, Any]:
        """One of them by minute."""
        names = (required(query, "topic"), required(query, "subscription"))
        selection = self._selection(query, RANGE_NS)
        scan = self._scan(ATTRIBUTION.name)
        return timelines.timeline(scan, selection, *names, query.get("cluster", ""))

    def forecasts(self, query: Query) -> dict[str, Any]:
        """The quotas of a range with their forecasts, and how good these were."""
        selection = self._selection(query, RANGE_NS, forecasts.TOPICS_MAX)
        self._scan(QUOTA_USAGE.name)  # raises if it is absent
        usage = SelectedScan(self._root, QUOTA_USAGE.name, selection)
        return forecasts.forecasts(usage, self._scan(INTERVALS.name), selection)

    def forecast(self, query: Query) -> dict[str, Any]:
        """The forecasts of one topic, each with what came true."""
        topic = required(query, "topic")
        selection = self._selection(query, RANGE_NS)
        scan = self._scan(QUOTA_USAGE.name)
        return forecasts.forecast(scan, selection, topic, query.get("cluster", ""))

    def backtests(self, query: Query) -> dict[str, Any]:
        """The runs of the backtest, and the points of one of them: the newest, or ``run``."""
        if POLICY_BACKTEST.name not in existing_tables(self._root):
            return {"runs": [], "run": None}
        scan = self._scan(POLICY_BACKTEST.name)
        runs = run_names(scan)
        wanted = query.get("run") or (runs[0][0] if runs else "")
        if wanted and wanted not in dict(runs):
            raise InputError(f"no run {wanted[:80]!r} is in table {scan.name}")
        run = run_of(scan, wanted, dict(runs)[wanted]) if wanted else None
        return {
            "runs": [{"runId": name, "runAt": plain_value(at)} for name, at in runs[:COUNT_MAX]],
            "run": None if run is None else _run_document(run),
        }

    def _selection(self, query: Query, range_max_ns: int, count_max: int = COUNT_MAX) -> Selection:
        return selection_of(
            query, self._known(), self._now_ns(), range_max_ns=range_max_ns, count_max=count_max
        )

    def _known(self) -> Span:
        """The range of the minutes that were judged."""
        return self._scan(ATTRIBUTION.name).span() or Span()

    def _scan(self, name: str) -> TableScan:
        if name not in existing_tables(self._root):
            raise InputError(
                f"folder {self._root} has no table {name} yet: headgate pipeline run --out "
                f"{self._root} makes it"
            )
        return TableScan(self._root, name)


def _run_document(run: BacktestRun) -> dict[str, Any]:
    names = (
        "number", "name", "settings", "topics", "seconds_over_quota", "parked_seconds",
        "drain_used", "censored_share", "activations", "evicted_bytes", "score", "rank",
        "is_pareto",
    )  # fmt: skip
    return {
        "runId": run.run_id,
        "runAt": plain_value(run.run_at),
        "topics": run.topics,
        "count": run.count,
        "front": run.front,
        "points": [
            {camel(name): plain_value(getattr(point, name)) for name in names}
            for point in run.points[:COUNT_MAX]
        ],
    }
