"""All kinds of alerts of one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.alerts.options import AlertOptions
from headgate.pipeline.alerts.plan import next_state
from headgate.pipeline.alerts.sources import ends_of, found_alerts
from headgate.pipeline.alerts.state import TargetState
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from tests.unit.pipeline.alerts.folder import NOW_NS, OPEN, open_segment, segment, telemetry
from tests.unit.pipeline.alerts.test_quotas import row
from tests.unit.pipeline.report.folder import write


def options(root: Path, **more: Any) -> AlertOptions:
    return AlertOptions(str(root), is_dry_run=True, **more)


def test_each_kind_that_is_asked_for(tmp_path: Path) -> None:
    telemetry(tmp_path)
    write(tmp_path, "episodes", [open_segment()])
    write(tmp_path, "quota_usage", [row("full", seconds_to_breach=0.0)])

    def names(**more: Any) -> set[str]:
        found = found_alerts(options(tmp_path, **more), NOW_NS + MINUTE_NS)
        assert found.remarks == ()
        return {alert.labels["alertname"] for alert in found.alerts}

    assert names() == {"HeadgateBacklog", "HeadgateQuotaReached"}
    assert names(kinds=("backlog", "backlog")) == {"HeadgateBacklog"}
    assert names(kinds=("quota", "quality")) == {"HeadgateQuotaReached"}
    late = found_alerts(options(tmp_path), NOW_NS + HOUR_NS)
    # Nobody saw the end of the backlog; the forecast is too old.
    assert [alert.labels["alertname"] for alert in late.alerts] == [
        "HeadgateBacklog", "HeadgateTelemetryMissing",
    ]  # fmt: skip


def test_tables_that_are_missing_are_named(tmp_path: Path) -> None:
    telemetry(tmp_path)
    found = found_alerts(options(tmp_path), NOW_NS)
    assert found.alerts == ()
    assert found.remarks == (
        "There is no table episodes yet, so there are no alerts about backlogs.",
        "There is no table quota_usage yet, so there are no alerts about quotas.",
    )
    with pytest.raises(InputError, match="there is no folder"):
        found_alerts(options(tmp_path / "none"), NOW_NS)


def test_the_end_of_a_backlog_comes_from_the_tables(tmp_path: Path) -> None:
    telemetry(tmp_path)
    write(tmp_path, "episodes", [segment(NOW_NS - 9 * MINUTE_NS, NOW_NS, **OPEN)])
    found = found_alerts(options(tmp_path), NOW_NS)
    state = next_state(TargetState(), found.alerts, {}, NOW_NS)
    assert ends_of(str(tmp_path), state, found, NOW_NS) == {}
    over_ns = NOW_NS + 2 * MINUTE_NS
    other = tmp_path / "later"
    telemetry(other, NOW_NS + 9 * MINUTE_NS)
    write(other, "episodes", [segment(NOW_NS - 9 * MINUTE_NS, over_ns)])
    later = found_alerts(options(other), NOW_NS + 9 * MINUTE_NS)
    (key,) = state.open
    assert ends_of(str(other), state, later, NOW_NS + 9 * MINUTE_NS) == {key: over_ns}
    assert ends_of(str(other), TargetState(), later, NOW_NS) == {}
