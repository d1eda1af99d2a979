"""Requests whose clients have left count until the application has ended its work on them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.app.served_requests import ServedRequests
from headgate.broker.http_memory import HttpMemory


def memory_of(bytes_max: int = 1_000, requests_max: int = 2) -> HttpMemory:
    return HttpMemory(lambda: bytes_max, lambda: requests_max)


class Slow:
    """An application that ends when it is told to."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.ended: list[str] = []

    async def __call__(self, _scope: Any, _receive: Any, _send: Any) -> None:
        try:
            await self.may_end.wait()
            self.ended.append("whole")
        except asyncio.CancelledError:
            self.ended.append("given up")
            raise


async def begun(served: ServedRequests, app: Any) -> asyncio.Task[None]:
    nothing: Any = None
    work: Any = served.watched(app)(nothing, nothing, nothing)
    task: asyncio.Task[None] = asyncio.create_task(work)
    await asyncio.sleep(0)
    return task


def test_it_counts_until_its_work_has_ended() -> None:
    async def story() -> None:
        memory, served, app = memory_of(), ServedRequests(), Slow()
        assert not memory.begin("a")
        assert not served.leave(memory, "a", 100)
        task = await begun(served, app)
        assert served.leave(memory, "a", 100)
        assert (memory.running, memory.held_bytes) == (1, 100)
        assert memory.begin("a")
        memory.end("a")
        app.may_end.set()
        await task
        assert app.ended == ["whole"]
        assert (memory.running, memory.held_bytes) == (0, 0)
        assert not served.leave(memory, "a", 100)

    asyncio.run(story())


def test_of_two_the_last_one_ends_it() -> None:
    async def story() -> None:
        memory, served, first, second = memory_of(), ServedRequests(), Slow(), Slow()
        memory.begin("a")
        tasks = [await begun(served, app) for app in (first, second)]
        assert served.leave(memory, "a", 100)
        second.may_end.set()
        await tasks[1]
        assert (memory.running, memory.held_bytes) == (1, 100)
        first.may_end.set()
        await tasks[0]
        assert (memory.running, memory.held_bytes) == (0, 0)

    asyncio.run(story())


def test_it_is_given_up_when_all_hold_too_much() -> None:
    async def story() -> None:
        memory, served, app = memory_of(), ServedRequests(), Slow()
        memory.begin("a")
        task = await begun(served, app)
        assert served.leave(memory, "a", 1_001)
        await task  # which is no error that somebody would have to read
        assert app.ended == ["given up"]
        assert (memory.running, memory.held_bytes) == (0, 0)

    asyncio.run(story())


def test_who_else_cancels_it_is_told() -> None:
    async def story() -> None:
        memory, served, app = memory_of(), ServedRequests(), Slow()
        memory.begin("a")
        task = await begun(served, app)
        served.leave(memory, "a", 100)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (memory.running, memory.held_bytes) == (0, 0)

    asyncio.run(story())
