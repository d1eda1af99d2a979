"""A rate meter: means over the last few seconds of counters that only grow.

A meter holds two samples of its subject's counters, a period apart. The rate at any instant is what
was counted since the older sample, divided by the time since then. So it covers between one and two
periods and is never stale: an idle subject reads zero after two periods. Pulsar computes the same
figures once a minute, and a stats call right after traffic reads zeros there.
"""

from __future__ import annotations

from headgate.base.units import NS_PER_S

SAMPLE_PERIOD_NS = 5 * NS_PER_S
"""Time between two samples: rates are means over the last 5 to 10 seconds."""


class RateMeter:
    """Means per second of ``width`` counters."""

    __slots__ = ("_new", "_new_ns", "_old", "_old_ns")

    def __init__(self, width: int) -> None:
        zeros = (0,) * width
        self._old: tuple[int, ...] = zeros
        self._new: tuple[int, ...] = zeros
        self._old_ns = -1
        self._new_ns = -1

    def sample(self, counters: tuple[int, ...], now_ns: int) -> bool:
        """Take a sample; return whether a counter changed since the older sample."""
        if self._new_ns < 0:
            self._old, self._old_ns = counters, now_ns
        else:
            self._old, self._old_ns = self._new, self._new_ns
        self._new, self._new_ns = counters, now_ns
        return self._old != counters

    def per_second(
        self, counters: tuple[int, ...], now_ns: int, *, over_ns_min: int = 0
    ) -> tuple[float, ...]:
        """Rates of ``counters`` as they stand at ``now_ns``; zeros before the first sample. Right
        after it they are means over little time, but of no less than ``over_ns_min``."""
        elapsed_ns = max(now_ns - self._old_ns, over_ns_min)
        if self._old_ns < 0 or elapsed_ns <= 0:
            return tuple(0.0 for _ in counters)
        return tuple(
            (value - old) * NS_PER_S / elapsed_ns
            for value, old in zip(counters, self._old, strict=True)
        )
