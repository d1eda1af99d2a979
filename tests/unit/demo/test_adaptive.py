"""The check that a producer is slowed in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headgate.demo.adaptive import (
    Publishing,
    Snapshot,
    is_settled,
    problems,
    publishing,
    rows,
    snapshot_of,
)
from tests.unit.demo.made import PAIR, adaptive_snapshots

_SCENE = PAIR.slowed[1]

_REPORT: dict[str, Any] = {
    "at": "2026-11-22T06:49:07.500Z",
    "publishing": {
        "parked": [
            {"cause": "adaptive", "messages": 95, "seconds": 12.5},
            {"cause": "pending_limit", "messages": 1, "seconds": 0.5},
        ]
    },
    "quotas": [{"use": 0.62}],
    "adaptive": {"active": 1, "effectiveMessagesPerS": 119.4},
}
_STATS: dict[str, Any] = {"msgInCounter": 3_000, "publishers": [{"address": "127.0.0.1:40404"}]}


def test_the_slowed_producer_and_its_neighbour_are_named() -> None:
    assert (PAIR.slowed[0].text, PAIR.other[0].text) == ("videos / encoding", "chats / inbox")
    assert PAIR.slowed[0].cluster == PAIR.other[0].cluster


def test_a_snapshot_combines_explain_and_statistics() -> None:
    side = publishing(_REPORT, _STATS)
    assert side == Publishing(
        published=3_000,
        waiting=96,
        waited_s={"adaptive": 12.5, "pending_limit": 0.5},
        address="127.0.0.1:40404",
    )
    snapshot = snapshot_of(_REPORT, side, side)
    assert snapshot.at_s % 60 == 7.5
    assert (snapshot.use, snapshot.limit_per_s) == (0.62, 119.4)


@pytest.mark.parametrize("adaptive", [None, {"active": 0, "effectiveMessagesPerS": 400.0}])
def test_there_is_no_limit_before_the_producer_is_slowed(adaptive: dict[str, Any] | None) -> None:
    side = publishing(_REPORT | {"publishing": {"parked": []}}, _STATS | {"publishers": []})
    assert (side.waiting, side.address) == (0, "")
    assert snapshot_of(_REPORT | {"adaptive": adaptive}, side, side).limit_per_s is None


def test_rows_show_how_the_quota_fills() -> None:
    found = rows(adaptive_snapshots(60), 60)
    assert [row.span.text for row in found[:2]] == ["0-5 s", "5-10 s"]
    assert found[0].published_per_s == pytest.approx(400, rel=0.05)
    assert found[-1].published_per_s == pytest.approx(100, rel=0.05)
    assert [round(row.use, 1) for row in found[::4]] == [0.2, 0.6, 0.7]
    limits = [row.limit_per_s for row in found if row.limit_per_s is not None]
    assert limits == sorted(limits, reverse=True)
    # Fifty wait, a hundred a second get on.
    assert found[-1].wait_s == pytest.approx(0.5, rel=0.05)
    assert found[0].wait_s < 0.1
    assert {round(row.other_per_s) for row in found} == {100}


def test_without_messages_there_is_no_wait() -> None:
    first = adaptive_snapshots(60)[-1]
    row = rows([first, replace(first, at_s=first.at_s + 5)], 60)[0]
    assert (row.published_per_s, row.wait_s) == (0.0, 0.0)


@pytest.mark.parametrize("seconds", [10, 12, 60, 300])
def test_a_producer_slowed_in_time_is_no_problem(seconds: float) -> None:
    assert problems(adaptive_snapshots(seconds), PAIR) == []


def test_a_limit_settles() -> None:
    assert not is_settled(adaptive_snapshots(3), _SCENE)
    assert not is_settled(adaptive_snapshots(12), _SCENE)
    assert is_settled(adaptive_snapshots(60), _SCENE)


def test_a_reached_quota_is_a_problem() -> None:
    full, limit = problems(adaptive_snapshots(30, slows=False), PAIR)[:2]
    assert full == "videos / encoding: the quota was reached, after 20.0 s"
    assert limit.endswith("slowed below 320/s and has no limit at the end")


def test_a_limit_with_little_effect_is_a_problem() -> None:
    seen = adaptive_snapshots(60)
    (found,) = problems([*seen, replace(seen[-1], limit_per_s=350.0)], PAIR)
    assert found.endswith("slowed below 320/s and has a limit of 350/s at the end")


def test_a_producer_without_waits_is_a_problem() -> None:
    assert _found(lambda snapshot: replace(snapshot, slowed=_waited(snapshot.slowed))) == [
        "videos / encoding: its producer never waited for adaptive"
    ]


def test_a_wait_with_another_cause_is_a_problem() -> None:
    assert _found(
        lambda snapshot: replace(
            snapshot, slowed=_waited(snapshot.slowed, adaptive=9.0, backlog_quota=1.25)
        )
    ) == ["videos / encoding: its producer waited 1.2 s for backlog_quota"]
    assert _found(
        lambda snapshot: replace(snapshot, other=_waited(snapshot.other, adaptive=0.5))
    ) == ["chats / inbox: its producer waited 0.5 s for adaptive"]


def test_a_slower_neighbour_is_a_problem() -> None:
    assert problems(adaptive_snapshots(60, other_per_s=92), PAIR) == []
    assert problems(adaptive_snapshots(60, other_per_s=80), PAIR) == [
        "chats / inbox: 80/s were published, its producer's 100/s were to be kept"
    ]


def test_a_neighbour_on_another_connection_is_a_problem() -> None:
    (found,) = _found(
        lambda snapshot: replace(snapshot, other=replace(snapshot.other, address="127.0.0.1:1"))
    )
    assert found.endswith("their producers do not share a connection")


def _waited(side: Publishing, **seconds: float) -> Publishing:
    return replace(side, waited_s=seconds)


def _found(change: Callable[[Snapshot], Snapshot]) -> list[str]:
    return problems([change(snapshot) for snapshot in adaptive_snapshots(60)], PAIR)
