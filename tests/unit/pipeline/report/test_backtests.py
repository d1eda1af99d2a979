"""The newest run, its points over all topics, the best first."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.pipeline.report import backtests
from headgate.pipeline.report.backtests import newest_run
from headgate.pipeline.store.scan import TableScan
from tests.unit.pipeline.report.folder import NS, backtest_row, topic_key, write

WHEN = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def scan(tmp_path: Path) -> TableScan:
    rows = [backtest_row(point) for point in range(3)]
    for point in range(4):
        for name in ("one", "two"):
            more = topic_key(NS + name) | {"rank": 4 - point, "run_at": WHEN}
            rows.append(backtest_row(point, "r2", **more))
    rows[-1] |= {"score": None, "is_pareto": False}
    write(tmp_path, "policy_backtest", rows, ("run_id",))
    return TableScan(str(tmp_path), "policy_backtest")


def test_the_newest_run_summed_over_topics(scan: TableScan) -> None:
    run = newest_run(scan)
    assert run is not None
    assert (run.run_id, run.run_at, run.topics, run.count) == ("r2", WHEN, 2, 4)
    assert [(p.rank, p.number) for p in run.points] == [(1, 3), (2, 2), (3, 1), (4, 0)]
    best = run.points[0]
    assert (best.topics, best.seconds_over_quota, best.parked_seconds) == (2, 176, 18)
    assert (best.name, best.settings) == ("point 3", "law: drain; target: 0.53")
    assert (best.drain_used, best.score, best.is_pareto) == (0.9, 3.0, True)


@pytest.mark.parametrize(
    ("row", "name", "settings"),
    [
        ({"name": "own", "settings": '{"name":"own","publish":"none"}'}, "own", "publish: none"),
        ({"settings": "{}"}, "point 0", "as recorded"),
    ],
)
def test_a_point_has_readable_settings(
    tmp_path: Path, row: dict[str, str], name: str, settings: str
) -> None:
    write(tmp_path, "policy_backtest", [backtest_row(0) | row], ("run_id",))
    run = newest_run(TableScan(str(tmp_path), "policy_backtest"))
    assert run is not None
    assert (run.points[0].name, run.points[0].settings) == (name, settings)


def test_points_are_bounded(scan: TableScan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtests, "POINTS_SHOWN", 1)
    run = newest_run(scan)
    assert run is not None
    assert (run.count, [p.rank for p in run.points]) == (4, [1])
    # Those beyond the cut are on the front all the same.
    assert run.front == 4
