"""Readings of the machine's clocks."""

from __future__ import annotations

from headgate.base.clock import Reading, SystemClock, read_together
from headgate.base.units import NS_PER_S


def test_the_system_clock_reads_the_machines_clocks() -> None:
    clock = SystemClock()
    first, second = read_together(clock), read_together(clock)
    assert all(later >= earlier for earlier, later in zip(first[:2], second[:2], strict=True))
    assert first.wall_ns > 1_600_000_000 * NS_PER_S


class Interrupted:
    """Whoever reads it is held up between the readings, a few times."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._now_ns = 0

    def monotonic_ns(self) -> int:
        return self._now_ns

    def running_ns(self) -> int:
        if self._times:
            self._times -= 1
            self._now_ns += NS_PER_S
        return self._now_ns

    def wall_ns(self) -> int:
        return self._now_ns


def test_readings_that_are_far_apart_are_taken_anew() -> None:
    now_ns = 3 * NS_PER_S
    assert read_together(Interrupted(3)) == Reading(now_ns, now_ns, now_ns)


def test_a_machine_that_never_rests_is_read_all_the_same() -> None:
    reading = read_together(Interrupted(1_000))
    assert reading.running_ns == reading.wall_ns == reading.monotonic_ns + NS_PER_S
