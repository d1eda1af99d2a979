"""The clock protocol.

Pure code takes ``now_ns: int`` as an argument. Only the code around it has a :class:`Clock`, and
only ``headgate.app`` builds the real one. ``headgate.testing.ManualClock`` is the other
implementation.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple, Protocol

from headgate.base.units import NS_PER_MS

_TOGETHER_NS: Final = 10 * NS_PER_MS
"""Readings within this time count as one instant."""

_READINGS_MAX: Final = 5


class Clock(Protocol):
    """Three clocks, all in nanoseconds."""

    def monotonic_ns(self) -> int:
        """A clock that never goes back, with an arbitrary zero: for all durations and rates."""

    def running_ns(self) -> int:
        """Time since the machine booted, sleep included. It never goes back until the next boot.
        The time of the log and checks of the wall clock use it."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch. May step in either direction."""


thread_cpu_ns = time.thread_time_ns
"""CPU time of the calling thread in nanoseconds."""


class SystemClock:
    """The machine's clocks."""

    monotonic_ns = staticmethod(time.monotonic_ns)
    wall_ns = staticmethod(time.time_ns)

    @staticmethod
    def running_ns() -> int:
        """``CLOCK_BOOTTIME``; the monotonic clock on systems without it."""
        return time.clock_gettime_ns(_RUNNING)


_RUNNING: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Reading(NamedTuple):
    """All three clocks at one instant."""

    monotonic_ns: int
    running_ns: int
    wall_ns: int


def read_together(clock: Clock) -> Reading:
    """The three clocks at one instant.

    A pause between two readings would look like a step of a clock. So if the readings take too
    long, this reads all three again, a few times.
    """
    for _ in range(_READINGS_MAX):
        before_ns = clock.monotonic_ns()
        reading = Reading(before_ns, clock.running_ns(), clock.wall_ns())
        if clock.monotonic_ns() - before_ns <= _TOGETHER_NS:
            break
    return reading
