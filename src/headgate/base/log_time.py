"""The time of the log, which receive times and ages use.

An operator may set the wall clock, and ages must not jump then. So the log has its own time: the
wall clock without the steps that it made since the log began. The *skew* is how far the wall clock
is ahead of it, in whole milliseconds; it is 0 until the clock is set. Both follow the small
corrections that keep a clock right. See law 4.5 in ``docs/flow-laws.md``.

This module is arithmetic. ``headgate.storage.log_clock`` reads the clocks, stores the mark and logs
steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from headgate.base.units import NS_PER_MS, NS_PER_S, S_PER_MINUTE

STEP_NS: Final = NS_PER_S // 10
"""A movement of the wall clock against the running time that counts as a step. Smaller ones are
corrections that keep the clock right."""

LATE_NS: Final = 10 * S_PER_MINUTE * NS_PER_S
"""Time after its boot within which a machine may still learn the right time."""


class Continued(Enum):
    """How a start found the time of the log."""

    ADOPTED = "adopted"
    """There was no mark: it begins at the wall clock."""
    RUNNING = "running"
    """The machine was up all the time: it continues by the running time."""
    WALL = "wall"
    """The machine booted: it continues by the wall clock."""
    SET_BACK = "set back"
    """The wall clock is before the newest time of the log: it continues from that time."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stored instant from which a later start finds the time of the log."""

    boot_id: str
    """The id of the machine's boot that ``running_ns`` counts from; empty if unknown."""
    running_ns: int
    wall_ns: int
    skew_ms: int

    @property
    def log_ns(self) -> int:
        """The time of the log."""
        return self.wall_ns - self.skew_ms * NS_PER_MS


class LogTime:
    """The time of one broker's log, from its start on."""

    __slots__ = ("_boot_id", "_late_mark", "_wall_ns", "continued", "down_ns", "skew_ms")

    def __init__(
        self, mark: Mark | None, newest_ms: int, boot_id: str, running_ns: int, wall_ns: int
    ) -> None:
        """Continue from the last mark, if there is one, and never before ``newest_ms``, the newest
        receive time of the log (0 without any). ``boot_id`` identifies the machine's boot; it may
        be empty."""
        self._boot_id = boot_id
        self._wall_ns = wall_ns - running_ns
        self._late_mark: Mark | None = None
        self.down_ns = 0
        """Time of the log between the mark and the start."""
        newest_ns = newest_ms * NS_PER_MS
        if mark is None:
            log_ns, self.continued = max(wall_ns, newest_ns), Continued.ADOPTED
        elif boot_id and boot_id == mark.boot_id and running_ns >= mark.running_ns:
            log_ns = max(mark.log_ns + running_ns - mark.running_ns, newest_ns)
            self.continued = Continued.RUNNING
        else:
            log_ns, self.continued = _by_wall(mark, max(mark.log_ns, newest_ns), wall_ns)
            self._late_mark = mark
        self.skew_ms = 0 if mark is None else mark.skew_ms
        """How far the wall clock is ahead of the time of the log."""
        self._keep_to(log_ns, wall_ns)
        if mark is not None:
            self.down_ns = log_ns - mark.log_ns

    def look(self, running_ns: int, wall_ns: int) -> int:
        """The step of the wall clock since the last call; 0 if it made none.

        A step does not move the time of the log, with one exception: if a machine that was off
        learns the right time only now, it also learns how long it was off.
        """
        before_ns, self._wall_ns = self._wall_ns, wall_ns - running_ns
        step_ns = self._wall_ns - before_ns
        if abs(step_ns) <= STEP_NS:
            return 0
        log_ns = wall_ns - step_ns - self.skew_ms * NS_PER_MS
        if self._late_mark is not None and running_ns < LATE_NS:
            log_ns, _ = _by_wall(self._late_mark, log_ns, wall_ns)
        self._keep_to(log_ns, wall_ns)
        return step_ns

    def mark(self, running_ns: int) -> Mark:
        """The mark of this instant, by the wall clock as of the last :meth:`look`."""
        return Mark(self._boot_id, running_ns, running_ns + self._wall_ns, self.skew_ms)

    def _keep_to(self, log_ns: int, wall_ns: int) -> None:
        """Make ``log_ns`` the time of the log, unless only the noise of the readings differs."""
        if abs(wall_ns - log_ns - self.skew_ms * NS_PER_MS) > STEP_NS:
            self.skew_ms = round((wall_ns - log_ns) / NS_PER_MS)


def published_in_log_ms(publish_ms: int, log_ms: int, skew_ms: int) -> int:
    """A producer's publish time as a time of the log; 0 if the producer sent none.

    The broker's clock may have been set wrong or right, so the producer's clock may agree with the
    time of the log or with the wall clock. The later of the two possible times is the likely one.
    """
    if publish_ms <= 0:
        return 0
    times = (publish_ms, publish_ms - skew_ms)
    past = [time_ms for time_ms in times if 0 < time_ms <= log_ms]
    return max(past, default=log_ms)


def _by_wall(mark: Mark, known_ns: int, wall_ns: int) -> tuple[int, Continued]:
    """The time of the log by the wall clock, but not before ``known_ns``.

    It keeps the skew of the mark. If it would then be in the past, the clock was set meanwhile,
    perhaps back to a skew of 0.
    """
    log_ns = wall_ns - mark.skew_ms * NS_PER_MS
    if log_ns < known_ns and abs(wall_ns - known_ns) < known_ns - log_ns:
        log_ns = wall_ns
    return (log_ns, Continued.WALL) if log_ns >= known_ns else (known_ns, Continued.SET_BACK)
