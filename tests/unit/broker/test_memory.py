"""What counts as held: the process, less the caches and what the allocator has free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.base.units import MIB, NS_PER_MS, NS_PER_S, NS_PER_US
from headgate.broker.memory import ProcessMemory
from headgate.testing import ManualClock

LIMIT_BYTES = 1_000 * MIB


class System:
    """A process that is as large as it is told; counting what is free takes time."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.resident_mb = 0
        self.free_mb = 0
        self.walk_ns = 20 * NS_PER_US
        self.walks = 0

    def resident_bytes(self) -> int:
        return self.resident_mb * MIB

    def free_bytes(self) -> int:
        self.walks += 1
        self.clock.advance(self.walk_ns)
        return self.free_mb * MIB


class HeldLane:
    """Work that waits until it is told to run."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def submit(
        self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        self.jobs.append((work, done))

    def close(self) -> None:
        self.jobs.clear()

    def run(self) -> None:
        work, done = self.jobs.pop()
        done(work(), None)


class Scene:
    """A process with 100 MiB of caches and a low watermark of 70 %."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.system = System(self.clock)
        self.lane = HeldLane()
        self.low_share = 0.7
        self.memory = ProcessMemory(
            LIMIT_BYTES,
            lambda: 100 * MIB,
            system=self.system,
            low_share=lambda: self.low_share,
            lane=self.lane,
            now_ns=self.clock.monotonic_ns,
        )

    def used_mb(self) -> float:
        return self.memory.used_bytes() / MIB

    def asks_after(self) -> int:
        """Seconds, to the next whole one, until the allocator is asked again."""
        for second in range(20):
            self.used_mb()
            if self.lane.jobs:
                return second
            self.clock.advance(NS_PER_S)
        raise AssertionError("never asked again")


def test_up_to_the_low_watermark_the_allocator_is_not_asked() -> None:
    scene = Scene()
    scene.system.resident_mb = 800
    assert scene.used_mb() == 700
    assert not scene.lane.jobs
    scene.low_share = 0.6
    assert scene.used_mb() == 700
    assert len(scene.lane.jobs) == 1


def test_what_the_allocator_has_free_is_not_held() -> None:
    scene = Scene()
    scene.system.resident_mb, scene.system.free_mb = 1_100, 500
    assert [scene.used_mb(), scene.used_mb()] == [1_000, 1_000]
    assert len(scene.lane.jobs) == 1
    scene.lane.run()
    assert scene.used_mb() == 500


def test_the_last_answer_counts_until_the_next() -> None:
    scene = Scene()
    scene.system.resident_mb, scene.system.free_mb = 1_100, 500
    scene.used_mb()
    scene.lane.run()
    scene.system.free_mb = 200
    scene.clock.advance(NS_PER_S - 1)
    assert scene.used_mb() == 500
    assert not scene.lane.jobs
    scene.clock.advance(1)
    assert scene.used_mb() == 500
    scene.lane.run()
    assert scene.used_mb() == 800


def test_an_answer_of_another_time_is_forgotten() -> None:
    scene = Scene()
    scene.system.resident_mb, scene.system.free_mb = 1_100, 500
    scene.used_mb()
    scene.lane.run()
    scene.system.resident_mb = 200
    assert scene.used_mb() == 100
    scene.system.resident_mb = 1_100
    assert scene.used_mb() == 1_000


@pytest.mark.parametrize(
    ("walk_ns", "seconds"),
    [(20 * NS_PER_US, 1), (3 * NS_PER_MS, 3), (11 * NS_PER_MS, 5), (NS_PER_S, 5)],
)
def test_the_longer_it_takes_the_seldomer_it_is_asked(walk_ns: int, seconds: int) -> None:
    scene = Scene()
    scene.system.resident_mb = 1_100
    scene.system.walk_ns = walk_ns
    scene.used_mb()
    scene.lane.run()
    assert scene.asks_after() == seconds


def test_it_is_never_less_than_nothing() -> None:
    scene = Scene()
    scene.system.resident_mb = 50
    assert scene.used_mb() == 0
    scene.system.resident_mb, scene.system.free_mb = 900, 2_000
    scene.used_mb()
    scene.lane.run()
    assert scene.used_mb() == 0


def test_a_question_that_failed_subtracts_nothing_and_is_put_again() -> None:
    scene = Scene()
    scene.system.resident_mb, scene.system.free_mb = 1_100, 500
    scene.used_mb()
    scene.lane.run()
    assert scene.used_mb() == 500
    assert scene.asks_after() == 1
    _, done = scene.lane.jobs.pop()
    with pytest.raises(OSError, match="no"):
        done(None, OSError("no"))
    assert scene.used_mb() == 1_000
    assert scene.asks_after() == 1
