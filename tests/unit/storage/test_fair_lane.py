"""Whose job runs next."""

from __future__ import annotations

import asyncio
import contextlib
import random
from functools import partial

import pytest

from headgate.base.errors import StorageError
from headgate.base.units import NS_PER_MS
from headgate.storage.fair_lane import IN_LANE_MAX, FairLane
from headgate.storage.job_times import COUNT_MIN
from headgate.testing import SimLane, SimLoop


def test_the_many_jobs_of_one_owner_hold_up_no_other_one() -> None:
    loop = SimLoop()
    lane = SimLane(loop, random.Random(3))
    fair, done = FairLane(lane), list[str]()

    async def run(owner: str) -> None:
        assert await fair.run(owner, lambda: owner) == owner
        done.append(owner)

    async def all_run() -> None:
        crowd = [asyncio.create_task(run("acme")) for _ in range(10 * IN_LANE_MAX)]
        await asyncio.sleep(0)
        await asyncio.gather(run("globex"), run("globex"))
        assert len(done) <= IN_LANE_MAX + 4
        await asyncio.gather(*crowd)

    with contextlib.closing(loop):
        loop.run_until_complete(all_run())
        loop.raise_failure()
    assert lane.jobs_count == len(done) == 10 * IN_LANE_MAX + 2


def test_on_a_slow_disk_who_comes_waits_for_few_jobs() -> None:
    """Eight jobs of four reads lay in front of all tenants: a disk that takes 10 ms for a read had
    0.3 s of work there."""
    loop = SimLoop()
    job_ns = 40 * NS_PER_MS
    lane = SimLane(loop, random.Random(3), latency_ns_min=job_ns, latency_ns_max=job_ns)
    fair, done = FairLane(lane), list[str]()

    async def run(owner: str) -> None:
        await fair.run(owner, lambda: None)
        done.append(owner)

    async def all_run() -> None:
        await run("acme")
        crowd = [asyncio.create_task(run("acme")) for _ in range(10 * IN_LANE_MAX)]
        await asyncio.sleep(0.5)
        before = len(done)
        await run("globex")
        assert len(done) - before <= COUNT_MIN + 3
        await asyncio.gather(*crowd)

    with contextlib.closing(loop):
        loop.run_until_complete(all_run())
        loop.raise_failure()
    assert len(done) == 10 * IN_LANE_MAX + 2


def test_a_job_that_fails_gives_its_place_back() -> None:
    loop = SimLoop()
    fair = FairLane(SimLane(loop, random.Random(3)))

    def fail() -> None:
        raise StorageError("as planned", retryable=True)

    async def all_fail() -> None:
        for _ in range(2 * IN_LANE_MAX):
            with pytest.raises(StorageError, match="as planned"):
                await fair.run("acme", fail)

    with contextlib.closing(loop):
        loop.run_until_complete(all_fail())


def test_of_callers_that_have_left_nothing_stays_in_the_line() -> None:
    """Clients that came, asked for an old entry and left made the line longer and longer: 1,800
    jobs a second for 1.3 MB/s, with which nobody was charged."""
    loop = SimLoop()
    lane = SimLane(loop, random.Random(3))
    fair, ran = FairLane(lane), list[int]()

    async def leave() -> None:
        crowd = [
            asyncio.create_task(fair.run("acme", partial(ran.append, i)))
            for i in range(10 * IN_LANE_MAX)
        ]
        await asyncio.sleep(0)
        for task in reversed(crowd):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await crowd[0]
        await fair.run("acme", partial(ran.append, -1))

    with contextlib.closing(loop):
        loop.run_until_complete(leave())
        loop.raise_failure()
    assert ran == [*range(IN_LANE_MAX), -1]
    assert lane.jobs_count == IN_LANE_MAX + 1
