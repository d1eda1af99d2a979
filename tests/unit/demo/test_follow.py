"""The check that a limit follows the publish rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.demo.follow import Snapshot, problems, rows, snapshot_of, sustained_rate_per_s
from headgate.demo.spans import SNAPSHOT_PERIOD_S
from tests.unit.demo.made import MOVING, scene, snapshots

_SCENE = scene("relative-limit")

_REPORT: dict[str, Any] = {
    "at": "2026-11-21T18:41:44.250Z",
    "subscriptions": [
        {"subscription": "other", "backlogMessages": 1, "unackedMessages": 0},
        {"subscription": "tracking", "backlogMessages": 4_000, "unackedMessages": 20},
    ],
    "limits": [
        {
            "level": "topic",
            "subject": MOVING.topic,
            "relative": True,
            "budgets": [
                {"dimension": "bytes", "limit": 9, "granted": 9, "source": "no"},
                {"dimension": "messages", "limit": 351, "granted": 700, "source": "topic policy"},
            ],
        },
        {"level": "broker", "subject": "", "relative": False, "budgets": []},
    ],
}


def test_a_snapshot_is_one_response_of_explain() -> None:
    snapshot = snapshot_of(_REPORT, MOVING)
    assert snapshot.at_s % 60 == 44.25
    assert (snapshot.delivered, snapshot.backlog, snapshot.published) == (700, 4_000, 4_680)
    assert (snapshot.limit_per_s, snapshot.source) == (351, "topic policy")


@pytest.mark.parametrize("changes", [{"budgets": []}, {"subject": ""}])
def test_only_the_limit_of_the_topic_counts(changes: dict[str, Any]) -> None:
    limits = [_REPORT["limits"][0] | changes]
    snapshot = snapshot_of(_REPORT | {"limits": limits}, MOVING)
    assert (snapshot.limit_per_s, snapshot.delivered, snapshot.source) == (0, 0, "")


def test_rows_are_means_of_a_few_seconds() -> None:
    found = rows(snapshots(60), 60)
    assert [row.span for row in found] == [(5 * n, 5 * n + 5) for n in range(12)]
    published = [100] * 4 + [300] * 4 + [100] * 4
    assert [row.published_per_s for row in found] == pytest.approx(published, abs=1)
    steady = [row for number, row in enumerate(found) if number not in (4, 8)]
    assert [row.growth_per_s for row in steady] == pytest.approx([-50] * 10, abs=3)
    assert all(row.limit_per_s == pytest.approx(row.published_per_s + 50, abs=2) for row in steady)
    rise, fall = found[4], found[8]
    assert 300 < rise.limit_per_s < 350
    assert 150 < fall.limit_per_s < 250
    assert found[-1].backlog == snapshots(60)[-1].backlog


def test_a_row_is_complete_when_its_time_is_over() -> None:
    seen = snapshots(60)
    assert rows(seen[:1], 60) == []
    assert rows(seen[: round(4 / SNAPSHOT_PERIOD_S)], 60) == []
    assert len(rows(seen[: round(5 / SNAPSHOT_PERIOD_S) + 1], 60)) == 1
    assert [row.span.end_s for row in rows(snapshots(12), 12)] == list(range(1, 13))
    assert rows(snapshots(100), 100)[-1].span.end_s == 100


def test_late_snapshots_change_no_rate() -> None:
    """A machine that is busy with other things: of five seconds most looks are missing."""
    seen = snapshots(60)
    fewer = [snapshot for number, snapshot in enumerate(seen) if number % 10 in (0, 3, 4)]
    rates = [row.published_per_s for row in rows(fewer, 60)]
    assert rates == pytest.approx([row.published_per_s for row in rows(seen, 60)], abs=1)
    assert problems(fewer, _SCENE, 60) == []


def test_a_rate_counts_as_published_after_two_seconds() -> None:
    seen = snapshots(60)
    known = [sustained_rate_per_s(seen, at) for at in range(len(seen))]
    at = {snapshot.at_s - seen[0].at_s: per_s for snapshot, per_s in zip(seen, known, strict=True)}
    assert at[1.5] == 0.0
    assert at[19.5] == pytest.approx(100, abs=2)
    assert at[21.0] == pytest.approx(100, abs=2)
    assert at[22.0] == pytest.approx(300, abs=2)
    assert at[41.0] == pytest.approx(100, abs=2)


@pytest.mark.parametrize("seconds", [10, 12, 60, 300])
def test_a_limit_that_follows_the_rule_is_no_problem(seconds: float) -> None:
    assert problems(snapshots(seconds), _SCENE, seconds) == []


def test_a_short_pause_of_a_producer_is_no_problem() -> None:
    """Nothing for a second, then two seconds' worth: the limit follows that, too."""
    seen = snapshots(60, (100,) * 20 + (300,) * 20 + (100,) * 18 + (0, 200))
    assert seen[-1].limit_per_s > 200
    assert problems(seen, _SCENE, 60) == []


def test_a_limit_that_does_not_rise_is_a_problem() -> None:
    seen = [replace(snapshot, limit_per_s=150) for snapshot in snapshots(60)]
    assert problems(seen, _SCENE, 60) == [
        "at 21.5 s the limit in force was 150/s though 200/s had been published for 2 s:"
        " 250/s were due"
    ]


def test_a_limit_that_rises_too_late_is_a_problem() -> None:
    assert problems(snapshots(60, late_s=0.5), _SCENE, 60) == []
    (found,) = problems(snapshots(60, late_s=1.5), _SCENE, 60)
    assert found.startswith("at 2")
    assert found.endswith("/s were due")


def test_a_limit_that_does_not_fall_is_a_problem() -> None:
    (found,) = problems(snapshots(60, stays=True), _SCENE, 60)
    assert found == "at the end the limit in force was 350/s, 150/s were due"


def test_a_missing_limit_is_a_problem() -> None:
    seen = [replace(snapshot, limit_per_s=0) for snapshot in snapshots(60)]
    first, last = problems(seen, _SCENE, 60)
    assert first.startswith("at 0.0 s the limit in force was 0/s")
    assert last == "at the end the limit in force was 0/s, 150/s were due"


def test_an_unpublished_rate_proves_nothing() -> None:
    assert problems(snapshots(60, (100,)), _SCENE, 60) == [
        "300/s were to be published and never were for 2 s"
    ]


def test_a_backlog_that_does_not_shrink_is_a_problem() -> None:
    assert problems(snapshots(60, delivers=0.95), _SCENE, 60) == []
    (found,) = problems(snapshots(60, delivers=0.7), _SCENE, 60)
    assert found.startswith("the backlog changed by +")
    assert found.endswith(" in 60 s, not by -50/s")


def test_missing_snapshots_are_a_problem() -> None:
    none: list[Snapshot] = []
    assert len(problems(none, _SCENE, 60)) == 2
