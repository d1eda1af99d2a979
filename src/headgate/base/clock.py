"""Time as an argument.

Laws take ``now_ns: int``; only shells own a :class:`Clock`; only ``headgate.app`` builds the
real one. ``headgate.testing.ManualClock`` is the other implementation.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings of time, both in nanoseconds."""

    def monotonic_ns(self) -> int:
        """Never goes back; its zero means nothing. All durations and rates use it."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch, as people see it. May step in either direction."""


class SystemClock:
    """The machine's clocks."""

    monotonic_ns = staticmethod(time.monotonic_ns)
    wall_ns = staticmethod(time.time_ns)
