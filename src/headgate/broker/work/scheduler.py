"""Shares the time that the loop has for long work among the jobs of one broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import Enum

from headgate.base.errors import broken
from headgate.base.fair_queue import FairQueue
from headgate.base.work_owner import WORK_OWNER
from headgate.base.work_units import (
    JOB_UNITS_MIN,
    JOBS_SHARE,
    LONG_SLICE_UNITS,
    SLICE_UNITS,
    UNIT_NS,
)
from headgate.broker.work.turn_meter import TurnMeter

Steps = Iterator[int]
"""A job: it yields the units that it used since the last time, at most about 64, and may be
interrupted there. What it found before may be gone afterwards. A generator may return the units of
its end."""


class JobClass(Enum):
    """Who waits for a job; the value is its weight."""

    COMMIT = 8
    """All clients: no receipt is sent before it has ended. Those of one must not hold it up."""
    COMMAND = 4
    """A client, what a client left behind, or who takes a right away from clients."""
    ADMIN = 2
    """A request of an administrator."""
    UPKEEP = 1
    """Nobody."""


class _Job:
    __slots__ = ("done", "name", "owner", "steps")

    def __init__(self, name: str, owner: str, steps: Steps, done: asyncio.Future[None]) -> None:
        self.name = name
        self.owner = owner
        self.steps = steps
        self.done = done

    def work(self, units_max: int) -> tuple[int, bool]:
        """Work for about ``units_max``; returns the units used and whether that was the end."""
        used = 0
        try:
            while used < units_max:
                used += next(self.steps)
        except StopIteration as end:
            used += end.value or 1
            if not self.done.done():
                self.done.set_result(None)
            return used, True
        return used, False


class _Walk:
    """A walk that waits for its turn. What it is granted it does in the next iteration."""

    __slots__ = ("done", "name", "owner", "units_max", "units_min")

    def __init__(
        self, owner: str, units_min: int, units_max: int, done: asyncio.Future[int]
    ) -> None:
        self.name = "a walk in pieces"
        self.owner = owner
        self.units_min = units_min
        self.units_max = units_max
        self.done = done

    def work(self, units_max: int) -> tuple[int, bool]:
        """Grant it about ``units_max``; as :meth:`_Job.work`."""
        if self.done.done():
            return 1, True
        units = max(self.units_min, min(units_max, self.units_max))
        self.done.set_result(units)
        return units, True


class WorkScheduler:
    """Runs jobs in slices of :data:`SLICE_UNITS`, one slice in an iteration of the loop.

    A slice is longer if the iteration is: jobs have :data:`JOBS_SHARE` of its time, up to
    :data:`LONG_SLICE_UNITS`. However many jobs there are, they take one slice together. Each class
    of jobs gets its part of a slice by its weight, and what other classes leave; within a class the
    tenants for which jobs work take turns and have equal shares, and the jobs of each one among
    themselves. Unless a caller names the tenant, it is that of its task
    (:data:`headgate.base.work_owner.WORK_OWNER`).
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        meter: TurnMeter | None = None,
    ) -> None:
        """``meter`` measures the slices, and the time between them."""
        self._loop = loop
        self._begin_turn = begin_turn
        self._meter = meter
        self._longest: tuple[int, str] = (0, "")
        """How long the longest piece of the present slice took, and the name of its job."""
        self._jobs: dict[JobClass, FairQueue[_Job | _Walk]] = {
            each: FairQueue() for each in JobClass
        }
        self._is_scheduled = False
        self._has_granted = False
        """Whether the present slice granted a walk something, so that it will come back."""
        self.slice_number = 0
        """Of the last slice. What it granted a walk is done before the next one."""
        self._follows = False
        """Whether the slice that is scheduled is in the iteration behind the last one."""
        self._ended_ns = 0
        """When that ended."""

    def run(
        self, name: str, job_class: JobClass, steps: Steps, owner: str | None = None
    ) -> asyncio.Future[None]:
        """Run ``steps`` from the next iteration of the loop on; returns a future of their end."""
        owner = WORK_OWNER.get() if owner is None else owner
        job = _Job(name, owner, steps, self._loop.create_future())
        self._jobs[job_class].add(owner, job)
        self._schedule()
        return job.done

    async def give_way(
        self, units: int, job_class: JobClass = JobClass.UPKEEP, owner: str | None = None
    ) -> None:
        """Return when ``units`` more of a walk may be done, in a turn that has begun.

        A coroutine that walks over many objects waits for this before each piece. So all such
        walks together take the slice of an iteration, like jobs.
        """
        await self._granted(units, units, job_class, owner)

    async def grant(self, units: int, job_class: JobClass = JobClass.UPKEEP) -> int:
        """As :meth:`give_way`; returns how many units may be done. They are more than ``units`` if
        the slice has room for more, at most a whole slice."""
        return await self._granted(units, LONG_SLICE_UNITS, job_class, None)

    async def _granted(
        self, units_min: int, units_max: int, job_class: JobClass, owner: str | None
    ) -> int:
        owner = WORK_OWNER.get() if owner is None else owner
        walk = _Walk(owner, units_min, units_max, self._loop.create_future())
        self._jobs[job_class].add(owner, walk)
        self._schedule()
        units = await walk.done
        self._begin_turn()
        return units

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._slice)

    def _slice(self) -> None:
        began_ns = 0 if self._meter is None else self._meter.now_ns()
        self._is_scheduled = self._has_granted = False
        self._longest = (0, "")
        self.slice_number += 1
        self._begin_turn()
        left = whole = self._slice_units()
        self._follows = False
        weights = sum(each.value for each, jobs in self._jobs.items() if jobs)
        for job_class, jobs in self._jobs.items():
            if jobs:
                left -= self._work(jobs, whole * job_class.value // weights)
        for jobs in self._jobs.values():
            if left > 0:
                left -= self._work(jobs, left)
        # A walk does its piece in the next iteration, before the slice, and asks for another one.
        if self._has_granted or any(self._jobs.values()):
            self._schedule()
            self._follows = True
        if self._meter is not None:
            self._meter.ended(self._longest[1], began_ns)
            self._ended_ns = self._meter.instant_ns()

    def _slice_units(self) -> int:
        """How much the slice that begins may do. Between two that follow each other the loop does
        not wait for events, so that time went to other work, and to pieces of walks."""
        if self._meter is None or not self._follows:
            return SLICE_UNITS
        between_ns = self._meter.instant_ns() - self._ended_ns
        return max(SLICE_UNITS, min(int(JOBS_SHARE * between_ns / UNIT_NS), LONG_SLICE_UNITS))

    def _work(self, jobs: FairQueue[_Job | _Walk], units_max: int) -> int:
        """Work on the jobs of one class; returns the units that it took. Each tenant with jobs has
        an equal share, and then what others leave."""
        used = 0
        owner_units = units_max // max(1, jobs.owners_count)
        used_by: dict[str, int] = {}

        def has_share(owner: str) -> bool:
            return used_by.get(owner, 0) < owner_units

        while jobs and used < units_max:
            owner = jobs.owner_among(has_share)
            job = jobs.take() if owner is None else jobs.take_of(owner)
            began_ns = 0 if self._meter is None else self._meter.instant_ns()
            left = units_max - used
            owner_left = min(left, owner_units - used_by.get(job.owner, 0))
            share = max(
                JOB_UNITS_MIN,
                owner_left // (jobs.count_of(job.owner) + 1),
                left // (len(jobs) + 1),
            )
            try:
                units, has_ended = job.work(share)
            except Exception as error:
                self._schedule()
                raise broken(job.name, error) from error
            if self._meter is not None:
                took = (self._meter.instant_ns() - began_ns, job.name)
                self._longest = max(self._longest, took)
            used += units
            used_by[job.owner] = used_by.get(job.owner, 0) + units
            if not has_ended:
                jobs.add(job.owner, job)
            elif isinstance(job, _Walk):
                self._has_granted = True
        return used
