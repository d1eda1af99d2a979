"""The clock protocol: laws take time as an argument.

Laws take ``now_ns: int``; only shells own a :class:`Clock`; only ``headgate.app`` builds the
real one. ``headgate.testing.ManualClock`` is the other implementation.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple, Protocol

from headgate.base.units import NS_PER_MS

_TOGETHER_NS: Final = 10 * NS_PER_MS
"""Clocks that were read within this were read together."""

_READINGS_MAX: Final = 5


class Clock(Protocol):
    """Three readings of time, all in nanoseconds."""

    def monotonic_ns(self) -> int:
        """Never goes back; its zero means nothing. All durations and rates use it."""

    def running_ns(self) -> int:
        """How long the machine is up, also asleep. Never goes back while it is. The time of the
        log uses it, and what compares the wall clock with what really passed."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch, as people see it. May step in either direction."""


class SystemClock:
    """The machine's clocks."""

    monotonic_ns = staticmethod(time.monotonic_ns)
    wall_ns = staticmethod(time.time_ns)

    @staticmethod
    def running_ns() -> int:
        """Where the system has no such clock, the monotonic one."""
        return time.clock_gettime_ns(_RUNNING)


_RUNNING: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Reading(NamedTuple):
    """All three clocks at one instant."""

    monotonic_ns: int
    running_ns: int
    wall_ns: int


def read_together(clock: Clock) -> Reading:
    """The three clocks at one instant.

    Whoever is held up between two readings would see a step that nobody made: then all are read
    anew, a few times.
    """
    for _ in range(_READINGS_MAX):
        before_ns = clock.monotonic_ns()
        reading = Reading(before_ns, clock.running_ns(), clock.wall_ns())
        if clock.monotonic_ns() - before_ns <= _TOGETHER_NS:
            break
    return reading
