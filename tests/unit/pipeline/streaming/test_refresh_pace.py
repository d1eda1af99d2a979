"""A stream that keeps up refreshes after each batch, one that catches up once a minute."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.base.units import NS_PER_S
from headgate.pipeline.quality import Checked
from headgate.pipeline.streaming import refresh_pace
from headgate.pipeline.streaming.metrics import StreamMetrics
from headgate.pipeline.streaming.refresh_pace import (
    BEHIND_S,
    REFRESH_PERIOD_S,
    RefreshPace,
    StreamTables,
)
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import write

SESSION = cast(Any, "session")


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("lag_s", [0.0, BEHIND_S - 1, float("nan")])
def test_a_stream_that_keeps_up_refreshes_after_every_batch(lag_s: float) -> None:
    pace = RefreshPace(Clock())
    for _ in range(3):
        assert pace.after_batch(lag_s)
        pace.mark_refreshed()
    assert not pace.is_pending


def test_a_stream_that_catches_up_refreshes_once_a_minute() -> None:
    clock = Clock()
    pace = RefreshPace(clock)
    found = []
    for _ in range(30):
        clock.now_s += 5
        found.append(pace.after_batch(BEHIND_S))
        if found[-1]:
            clock.now_s += 7
            pace.mark_refreshed()
    every = int(REFRESH_PERIOD_S // 5)
    assert found == ([False] * (every - 1) + [True]) * 2 + [False] * (30 - 2 * every)
    assert pace.is_pending


class Lineage:
    """Keeps what a stream reports."""

    def __init__(self) -> None:
        self.outcomes: list[Any] = []

    def refreshed(self, tables: Any, outcomes: Any) -> None:
        """Keep it."""
        assert tables
        self.outcomes.append(outcomes)


class Refreshed:
    """A stream's tables of which only the refresh is played."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, lag_s: float) -> None:
        self.sessions: list[Any] = []
        monkeypatch.setattr(refresh_pace, "refresh_all", lambda s, _: self.sessions.append(s))
        self.metrics = StreamMetrics(lambda: T0 + NS_PER_S + int(lag_s * NS_PER_S))
        end = datetime.fromtimestamp(T0 // NS_PER_S, UTC)
        row = {"date": end.date(), "hour": 10, "kind": "batch", "window_end": end}
        write(root, "bronze_samples", [row], ("date", "hour", "kind"))
        self.said: list[str] = []
        self.lineage = Lineage()
        self.tables = StreamTables(
            str(root), self.metrics, monotonic=Clock(), say=self.said.append,
            lineage=cast(Any, self.lineage),
        )  # fmt: skip


def test_a_pending_refresh_runs_between_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Refreshed(tmp_path, monkeypatch, lag_s=3_600)
    stream.tables.between_batches(SESSION)
    stream.tables.after_batch(SESSION)
    assert stream.sessions == []
    assert stream.metrics.lag_s() >= 3_600
    stream.tables.between_batches(SESSION)
    stream.tables.between_batches(SESSION)
    assert stream.sessions == [SESSION]


def test_a_current_batch_is_in_all_tables_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Refreshed(tmp_path, monkeypatch, lag_s=5)
    stream.tables.after_batch(SESSION)
    stream.tables.between_batches(SESSION)
    assert stream.sessions == [SESSION]


def test_a_stream_says_once_that_an_expectation_is_not_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refresh checks the present hour again."""
    row = {
        "table_name": "attribution", "expectation": "unique_key", "example": None,
        "hour_start": datetime(2025, 11, 21, 10, tzinfo=UTC), "sentence": "2 of 9 rows repeat.",
    }  # fmt: skip
    bad, good, nothing = Checked(1, 9, (row,)), Checked(1, 9), Checked()
    looks = iter([bad, bad, nothing, bad, good, bad])
    monkeypatch.setattr(refresh_pace, "check_tables", lambda _: next(looks))
    stream = Refreshed(tmp_path, monkeypatch, lag_s=5)
    said = []
    for _ in range(6):
        stream.tables.bring_up_to_date(SESSION)
        said.append(len(stream.said))
    assert said == [2, 2, 2, 2, 2, 4]
    assert stream.said[0] == "Hour 2025-11-21T10:00Z: 2 of 9 rows repeat."
    assert len(stream.lineage.outcomes) == 5
