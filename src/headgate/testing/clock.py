"""A clock that a test advances by hand."""

from __future__ import annotations

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S

START_NS = 1_000 * NS_PER_S
"""First monotonic reading: not 0, so that nothing can take 0 for "never" and be right."""

START_WALL_NS = 1_750_000_000 * NS_PER_S
"""First wall reading: some day in 2025."""


class ManualClock:
    """A :class:`headgate.base.clock.Clock` that stands still until a test advances it."""

    __slots__ = ("_asleep_ns", "_now_ns", "_wall_offset_ns")

    def __init__(self, *, now_ns: int = START_NS, wall_ns: int = START_WALL_NS) -> None:
        """Start at ``now_ns`` (monotonic) and ``wall_ns`` (since the epoch)."""
        self._now_ns = now_ns
        self._wall_offset_ns = wall_ns - now_ns
        self._asleep_ns = 0

    def monotonic_ns(self) -> int:
        return self._now_ns

    def running_ns(self) -> int:
        return self._now_ns + self._asleep_ns

    def wall_ns(self) -> int:
        return self._now_ns + self._wall_offset_ns

    def advance(self, duration_ns: int) -> None:
        """Let ``duration_ns`` (at least 0) pass, on all readings.

        Raises:
            InputError: it is negative; monotonic time never goes back.
        """
        if duration_ns < 0:
            raise InputError(f"duration_ns is {duration_ns}; 0 or more is allowed")
        self._now_ns += duration_ns

    def sleep(self, duration_ns: int) -> None:
        """The machine was suspended for ``duration_ns`` (at least 0): all readings but the
        monotonic one went on.

        Raises:
            InputError: it is negative.
        """
        if duration_ns < 0:
            raise InputError(f"duration_ns is {duration_ns}; 0 or more is allowed")
        self._asleep_ns += duration_ns
        self._wall_offset_ns += duration_ns

    def step_wall(self, step_ns: int) -> None:
        """Set the wall clock forward or (negative) back, as an administrator or NTP does."""
        self._wall_offset_ns += step_ns
