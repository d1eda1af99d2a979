"""Whose job runs next."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from headgate.base.errors import StorageError
from headgate.storage.fair_lane import IN_LANE_MAX, FairLane
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
