"""What counts as held: the process, less the caches and what the allocator has free (rule 5.3)."""

from __future__ import annotations

import pytest

from headgate.base.units import MIB, NS_PER_MS, NS_PER_S, NS_PER_US
from headgate.control.memory import ProcessMemory
from headgate.testing import ManualClock

LIMIT_BYTES = 1_000 * MIB


class Scene:
    """A process with 100 MiB of caches and a low watermark of 70 %, as large as it is told."""

    def __init__(self, resident_mb: int, free_mb: int = 0) -> None:
        self.resident_mb = resident_mb
        self.free_mb = free_mb
        self.walk_ns = 20 * NS_PER_US
        self.asked_count = 0
        self.low_share = 0.7
        self.clock = ManualClock()
        self.memory = ProcessMemory(
            LIMIT_BYTES,
            lambda: 100 * MIB,
            system=self,
            low_share=lambda: self.low_share,
            now_ns=self.clock.monotonic_ns,
        )

    def resident_bytes(self) -> int:
        return self.resident_mb * MIB

    def free_bytes(self) -> int:
        self.asked_count += 1
        self.clock.advance(self.walk_ns)
        return self.free_mb * MIB

    def used_mb(self) -> float:
        return self.memory.used_bytes() / MIB


def test_d2_up_to_the_low_watermark_the_allocator_is_not_asked() -> None:
    scene = Scene(800, 300)
    assert (scene.used_mb(), scene.asked_count) == (700, 0)
    scene.low_share = 0.6
    assert (scene.used_mb(), scene.asked_count) == (400, 1)


def test_d2_what_the_allocator_has_free_is_not_held() -> None:
    assert Scene(1_100, 500).used_mb() == 500
    assert Scene(1_100).used_mb() == 1_000


@pytest.mark.parametrize(
    ("walk_ns", "rest_ns"),
    [
        (20 * NS_PER_US, 20 * NS_PER_MS),
        (3 * NS_PER_MS, 3 * NS_PER_S),
        (11 * NS_PER_MS, 5 * NS_PER_S),
        (NS_PER_S, 5 * NS_PER_S),
    ],
)
def test_the_longer_it_takes_the_seldomer_it_is_asked(walk_ns: int, rest_ns: int) -> None:
    scene = Scene(1_100, 500)
    scene.walk_ns = walk_ns
    assert scene.used_mb() == 500
    scene.free_mb = 200
    scene.clock.advance(rest_ns - 1)
    assert (scene.used_mb(), scene.asked_count) == (500, 1)
    scene.clock.advance(1)
    assert (scene.used_mb(), scene.asked_count) == (800, 2)


def test_what_was_free_at_another_time_is_forgotten() -> None:
    scene = Scene(1_100, 500)
    scene.walk_ns = NS_PER_S
    assert scene.used_mb() == 500
    scene.resident_mb = 200
    assert scene.used_mb() == 100
    scene.resident_mb = 1_100
    assert scene.used_mb() == 1_000


def test_it_is_never_less_than_nothing() -> None:
    assert Scene(50).used_mb() == 0
    assert Scene(900, 2_000).used_mb() == 0
