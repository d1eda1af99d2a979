"""The threads of a broker, all watched and all closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.base.units import NS_PER_MS
from headgate.broker.lanes import Lanes
from headgate.storage.lane_watch import LaneWatch
from headgate.storage.lanes import Done
from headgate.testing.clock import ManualClock


class FakeLane:
    def __init__(self) -> None:
        self.is_closed = False
        self.jobs_count = 0

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        self.jobs_count += 1

    def pause(self, seconds: float) -> bool:
        return False

    def rest(self, seconds: float) -> None: ...

    def at_once(self, count_max: int) -> int:
        return count_max

    def close(self) -> None:
        self.is_closed = True

    def abandon(self) -> None: ...


def test_every_lane_is_watched_and_closed() -> None:
    fakes = [FakeLane() for _ in range(6)]
    lanes = Lanes(*fakes).watched(LaneWatch(ManualClock(), lambda *_: None))
    for lane in (
        lanes.commit,
        lanes.read,
        lanes.metadata,
        lanes.upkeep,
        lanes.removal,
        lanes.telemetry,
    ):
        assert lane is not None
        lane.submit(lambda: None, lambda *_: None)
    lanes.close()
    assert [(fake.is_closed, fake.jobs_count) for fake in fakes] == [(True, 1)] * 6


def test_the_telemetry_lane_may_be_absent() -> None:
    lanes = Lanes(*[FakeLane() for _ in range(5)])
    assert lanes.watched(LaneWatch(ManualClock(), lambda *_: None)).telemetry is None
    lanes.close()


class InlineLane(FakeLane):
    def submit(self, work: Callable[[], Any], done: Done) -> None:
        done(work(), None)


def test_what_jobs_take_on_the_lane_bounds_how_many_are_there_at_once() -> None:
    clock = ManualClock()
    lane = LaneWatch(clock, lambda *_: None).watched("read", InlineLane())
    assert lane.at_once(8) == 8
    lane.submit(lambda: clock.advance(30 * NS_PER_MS), lambda *_: None)
    assert lane.at_once(8) == 2
