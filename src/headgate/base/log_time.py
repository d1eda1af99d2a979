"""The time of the log, in which receive times and ages are counted.

The wall clock may be set; ages must not jump when it is. So the log has a time of its own: the
wall clock without the steps that it made since the log began. How far the wall clock is ahead of it
is the *skew*, in whole milliseconds; it is 0 until somebody sets the clock. What a clock is kept
right by, little at a time, both follow. See law 4.5 of ``docs/flow-laws.md``.

This is arithmetic; ``headgate.storage.log_clock`` reads clocks, keeps the mark and tells of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from headgate.base.units import NS_PER_MS, NS_PER_S, S_PER_MINUTE

STEP_NS: Final = NS_PER_S // 10
"""The wall clock was set when it moved by more than this against the running time between two
looks. Less is how a clock is kept right."""

LATE_NS: Final = 10 * S_PER_MINUTE * NS_PER_S
"""For so long after it was switched on, a machine may still learn what time it is."""


class Continued(Enum):
    """How the time of the log was found at a start."""

    ADOPTED = "adopted"
    """There was no mark: it begins as the wall clock is."""
    RUNNING = "running"
    """The machine was up all the time: by its running time, whatever the wall clock says."""
    WALL = "wall"
    """By how far the wall clock went on."""
    SET_BACK = "set back"
    """The wall clock is before what the log knows: it goes on from there."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One instant: from it a later start finds the time of the log."""

    boot_id: str
    """The boot of the machine whose running time that is; empty when that is not known."""
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
        """Go on from the last mark, if there is one, and never before ``newest_ms``, the newest
        receive time of the log; 0 without any. ``boot_id`` names the boot of the machine, or is
        empty."""
        self._boot_id = boot_id
        self._wall_ns = wall_ns - running_ns
        self._late_mark: Mark | None = None
        self.down_ns = 0
        """How much time of the log passed since the mark."""
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
        """By how much the wall clock was set since the last look; 0 if it was not.

        A step never moves the time of the log. One exception: a machine that was off and learns
        only now what time it is learns how long that was.
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
        """This instant, for the next start; of the wall clock what was last looked at."""
        return Mark(self._boot_id, running_ns, running_ns + self._wall_ns, self.skew_ms)

    def _keep_to(self, log_ns: int, wall_ns: int) -> None:
        """It is ``log_ns``; two readings of clocks that nobody set differ a little."""
        if abs(wall_ns - log_ns - self.skew_ms * NS_PER_MS) > STEP_NS:
            self.skew_ms = round((wall_ns - log_ns) / NS_PER_MS)


def published_in_log_ms(publish_ms: int, log_ms: int, skew_ms: int) -> int:
    """A publish time that a producer tells, as a time of the log; 0 when it tells none.

    The producer's clock is right when the broker's was set wrong, and when it was set right: the
    shorter time on the way is the likely one.
    """
    if publish_ms <= 0:
        return 0
    times = (publish_ms, publish_ms - skew_ms)
    past = [time_ms for time_ms in times if 0 < time_ms <= log_ms]
    return max(past, default=log_ms)


def _by_wall(mark: Mark, known_ns: int, wall_ns: int) -> tuple[int, Continued]:
    """The time of the log by the wall clock, but not before ``known_ns``.

    It is as far from the wall clock as it was at the mark. Where that would be in the past, the
    clock was set meanwhile: perhaps to what it was when the log began, when there was no skew.
    """
    log_ns = wall_ns - mark.skew_ms * NS_PER_MS
    if log_ns < known_ns and abs(wall_ns - known_ns) < known_ns - log_ns:
        log_ns = wall_ns
    return (log_ns, Continued.WALL) if log_ns >= known_ns else (known_ns, Continued.SET_BACK)
