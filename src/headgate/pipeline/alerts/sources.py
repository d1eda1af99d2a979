"""All alerts that the tables give rise to now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.pipeline.alerts.alert import ALERT_NAME, Alert
from headgate.pipeline.alerts.backlogs import ALERTNAME as BACKLOG_NAME
from headgate.pipeline.alerts.backlogs import OpenBacklog, backlog_alerts, ended_ns
from headgate.pipeline.alerts.options import BACKLOG, QUALITY, QUOTA, TELEMETRY, AlertOptions
from headgate.pipeline.alerts.quality import quality_alerts
from headgate.pipeline.alerts.quotas import quota_alerts
from headgate.pipeline.alerts.state import TargetState
from headgate.pipeline.alerts.telemetry import clusters_behind, newest_telemetry, telemetry_alerts
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.quotas import QUOTA_USAGE

_NEEDED: Final = {BACKLOG: EPISODES.name, QUOTA: QUOTA_USAGE.name}
"""Tables without which a kind of alert is left out; a folder of scrapes may lack one."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is wrong now, and what is missing to know it."""

    alerts: tuple[Alert, ...]
    remarks: tuple[str, ...] = ()


def found_alerts(options: AlertOptions, now_ns: int) -> Found:
    """The alerts of the kinds that are asked for.

    Raises:
        InputError: the folder has no tables, or no telemetry yet.
    """
    root = options.out
    tables = existing_tables(root)
    newest = newest_telemetry(root)
    behind = clusters_behind(newest, now_ns)
    alerts: list[Alert] = []
    remarks = []
    for kind in dict.fromkeys(options.kinds):
        needed = _NEEDED.get(kind)
        if needed is not None and needed not in tables:
            remarks.append(f"There is no table {needed} yet, so there are no alerts about {kind}s.")
        elif kind == BACKLOG:
            alerts += backlog_alerts(root, newest, options.after_ns, options.count)
        elif kind == QUOTA:
            alerts += quota_alerts(root, newest, behind, options.within_ns)
        elif kind == QUALITY:
            alerts += quality_alerts(root, now_ns)
        elif kind == TELEMETRY:
            alerts += telemetry_alerts(newest, now_ns)
    return Found(tuple(alerts), tuple(remarks))


def ends_of(root: str, state: TargetState, found: Found, now_ns: int) -> dict[str, int]:
    """When backlogs ended that a target takes for open, by identity, where the tables tell."""
    if EPISODES.name not in existing_tables(root):
        return {}
    starts_ns = {alert.identity: alert.starts_ns or 0 for alert in found.alerts}
    over = [
        OpenBacklog(alert.labels, alert.starts_ns, alert.seen_ns)
        for key, alert in state.open.items()
        if alert.labels[ALERT_NAME] == BACKLOG_NAME and starts_ns.get(key, now_ns) > alert.seen_ns
    ]
    return ended_ns(root, over, now_ns)
