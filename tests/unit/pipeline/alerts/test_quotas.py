"""Quotas that are reached, and those that soon will be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.pipeline.alerts.quotas import KEEPS_NS, quota_alerts
from headgate.pipeline.tables.columns import MINUTE_NS
from tests.unit.pipeline.alerts.folder import NOW_NS
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, quota_row, write

LAST = (NOW_NS - T0) // MINUTE_NS - 1
"""The last minute, counted from the first one."""


def row(topic: str, minute: int = LAST, **more: Any) -> dict[str, Any]:
    to_ns = T0 + (minute + 1) * MINUTE_NS
    return quota_row(minute, NS + topic, **({"to_ns": to_ns} | more))


def found(root: Path, **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "newest": {"c1": NOW_NS}, "behind": (), "within_ns": 60 * MINUTE_NS, **more,
    }  # fmt: skip
    return {alert.labels["topic"]: alert for alert in quota_alerts(str(root), **asked)}


def test_reached_ones_are_critical_and_near_ones_a_warning(tmp_path: Path) -> None:
    rows = [
        row("near"),
        row("full", seconds_to_breach=0.0),
        row("late", seconds_to_breach=7_200.0),
        row("never", seconds_to_breach=None, method="none"),
        row("unlimited", method=None),
    ]
    write(tmp_path, "quota_usage", rows)
    alerts = found(tmp_path)
    assert alerts.keys() == {NS + "near", NS + "full"}
    near, full = alerts[NS + "near"], alerts[NS + "full"]
    assert near.labels["alertname"] == "HeadgateQuotaBreachExpected"
    assert (near.labels["severity"], near.labels["quota"]) == ("warning", "size")
    assert (near.starts_ns, near.keeps_ns) == (None, KEEPS_NS)
    assert near.annotations == {
        "summary": f"The size quota of {NS}near is likely reached at 2025-11-21 11:30 UTC",
        "description": "The size quota fills.",
    }
    assert full.labels["alertname"] == "HeadgateQuotaReached"
    assert full.labels["severity"] == "critical"
    assert full.annotations["summary"] == f"The size quota of {NS}full is reached"
    assert full.keeps_ns == 0
    assert found(tmp_path, within_ns=10 * MINUTE_NS).keys() == {NS + "near", NS + "full"}
    assert found(tmp_path, within_ns=9 * MINUTE_NS).keys() == {NS + "full"}


def test_only_the_last_row_of_a_topic_counts(tmp_path: Path) -> None:
    rows = [
        row("healed", LAST - 1, seconds_to_breach=0.0),
        row("healed", LAST, seconds_to_breach=None, method="none"),
        row("again", LAST, seconds_to_breach=0.0, incarnation=1),
        row("again", LAST, seconds_to_breach=None, method="none", incarnation=2),
        row("deleted", LAST - 6, seconds_to_breach=0.0),
        row("resting", LAST - 4, seconds_to_breach=0.0),
    ]
    write(tmp_path, "quota_usage", rows)
    assert found(tmp_path).keys() == {NS + "resting"}


def test_a_cluster_without_new_telemetry_has_none(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [row("full", seconds_to_breach=0.0)])
    assert found(tmp_path, behind=("c1",)) == {}
    assert found(tmp_path, newest={"c2": NOW_NS}) == {}
