"""Faults of the tables, from the table ``quality``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.pipeline.alerts.quality import RECENT_HOURS, quality_alerts
from headgate.pipeline.tables.columns import HOUR_NS
from tests.unit.pipeline.alerts.folder import NOW_NS, telemetry
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import at, write


def row(hour_ns: int, expectation: str, failed: int) -> dict[str, Any]:
    place = at(hour_ns)
    return {
        "date": place["date"],
        "hour": place["hour"],
        "hour_start": place["minute"],
        "table_name": "intervals",
        "expectation": expectation,
        "rows_failed": failed,
        "sentence": f"In words: {failed}.",
    }


def test_an_expectation_that_rows_do_not_meet(tmp_path: Path) -> None:
    old_ns = T0 - RECENT_HOURS * HOUR_NS
    rows = [
        row(T0, "keys unique", 0),
        row(T0 - HOUR_NS, "sums agree", 2),
        row(T0, "sums agree", 1),
        row(old_ns, "ranges", 1),
    ]
    write(tmp_path, "quality", rows)
    (alert,) = quality_alerts(str(tmp_path), NOW_NS)
    assert alert.labels == {
        "alertname": "HeadgateDataQuality",
        "severity": "warning",
        "table": "intervals",
        "expectation": "sums agree",
    }
    assert alert.annotations == {
        "summary": "3 rows do not meet sums agree of intervals",
        "description": "In words: 1.",
    }
    assert (alert.starts_ns, alert.weight) == (T0 - HOUR_NS, 3.0)


def test_without_the_table_there_is_none(tmp_path: Path) -> None:
    telemetry(tmp_path)
    assert quality_alerts(str(tmp_path), NOW_NS) == []
