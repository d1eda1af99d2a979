"""A part of a lane of which tenants take turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from headgate.base.fair_queue import FairQueue
from headgate.storage.lanes import Done, Lane, Work, result_of

T = TypeVar("T")

IN_LANE_MAX: Final = 8
"""Jobs that are on the lane. Others wait: what is on it runs in order, whoever it is for."""


class FairLane:
    """Passes jobs on to a lane, a few at a time. While some wait, their owners take turns: so the
    many that one owner has hold up that owner alone."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._waiting: FairQueue[tuple[Work, Done]] = FairQueue()
        self._running = 0

    def submit(self, owner: str, work: Work, done: Done) -> None:
        """As :meth:`Lane.submit`, when it is the turn of ``owner``."""
        self._waiting.add(owner, (work, done))
        self._begin_some()

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run ``work`` when it is the turn of ``owner``, and wait for its result."""
        result: T = await result_of(partial(self.submit, owner, work))
        return result

    def _begin_some(self) -> None:
        while self._waiting and self._running < IN_LANE_MAX:
            work, done = self._waiting.take()
            self._running += 1
            self._lane.submit(work, partial(self._ended, done))

    def _ended(self, done: Done, result: Any, error: BaseException | None) -> None:
        self._running -= 1
        self._begin_some()
        done(result, error)
