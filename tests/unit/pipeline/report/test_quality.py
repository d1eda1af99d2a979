"""Coverage of a range: sampled time, gaps, quarantine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.quality import quality
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import at, write

SPAN = Span(T0, T0 + 3 * MINUTE_NS)
GRID = Grid(T0, MINUTE_NS, 3)


def account(place: int, **more: Any) -> dict[str, Any]:
    begin = T0 + place * MINUTE_NS
    counts = dict.fromkeys(("gaps", "restarts", "resets", "clock_steps"), 0)
    row = {"kind": "topic", "cluster": "c1", "broker": "b1", "evidence": "measured"}
    span = {"from_ns": begin, "to_ns": begin + MINUTE_NS, "covered_ns": MINUTE_NS}
    return {**at(begin), **row, **span, **counts, **more}


def test_completeness_is_of_time(tmp_path: Path) -> None:
    rows = [
        account(0),
        account(1, covered_ns=MINUTE_NS // 2, gaps=2, cluster="c2", evidence=None),
        account(1, restarts=1, broker="b2"),
    ]
    write(tmp_path, "intervals", rows, ("date", "hour", "kind"))
    found = quality(TableScan(str(tmp_path), "intervals"), None, SPAN, GRID)
    assert (found.clusters, found.brokers) == (("c1", "c2"), ("b1", "b2"))
    assert found.evidence == ("measured",)
    assert found.rows == 3
    assert found.completeness == pytest.approx(2.5 / 3)
    np.testing.assert_allclose(found.completeness_steps, [1, 0.75, np.nan])
    assert found.gaps_steps.tolist() == [0, 2, 0]
    assert found.counts == {"gaps": 2, "restarts": 1, "resets": 0, "clock_steps": 0}
    assert (found.quarantined, found.reasons) == (0, ())


def test_quarantine_by_reason(tmp_path: Path) -> None:
    write(tmp_path, "intervals", [account(0)], ("date", "hour", "kind"))
    rows = []
    for place, reason in enumerate(["a", "b", "b", "late"]):
        when = at(T0 + MINUTE_NS * (place if reason != "late" else 9))
        rows.append({**when, "publish_time": when.pop("minute"), "reason": reason})
    write(tmp_path, "bronze_quarantine", rows)
    scans = [TableScan(str(tmp_path), name) for name in ("intervals", "bronze_quarantine")]
    found = quality(scans[0], scans[1], SPAN, GRID)
    assert (found.quarantined, found.reasons) == (3, (("b", 2), ("a", 1)))


def test_without_samples_completeness_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, "intervals", [account(0)], ("date", "hour", "kind"))
    early = Span(T0 - 9 * MINUTE_NS, T0 - 8 * MINUTE_NS)
    assert quality(TableScan(str(tmp_path), "intervals"), None, early, GRID).completeness is None
