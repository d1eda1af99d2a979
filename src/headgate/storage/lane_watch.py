"""Watches lanes from the loop: one that stops answering, and errors that no caller expects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from headgate.base.clock import Clock
from headgate.base.errors import broken
from headgate.base.texts import duration
from headgate.base.units import NS_PER_S
from headgate.storage.job_times import JobTimes
from headgate.storage.lanes import Done, Lane, Work

SILENT_NS_MAX: Final = 10 * NS_PER_S
"""A lane is stuck if it has had work for so long and none of it ended."""


class WatchedLane:
    """A lane that notes when it answered last, and how long its jobs take.

    A callback must handle every error of its work that it can repair. Any other one is fatal: the
    rest of the loop would go on with a part that stopped halfway.
    """

    def __init__(
        self, lane: Lane, name: str, clock: Clock, turn_ended: Callable[[str, int], None]
    ) -> None:
        """``name`` is what the lane does, for sentences."""
        self._lane = lane
        self.name = name
        self._clock = clock
        self._turn_ended = turn_ended
        self._times = JobTimes()
        self._unanswered_count = 0
        self._since_ns = 0
        """When the lane answered last, or got work after it had none."""

    def silent_ns(self) -> int:
        """How long the lane has had work without an answer; 0 if it has none."""
        return self._clock.monotonic_ns() - self._since_ns if self._unanswered_count else 0

    def submit(self, work: Work, done: Done) -> None:
        if not self._unanswered_count:
            self._since_ns = self._clock.monotonic_ns()
        self._unanswered_count += 1
        self._lane.submit(partial(self._timed, work), partial(self._answered, done))

    def pause(self, seconds: float) -> bool:
        return self._lane.pause(seconds)

    def rest(self, seconds: float) -> None:
        self._lane.rest(seconds)

    def at_once(self, count_max: int) -> int:
        return self._times.at_once(self._lane.at_once(count_max))

    def close(self) -> None:
        self._lane.close()

    def abandon(self) -> None:
        self._lane.abandon()

    def _timed(self, work: Work) -> Any:
        began_ns = self._clock.monotonic_ns()
        try:
            return work()
        finally:
            self._times.took(self._clock.monotonic_ns() - began_ns)

    def _answered(self, done: Done, result: Any, error: BaseException | None) -> None:
        self._unanswered_count -= 1
        began_ns = self._since_ns = self._clock.monotonic_ns()
        try:
            done(result, error)
        except Exception as bug:
            raise broken(f"handling the end of work of the {self.name} lane", bug) from bug
        finally:
            self._turn_ended(f"the end of work of the {self.name} lane", began_ns)


class LaneWatch:
    """The watched lanes of one broker."""

    def __init__(self, clock: Clock, turn_ended: Callable[[str, int], None]) -> None:
        """``turn_ended`` measures each turn in which a lane's callback runs: by the name of its
        work and when it began."""
        self._clock = clock
        self._turn_ended = turn_ended
        self._lanes: list[WatchedLane] = []

    def watched(self, name: str, lane: Lane) -> Lane:
        """``lane``, watched from now on."""
        watched = WatchedLane(lane, name, self._clock, self._turn_ended)
        self._lanes.append(watched)
        return watched

    def silent_ns(self) -> dict[str, int]:
        """For how long each lane has had work without an answer, by its name."""
        return {lane.name: lane.silent_ns() for lane in self._lanes}

    def stuck_sentence(self) -> str:
        """Which lanes are stuck, and for how long; empty if none is."""
        stuck = [(lane.name, lane.silent_ns()) for lane in self._lanes]
        return "; ".join(
            f"the {name} lane has not answered for {duration(silent_ns / NS_PER_S)}: the disk "
            "hangs or is far too slow"
            for name, silent_ns in stuck
            if silent_ns > SILENT_NS_MAX
        )
