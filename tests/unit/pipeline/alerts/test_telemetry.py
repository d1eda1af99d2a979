"""A cluster whose telemetry is missing is an alert; one that was removed is not."""

from __future__ import annotations

from pathlib import Path

from headgate.pipeline.alerts.telemetry import (
    BEHIND_NS,
    REMOVED_NS,
    clusters_behind,
    newest_telemetry,
    telemetry_alerts,
)
from headgate.pipeline.tables.columns import MINUTE_NS
from tests.unit.pipeline.alerts.folder import NOW_NS, telemetry


def test_the_newest_telemetry_of_each_cluster(tmp_path: Path) -> None:
    telemetry(tmp_path)
    telemetry(tmp_path, NOW_NS - MINUTE_NS)
    telemetry(tmp_path, NOW_NS - 60 * MINUTE_NS, "c2")
    telemetry(tmp_path, NOW_NS - REMOVED_NS, "removed")
    assert newest_telemetry(str(tmp_path)) == {"c1": NOW_NS, "c2": NOW_NS - 60 * MINUTE_NS}


def test_missing_telemetry_is_critical(tmp_path: Path) -> None:
    newest = {"c1": NOW_NS, "": NOW_NS - BEHIND_NS}
    assert clusters_behind(newest, NOW_NS) == {""}
    (alert,) = telemetry_alerts(newest, NOW_NS)
    assert alert.labels == {"alertname": "HeadgateTelemetryMissing", "severity": "critical"}
    assert alert.starts_ns == NOW_NS - BEHIND_NS
    assert alert.annotations["summary"] == (
        "A cluster without a name has no telemetry after 2025-11-21 11:10 UTC"
    )
    assert "of a cluster without a name after" in alert.annotations["description"]


def test_the_last_cluster_is_never_taken_as_removed(tmp_path: Path) -> None:
    """If the pipeline itself stands still for days, the alert stays."""
    telemetry(tmp_path)
    newest = newest_telemetry(str(tmp_path))
    (alert,) = telemetry_alerts(newest, NOW_NS + 7 * REMOVED_NS)
    assert alert.labels["cluster"] == "c1"
    assert alert.annotations["summary"].startswith("Cluster c1 has no telemetry after")


def test_a_folder_without_telemetry_has_no_cluster(tmp_path: Path) -> None:
    telemetry(tmp_path)
    assert telemetry_alerts({}, NOW_NS) == []
