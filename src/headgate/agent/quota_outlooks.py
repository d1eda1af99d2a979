"""Says of each reported backlog of a cluster whether it empties or fills a backlog quota."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headgate.agent.quota_forecast import Level
from headgate.base.names import parse_topic
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.flow.quota.outlook import outlook


def with_outlooks(
    reports: Iterable[dict[str, Any]], levels: Iterable[Level]
) -> list[dict[str, Any]]:
    """The reports on subscriptions, with ``drainsInS``, ``breaksInS`` and ``breaksQuota`` by the
    forecasts of the quotas: those of the topic, or of its partitions."""
    ahead: dict[tuple[str, str | None], list[float | None]] = {}
    of_partitions: dict[tuple[str, str | None], list[float | None]] = {}
    for level in levels:
        if level.seconds_to_breach is None:
            continue
        _note(ahead, level.topic, level)
        name = parse_topic(level.topic)
        if name.partition >= 0:
            _note(of_partitions, name.base.full, level)
    found = []
    for report in reports:
        known = of_partitions if report["partitions"] else ahead
        breaches_s = known.get((report["topic"], report["subscription"]))
        found.append(report if breaches_s is None else report | _fields(report, breaches_s))
    return found


def _note(
    known: dict[tuple[str, str | None], list[float | None]], topic: str, level: Level
) -> None:
    breaches_s = known.setdefault((topic, level.subscription), [None] * len(QuotaType))
    before_s, after_s = breaches_s[level.type], level.seconds_to_breach
    if after_s is not None:
        breaches_s[level.type] = after_s if before_s is None else min(before_s, after_s)


def _fields(report: dict[str, Any], breaches_s: Sequence[float | None]) -> dict[str, Any]:
    found = outlook(report["drainsInS"], breaches_s)
    return {
        "drainsInS": found.empty_s,
        "breaksInS": found.breach_s,
        "breaksQuota": None if found.breached is None else found.breached.label,
    }
