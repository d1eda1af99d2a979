"""All that ask meanwhile share one result, and go on a few in each iteration of the loop."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import StorageError
from headgate.broker.keyed_mutex import WOKEN_MAX
from headgate.broker.shared_result import SharedResult


async def made(opened: asyncio.Event, error: Exception | None = None) -> str:
    await opened.wait()
    if error is not None:
        raise error
    return "made"


def test_crowds_go_on_a_few_in_each_iteration() -> None:
    """4,000 connections that waited for one password held the event loop for 0.4 s."""

    async def story() -> None:
        loop, opened = asyncio.get_running_loop(), asyncio.Event()
        shared = SharedResult(loop.create_task(made(opened)))
        woken: list[int] = []
        turns = 0

        async def waits() -> None:
            assert await shared.join() == "made"
            woken.append(turns)

        tasks = [loop.create_task(waits()) for _ in range(10 * WOKEN_MAX)]
        await asyncio.sleep(0)
        opened.set()
        while len(woken) < len(tasks):
            turns += 1
            await asyncio.sleep(0)
        assert max(map(woken.count, set(woken))) == WOKEN_MAX
        assert await shared.join() == "made", "also who asks when it is there"

    asyncio.run(story())


def test_an_error_is_one_of_all_and_who_leaves_ends_nothing() -> None:
    async def story() -> None:
        loop, opened = asyncio.get_running_loop(), asyncio.Event()
        shared = SharedResult(loop.create_task(made(opened, StorageError("no", retryable=True))))
        first, second = shared.join(), shared.join()
        first.cancel()
        opened.set()
        with pytest.raises(StorageError):
            await second

    asyncio.run(story())


def test_all_that_wait_for_what_is_cancelled_are_cancelled() -> None:
    async def story() -> None:
        task = asyncio.get_running_loop().create_task(made(asyncio.Event()))
        waiting = SharedResult(task).join()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(story())


def test_an_error_for_which_nobody_waits_is_retrieved(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        opened = asyncio.Event()
        opened.set()
        SharedResult(
            asyncio.get_running_loop().create_task(made(opened, StorageError("no", retryable=True)))
        )
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(story())
    assert not caplog.records
