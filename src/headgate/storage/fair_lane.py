"""A part of a lane of which tenants take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from headgate.base.fair_queue import FairSet
from headgate.storage.lanes import Done, Lane, Work, result_of

T = TypeVar("T")

IN_LANE_MAX: Final = 8
"""Jobs that are on the lane, fewer if they take long (:mod:`headgate.storage.job_times`). Others
wait: what is on it runs in order, whoever it is for."""


class _Job:
    """A job that waits."""

    __slots__ = ("done", "work")

    def __init__(self, work: Work, done: Done) -> None:
        self.work = work
        self.done = done


class FairLane:
    """Passes jobs on to a lane, a few at a time. While some wait, their owners take turns: so the
    many that one owner has hold up that owner alone."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._waiting: FairSet[_Job] = FairSet()
        """The jobs that wait."""
        self._running = 0

    def submit(self, owner: str, work: Work, done: Done) -> None:
        """As :meth:`Lane.submit`, when it is the turn of ``owner``."""
        self._add(owner, _Job(work, done))

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run ``work`` when it is the turn of ``owner``, and wait for its result. If the caller is
        cancelled before that turn, ``work`` does not run, and nothing of it stays in the line."""
        jobs: list[_Job] = []

        def begin(done: Done) -> None:
            jobs.append(_Job(work, done))
            self._add(owner, jobs[0])

        try:
            result: T = await result_of(begin)
        except asyncio.CancelledError:
            self._waiting.discard(owner, jobs[0])  # it may be on the lane by now
            raise
        finally:
            jobs.clear()  # an error's traceback leads to this frame: they would be a cycle
        return result

    def _add(self, owner: str, job: _Job) -> None:
        self._waiting.add(owner, job)
        self._begin_some()

    def _begin_some(self) -> None:
        while self._waiting and self._running < self._lane.at_once(IN_LANE_MAX):
            job = self._waiting.take()
            self._running += 1
            self._lane.submit(job.work, partial(self._ended, job.done))

    def _ended(self, done: Done, result: Any, error: BaseException | None) -> None:
        self._running -= 1
        self._begin_some()
        done(result, error)
