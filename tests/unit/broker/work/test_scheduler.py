"""Long work gets one slice in an iteration of the loop, whatever there is of it."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from headgate.base.errors import InvariantError
from headgate.base.units import NS_PER_MS
from headgate.base.work_owner import WORK_OWNER
from headgate.base.work_units import (
    JOBS_SHARE,
    LONG_SLICE_UNITS,
    PIECE_UNITS,
    SLICE_UNITS,
    UNIT_NS,
)
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.broker.work.turn_meter import TurnMeter
from headgate.testing.loop import SimLoop


class Bench:
    """A scheduler, and what its jobs did in which turn."""

    def __init__(self) -> None:
        self.loop = SimLoop()
        self.turn = 0
        self.slices = 0
        self.scheduler = WorkScheduler(self.loop, self.begin_turn)
        self.by_turn: Counter[int] = Counter()
        self.by_job: Counter[str] = Counter()
        self.at_first_end: Counter[str] | None = None

    def begin_turn(self) -> None:
        self.turn += 1

    def count_slices(self) -> None:
        """Count the scheduler's slices in ``slices`` from now on."""
        work = self.scheduler._slice

        def counted() -> None:
            self.slices += 1
            work()

        self.scheduler._slice = counted  # type: ignore[method-assign]

    def steps(self, name: str, count: int, units: int) -> Steps:
        for _ in range(count):
            self.by_turn[self.turn] += units
            self.by_job[name] += units
            yield units
        if self.at_first_end is None:
            self.at_first_end = self.by_job.copy()

    def run(self, *jobs: tuple[str, JobClass, Steps]) -> None:
        async def all_done() -> None:
            await asyncio.gather(*[self.scheduler.run(*job) for job in jobs])

        self.loop.run_until_complete(all_done())
        self.loop.raise_failure()
        self.loop.close()


def test_many_jobs_take_one_slice_together() -> None:
    bench = Bench()
    jobs = [(f"{n}", job, bench.steps(f"{n}", 20, 10)) for n in range(30) for job in JobClass]
    bench.run(*jobs)
    total = len(JobClass) * 30 * 20 * 10
    assert sum(bench.by_turn.values()) == total
    # Each class may end with a job that began below its part.
    assert max(bench.by_turn.values()) <= SLICE_UNITS + 5 * 16
    assert bench.turn == pytest.approx(total / SLICE_UNITS, rel=0.2)


def test_classes_share_by_weight_and_use_what_others_leave() -> None:
    bench = Bench()
    bench.run(*[(each.name, each, bench.steps(each.name, 5_000, 4)) for each in JobClass])
    assert bench.at_first_end is not None
    total, weights = bench.at_first_end.total(), sum(each.value for each in JobClass)
    for each in JobClass:
        assert bench.at_first_end[each.name] / total == pytest.approx(
            each.value / weights, abs=0.03
        )
    alone = Bench()
    alone.run(("upkeep", JobClass.UPKEEP, alone.steps("upkeep", 1_000, 4)))
    assert alone.turn == pytest.approx(4_000 / SLICE_UNITS, abs=2)


def crowd_of(bench: Bench, job_class: JobClass, owner: str) -> list[asyncio.Task[None]]:
    """A thousand walks."""
    give_way = bench.scheduler.give_way
    return [bench.loop.create_task(give_way(PIECE_UNITS, job_class, owner)) for _ in range(1_000)]


async def run_in_crowd(
    bench: Bench, crowd: tuple[JobClass, str], job: tuple[JobClass, str]
) -> tuple[int, int]:
    """Run a job of 100 steps beside a crowd. Returns the turns that it took, and how many of the
    crowd were done by then."""
    walks = crowd_of(bench, *crowd)
    await asyncio.sleep(0)
    bench.count_slices()
    await bench.scheduler.run("one", job[0], bench.steps("one", 100, 4), job[1])
    slices, done = bench.slices, sum(walk.done() for walk in walks)
    await asyncio.gather(*walks)
    return slices, done


def test_a_crowd_of_one_tenant_holds_up_that_tenant_alone() -> None:
    for job_class in (JobClass.COMMAND, JobClass.ADMIN):
        bench = Bench()
        crowd = job_class, "acme"
        slices, done = bench.loop.run_until_complete(
            run_in_crowd(bench, crowd, (job_class, "globex"))
        )
        assert slices <= 6
        assert done * PIECE_UNITS >= 100 * 4 / 2  # the crowd has as much
        bench.loop.close()


def test_the_end_of_a_commit_does_not_wait_for_the_jobs_of_clients() -> None:
    bench = Bench()
    crowd, commit = (JobClass.COMMAND, ""), (JobClass.COMMIT, "")
    slices, _ = bench.loop.run_until_complete(run_in_crowd(bench, crowd, commit))
    assert slices <= 5
    bench.loop.close()


def test_an_error_of_a_job_is_a_bug_and_does_not_stop_others() -> None:
    bench = Bench()

    def failing() -> Steps:
        yield 1
        raise KeyError("lost")

    bench.scheduler.run("closing", JobClass.COMMAND, failing())
    other = bench.scheduler.run("other", JobClass.COMMAND, bench.steps("other", 500, 4))

    async def wait() -> None:
        await other

    with pytest.raises(InvariantError, match="closing failed with an internal error"):
        bench.loop.run_until_complete(wait())
    bench.loop.run_until_complete(wait())
    assert bench.by_job["other"] == 2_000
    bench.loop.close()


def test_nobody_has_to_wait_for_a_job() -> None:
    bench = Bench()
    bench.scheduler.run("one", JobClass.COMMAND, bench.steps("one", 1, 1)).cancel()
    bench.run(("two", JobClass.COMMAND, bench.steps("two", 1, 1)))
    assert bench.by_job == {"one": 1, "two": 1}


def test_walks_in_pieces_take_one_slice_together() -> None:
    bench = Bench()

    async def walk() -> None:
        for _ in range(20):
            await bench.scheduler.give_way(PIECE_UNITS)
            bench.by_turn[bench.slices] += PIECE_UNITS

    async def all_done() -> None:
        await asyncio.gather(*(walk() for _ in range(30)))

    bench.count_slices()
    bench.loop.run_until_complete(all_done())
    bench.loop.raise_failure()
    bench.loop.close()
    assert sum(bench.by_turn.values()) == 30 * 20 * PIECE_UNITS
    assert max(bench.by_turn.values()) <= SLICE_UNITS + PIECE_UNITS


def test_a_walk_gets_the_room_that_a_slice_has() -> None:
    """Walks in pieces of a quarter of a slice, every second iteration, made explain take 38 s."""
    bench = Bench()
    total = 40 * SLICE_UNITS

    async def walk() -> None:
        done = 0
        while done < total:
            units = await bench.scheduler.grant(PIECE_UNITS)
            bench.by_turn[bench.slices] += units
            done += units

    bench.count_slices()
    bench.loop.run_until_complete(walk())
    bench.loop.close()
    assert bench.slices <= 40 + 1
    assert max(bench.by_turn.values()) <= SLICE_UNITS


def test_walks_that_ask_for_more_share_a_slice_like_others() -> None:
    bench = Bench()

    async def walk(job_class: JobClass) -> None:
        for _ in range(20):
            bench.by_turn[bench.slices] += await bench.scheduler.grant(PIECE_UNITS, job_class)

    async def all_done() -> None:
        await asyncio.gather(*(walk(each) for each in JobClass for _ in range(5)))

    bench.count_slices()
    bench.loop.run_until_complete(all_done())
    bench.loop.close()
    assert max(bench.by_turn.values()) <= SLICE_UNITS + len(JobClass) * PIECE_UNITS


def test_the_many_of_one_owner_do_not_hold_up_those_of_another() -> None:
    """500 statistics of one tenant let another one's wait for all of them in each slice."""
    bench = Bench()
    waited: dict[str, int] = {}

    async def walk(owner: str, pieces: int) -> None:
        WORK_OWNER.set(owner)
        began = bench.slices
        for _ in range(pieces):
            await bench.scheduler.grant(PIECE_UNITS, JobClass.ADMIN)
        waited[owner] = bench.slices - began

    async def all_done() -> None:
        crowd = [asyncio.ensure_future(walk("many", 10)) for _ in range(500)]
        await asyncio.sleep(0)
        await walk("one", 10)
        assert waited["one"] <= 2 * 10
        await asyncio.gather(*crowd)

    bench.count_slices()
    bench.loop.run_until_complete(all_done())
    bench.loop.raise_failure()
    bench.loop.close()


def test_jobs_of_owners_share_a_slice_whatever_their_number() -> None:
    bench = Bench()

    async def all_done() -> None:
        jobs = []
        for owner, count in (("many", 50), ("one", 1)):
            WORK_OWNER.set(owner)
            for _ in range(count):
                steps = bench.steps(owner, 5_000 // count, 4)
                jobs.append(bench.scheduler.run(owner, JobClass.COMMAND, steps))
        await asyncio.gather(*jobs)

    bench.loop.run_until_complete(all_done())
    bench.loop.raise_failure()
    bench.loop.close()
    assert bench.at_first_end is not None
    total = bench.at_first_end.total()
    assert bench.at_first_end["one"] / total == pytest.approx(1 / 2, abs=0.1)


def test_jobs_have_half_of_the_time_of_a_loop_that_others_keep_busy() -> None:
    """With a millisecond in each iteration, however long it was, an answer of a third of a second
    took ten beside clients that asked for much."""
    loop = SimLoop()
    scheduler = WorkScheduler(loop, lambda: None, TurnMeter(loop.clock))

    def grant_beside(others_ms: float) -> int:
        async def ask() -> int:
            for _ in range(3):
                loop.call_soon(loop.clock.advance, int(others_ms * NS_PER_MS))
                granted = await scheduler.grant(PIECE_UNITS)
            return granted

        return loop.run_until_complete(ask())

    assert grant_beside(0) == SLICE_UNITS
    assert grant_beside(3) == int(3 * NS_PER_MS * JOBS_SHARE / UNIT_NS) > SLICE_UNITS
    assert grant_beside(50) == LONG_SLICE_UNITS

    async def ask_behind_a_pause() -> int:
        await asyncio.sleep(50)
        return await scheduler.grant(PIECE_UNITS)

    assert loop.run_until_complete(ask_behind_a_pause()) == SLICE_UNITS
    loop.raise_failure()
    loop.close()


def test_a_walk_has_the_share_of_its_tenant_beside_very_many() -> None:
    """Not that of one of a thousand."""
    bench = Bench()
    crowd_of(bench, JobClass.ADMIN, "acme")

    async def ask() -> list[int]:
        WORK_OWNER.set("globex")
        return [await bench.scheduler.grant(PIECE_UNITS, JobClass.ADMIN) for _ in range(4)]

    assert min(bench.loop.run_until_complete(ask())) >= SLICE_UNITS // 2
    bench.loop.close()


def test_a_walk_that_ended_meanwhile_takes_nothing() -> None:
    bench = Bench()

    async def cancelled() -> None:
        walk = asyncio.ensure_future(bench.scheduler.grant(PIECE_UNITS))
        await asyncio.sleep(0)
        walk.cancel()
        assert await bench.scheduler.grant(PIECE_UNITS) >= SLICE_UNITS - 1

    bench.loop.run_until_complete(cancelled())
    bench.loop.raise_failure()
    bench.loop.close()


def test_a_slice_is_named_after_its_longest_job() -> None:
    loop = SimLoop()
    meter = TurnMeter(loop.clock)
    scheduler = WorkScheduler(loop, lambda: None, meter)

    def taking(took_ms: int) -> Steps:
        loop.clock.advance(took_ms * NS_PER_MS)
        yield 1

    async def all_done() -> None:
        jobs = [("short", 2), ("long", 30), ("last", 3)]
        await asyncio.gather(
            *[scheduler.run(name, JobClass.ADMIN, taking(ms)) for name, ms in jobs]
        )

    loop.run_until_complete(all_done())
    loop.raise_failure()
    loop.close()
    assert meter.longest() == (35 * NS_PER_MS, "long")
