"""Lanes of blocking work in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.testing.lanes import SimLane
from headgate.testing.loop import SimLoop


class Bench:
    """A lane, and what it did when."""

    def __init__(self) -> None:
        self.loop = SimLoop()
        self.lane = SimLane(self.loop, random.Random(1))
        self.events: list[str] = []

    def submit(self, name: str) -> None:
        self.lane.submit(
            lambda: self.events.append(f"{name} done") or name,
            lambda result, error: self.events.append(f"{name} told {result or error}"),
        )

    def pass_s(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.loop.close()


def test_jobs_are_done_in_order_and_told_in_order(bench: Bench) -> None:
    for name in "abc":
        bench.submit(name)
    assert not bench.events
    assert not bench.lane.is_idle
    bench.pass_s(0.1)
    assert [e for e in bench.events if "done" in e] == ["a done", "b done", "c done"]
    assert [e for e in bench.events if "told" in e] == ["a told a", "b told b", "c told c"]
    assert bench.lane.is_idle
    assert bench.lane.jobs_count == 3


def test_a_job_takes_between_the_least_and_the_most_latency(bench: Bench) -> None:
    for _ in range(20):
        began_ns = bench.loop.clock.monotonic_ns()
        bench.submit("a")
        while len(bench.events) < 2:
            bench.pass_s(0.0001)
        took_ns = bench.loop.clock.monotonic_ns() - began_ns
        assert bench.lane.latency_ns_min <= took_ns <= bench.lane.latency_ns_max + NS_PER_MS
        bench.events.clear()


def test_closing_tells_what_was_done_and_not_yet_told(bench: Bench) -> None:
    """Whoever waits for a result while the broker stops would wait for ever."""
    for name in "ab":
        bench.submit(name)
    while "a done" not in bench.events:
        bench.pass_s(0.00001)
    assert bench.events == ["a done"]
    bench.lane.close()
    assert bench.events == ["a done", "a told a", "b done", "b told b"]
    bench.pass_s(1)
    assert len(bench.events) == 4


def test_a_frozen_lane_begins_nothing(bench: Bench) -> None:
    bench.lane.freeze()
    bench.submit("a")
    bench.pass_s(10)
    assert not bench.events
    bench.lane.thaw()
    bench.pass_s(0.1)
    assert bench.events == ["a done", "a told a"]


def test_a_planned_failure_does_no_work(bench: Bench) -> None:
    bench.lane.fail_next(OSError("broken"))
    bench.submit("a")
    bench.submit("b")
    bench.pass_s(0.1)
    assert sorted(bench.events) == ["a told broken", "b done", "b told b"]


def test_an_error_of_the_work_is_handed_over(bench: Bench) -> None:
    told: list[BaseException | None] = []
    bench.lane.submit(lambda: 1 // 0, lambda _, error: told.append(error))
    bench.pass_s(0.1)
    assert isinstance(told[0], ZeroDivisionError)


def test_a_killed_lane_tells_nobody(bench: Bench) -> None:
    bench.submit("a")
    bench.submit("b")
    assert len(bench.lane.pending_work()) == 2
    bench.lane.kill()
    bench.submit("c")
    bench.pass_s(1)
    assert not bench.events
    assert not bench.lane.pending_work()


def test_closing_does_what_waits_at_once(bench: Bench) -> None:
    bench.submit("a")
    bench.submit("b")
    before_ns = bench.loop.clock.monotonic_ns()
    bench.lane.close()
    assert bench.events == ["a done", "a told a", "b done", "b told b"]
    assert bench.loop.clock.monotonic_ns() == before_ns


def test_the_same_seed_takes_the_same_time() -> None:
    def times() -> list[int]:
        loop, seen = SimLoop(), []
        lane = SimLane(loop, random.Random(9))
        for _ in range(5):
            lane.submit(lambda: None, lambda *_: seen.append(loop.clock.monotonic_ns()))
        loop.run_until_complete(asyncio.sleep(1))
        loop.close()
        return seen

    first = times()
    assert first == times()
    assert first[-1] - first[0] < NS_PER_S
