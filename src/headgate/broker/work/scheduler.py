"""Shares the time that the loop has for long work among the jobs of one broker."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterator
from enum import Enum
from typing import Final

from headgate.base.errors import broken
from headgate.base.work_units import JOB_UNITS_MIN, SLICE_UNITS
from headgate.broker.work.turn_meter import TurnMeter

Steps = Iterator[int]
"""A job: it yields the units that it used since the last time, at most about 64, and may be
interrupted there. What it found before may be gone afterwards. A generator may return the units of
its end."""


class JobClass(Enum):
    """Who waits for a job; the value is its weight."""

    COMMAND = 4
    """A client, or what a client left behind."""
    ADMIN = 2
    """A request of an administrator."""
    UPKEEP = 1
    """Nobody."""


_WEIGHTS_TOTAL: Final = sum(each.value for each in JobClass)


class _Job:
    __slots__ = ("done", "name", "steps")

    def __init__(self, name: str, steps: Steps, done: asyncio.Future[None]) -> None:
        self.name = name
        self.steps = steps
        self.done = done


def _piece(units: int) -> Generator[int, None, int]:
    """A job whose end costs ``units``: whoever waits for the end does that work then."""
    yield from ()
    return units


class WorkScheduler:
    """Runs jobs in slices of :data:`SLICE_UNITS`, one slice in an iteration of the loop.

    However many jobs there are, they take one slice together. Each class of jobs gets its part of
    a slice by its weight, and what other classes leave; within a class jobs take turns.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        meter: TurnMeter | None = None,
    ) -> None:
        """``meter`` measures the slices."""
        self._loop = loop
        self._begin_turn = begin_turn
        self._meter = meter
        self._last_name = ""
        self._jobs: dict[JobClass, deque[_Job]] = {each: deque() for each in JobClass}
        self._is_scheduled = False

    def run(self, name: str, job_class: JobClass, steps: Steps) -> asyncio.Future[None]:
        """Run ``steps`` from the next iteration of the loop on; returns a future of their end."""
        job = _Job(name, steps, self._loop.create_future())
        self._jobs[job_class].append(job)
        self._schedule()
        return job.done

    async def give_way(self, units: int, job_class: JobClass = JobClass.UPKEEP) -> None:
        """Return when ``units`` more of a walk may be done, in a turn that has begun.

        A coroutine that walks over many objects waits for this before each piece. So all such
        walks together take the slice of an iteration, like jobs.
        """
        await self.run("a walk in pieces", job_class, _piece(units))
        self._begin_turn()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._slice)

    def _slice(self) -> None:
        began_ns = 0 if self._meter is None else self._meter.now_ns()
        self._is_scheduled = False
        self._begin_turn()
        left = SLICE_UNITS
        for job_class, jobs in self._jobs.items():
            left -= self._work(jobs, SLICE_UNITS * job_class.value // _WEIGHTS_TOTAL)
        for jobs in self._jobs.values():
            if left > 0:
                left -= self._work(jobs, left)
        if any(self._jobs.values()):
            self._schedule()
        if self._meter is not None:
            self._meter.ended(self._last_name, began_ns)

    def _work(self, jobs: deque[_Job], units_max: int) -> int:
        """Work on the jobs of one class; returns the units that it took."""
        used = 0
        while jobs and used < units_max:
            job = jobs.popleft()
            self._last_name = job.name
            turn_end = used + max(JOB_UNITS_MIN, (units_max - used) // (len(jobs) + 1))
            try:
                while used < turn_end:
                    used += next(job.steps)
            except StopIteration as end:
                used += end.value or 1
                if not job.done.done():
                    job.done.set_result(None)
            except Exception as error:
                if jobs:
                    self._schedule()
                raise broken(job.name, error) from error
            else:
                jobs.append(job)
        return used
