"""The thread of a lane: order, errors, and what becomes of results that nobody waits for."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from headgate.base.errors import InvariantError
from headgate.storage.lanes import Done, ThreadLane, Work, run_on

LIMIT_S = 10


async def limited(work: Any) -> Any:
    return await asyncio.wait_for(work, LIMIT_S)


def test_jobs_run_in_order_on_one_thread_and_report_on_the_loop() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        lane = ThreadLane(loop, "lane")
        ran: list[tuple[int, str]] = []
        told: list[tuple[int, str]] = []
        finished = asyncio.Event()

        def work(index: int) -> int:
            ran.append((index, threading.current_thread().name))
            return index

        def done(result: int, error: BaseException | None) -> None:
            assert error is None
            told.append((result, threading.current_thread().name))
            if result == 99:
                finished.set()

        for index in range(100):
            lane.submit(lambda index=index: work(index), done)
        await limited(finished.wait())
        lane.close()
        here = threading.current_thread().name
        assert ran == [(index, "lane") for index in range(100)]
        assert told == [(index, here) for index in range(100)]

    asyncio.run(story())


def test_an_error_leaves_no_cycle() -> None:
    """An error leads to the frames that it passed, and their connection, by its traceback."""

    class NoneLeftError(Exception):
        pass

    def fail() -> None:
        raise NoneLeftError

    async def story() -> weakref.ref[NoneLeftError]:
        lane = ThreadLane(asyncio.get_running_loop(), "lane")
        try:
            await run_on(lane, fail)
        except NoneLeftError as error:
            await run_on(lane, int)  # the lane's thread has forgotten the job before
            lane.close()
            return weakref.ref(error)
        raise AssertionError

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(story())() is None
    finally:
        gc.enable()


def test_errors_go_to_who_asked_and_the_lane_goes_on() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def story() -> None:
        lane = ThreadLane(asyncio.get_running_loop(), "lane")
        with pytest.raises(ValueError, match="no"):
            await limited(run_on(lane, fail))
        assert await limited(run_on(lane, lambda: 7)) == 7
        lane.close()

    asyncio.run(story())


def test_who_is_cancelled_hears_nothing_and_the_work_is_done() -> None:
    async def story() -> None:
        lane = ThreadLane(asyncio.get_running_loop(), "lane")
        go_on, done = threading.Event(), []

        def work() -> None:
            go_on.wait(LIMIT_S)
            done.append(True)

        def fail() -> None:
            raise ValueError("unheard")

        asked = [asyncio.ensure_future(run_on(lane, job)) for job in (work, fail)]
        await asyncio.sleep(0)
        for future in asked:
            future.cancel()
        go_on.set()
        await limited(run_on(lane, lambda: None))
        assert done == [True]
        assert all(future.cancelled() for future in asked)
        lane.close()

    asyncio.run(story())


def test_closing_finishes_what_was_submitted() -> None:
    async def story() -> None:
        lane = ThreadLane(asyncio.get_running_loop(), "lane")
        done: list[int] = []
        for index in range(50):
            lane.submit(lambda index=index: done.append(index), lambda *_: None)
        lane.close()
        assert done == list(range(50))

    asyncio.run(story())


def test_who_abandons_it_does_not_wait_and_the_work_is_done() -> None:
    async def story() -> None:
        lane = ThreadLane(asyncio.get_running_loop(), "lane")
        go_on, done = threading.Event(), threading.Event()
        lane.submit(lambda: go_on.wait(LIMIT_S) and done.set(), lambda *_: None)
        lane.abandon()
        assert not done.is_set()
        go_on.set()
        assert done.wait(LIMIT_S)

    asyncio.run(story())


def test_a_loop_that_is_gone_is_no_error_of_the_lane() -> None:
    lanes: list[ThreadLane] = []
    go_on = threading.Event()

    async def story() -> None:
        lane = ThreadLane(asyncio.get_running_loop(), "lane")
        lanes.append(lane)
        lane.submit(lambda: go_on.wait(LIMIT_S), lambda *_: None)

    asyncio.run(story())
    go_on.set()
    lanes[0].close()
    assert not lanes[0]._thread.is_alive()


def test_a_job_pauses_only_while_nothing_else_waits() -> None:
    told: list[bool] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        lane = ThreadLane(loop, "lane")
        waits, finished = threading.Event(), asyncio.Event()

        def work() -> None:
            told.append(lane.pause(0.001))
            waits.wait(LIMIT_S)
            told.append(lane.pause(2 * LIMIT_S))

        lane.submit(work, lambda *_: None)
        lane.submit(lambda: None, lambda *_: finished.set())
        waits.set()
        await limited(finished.wait())
        lane.close()

    asyncio.run(story())
    assert told[1:] == [False]


def test_a_job_rests_also_while_others_wait_and_the_end_of_the_lane_ends_its_rest() -> None:
    async def story() -> list[str]:
        lane = ThreadLane(asyncio.get_running_loop(), "rests")
        told: list[str] = []
        begun = threading.Event()

        def work() -> None:
            lane.rest(0.001)
            begun.set()
            lane.rest(1_000.0)
            told.append("rested")

        lane.submit(work, lambda *_: None)
        lane.submit(lambda: told.append("next"), lambda *_: None)
        assert begun.wait(LIMIT_S)
        assert told == []
        lane.close()
        return told

    assert asyncio.run(story()) == ["rested", "next"]


class StoppedLane:
    """Holds jobs until the test reports their end."""

    def __init__(self) -> None:
        self.done: list[Done] = []

    def submit(self, work: Work, done: Done) -> None:
        self.done.append(done)

    def pause(self, seconds: float) -> bool:
        return False

    def rest(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        self.done.clear()

    def abandon(self) -> None:
        self.done.clear()


def test_an_error_that_nobody_awaits_any_more_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        lane = StoppedLane()
        asked = asyncio.ensure_future(run_on(lane, lambda: None))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.sleep(0)
        lane.done[0](None, KeyError("forgotten"))
        with pytest.raises(InvariantError):
            lane.done[0](None, InvariantError("ours"))
        lane.done[0]("a result", None)

    asyncio.run(story())
    assert "work that nobody awaits any more failed: 'forgotten'" in caplog.text


def test_work_that_ends_an_iteration_does_not_hang_its_caller() -> None:
    async def story() -> None:
        lane = ThreadLane(asyncio.get_running_loop(), "lane")
        with pytest.raises(InvariantError, match="StopIteration"):
            await limited(run_on(lane, lambda: next(iter(()))))
        lane.close()

    asyncio.run(story())
