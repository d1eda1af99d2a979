"""Readers of the agent take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from headgate.agent.web_requests import RefusedError
from headgate.agent.web_turns import AT_ONCE, WAITING_MAX, WebTurns


class HandExecutor(Executor):
    """Work that ends when a test says so, in the order in which it came."""

    def __init__(self) -> None:
        self.begun: list[tuple[Callable[[], Any], Future[Any]]] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.begun.append((lambda: work(*args, **kwargs), future))
        return future

    async def end_one(self) -> None:
        """The first one that has begun ends."""
        work, future = self.begun.pop(0)
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)
        for _ in range(4):  # until its request has the answer
            await asyncio.sleep(0)


class Scene:
    """Readers and the order in which they get answers."""

    def __init__(self) -> None:
        self.executor = HandExecutor()
        self.turns = WebTurns(self.executor)
        self.done: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, reader: str, count: int = 1) -> list[asyncio.Task[None]]:
        """Begin requests of a reader."""

        async def one() -> None:
            self.done.append(await self.turns.computed(reader, lambda: reader))

        tasks = [asyncio.create_task(one()) for _ in range(count)]
        await asyncio.sleep(0)
        self.tasks += tasks
        return tasks

    async def end(self) -> int:
        """All that was taken ends; how many were refused."""
        while self.executor.begun:
            await self.executor.end_one()
        found = await asyncio.gather(*self.tasks, return_exceptions=True)
        return sum(isinstance(each, RefusedError) for each in found)


def test_the_many_requests_of_one_reader_hold_up_no_other() -> None:
    async def play() -> None:
        scene = Scene()
        await scene.ask("flood", 1_000)
        await scene.ask("ops", 2)
        assert len(scene.executor.begun) == AT_ONCE
        for _ in range(6):
            await scene.executor.end_one()
        assert scene.done == ["flood", "flood", "flood", "ops", "flood", "ops"]
        assert await scene.end() == 1_000 - WAITING_MAX // 2

    asyncio.run(play())


def test_all_readers_together_have_a_bound() -> None:
    async def play() -> None:
        scene = Scene()
        for number in range(200):
            await scene.ask(f"reader-{number}", 20)
        await scene.end()
        assert len(scene.done) == WAITING_MAX

    asyncio.run(play())


def test_what_was_given_up_is_not_computed_and_leaves_its_place() -> None:
    async def play() -> None:
        scene = Scene()
        tasks = await scene.ask("a", 10)
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)
        assert len(scene.executor.begun) == AT_ONCE
        assert await scene.end() == 0
        await scene.ask("a", WAITING_MAX // 2)
        assert await scene.end() == 0
        assert len(scene.done) == WAITING_MAX // 2

    asyncio.run(play())


def test_an_error_is_that_of_its_request() -> None:
    async def play() -> None:
        scene = Scene()

        def fail() -> None:
            raise LookupError("none")

        task = asyncio.create_task(scene.turns.computed("a", fail))
        await asyncio.sleep(0)
        await scene.executor.end_one()
        with pytest.raises(LookupError):
            await task

    asyncio.run(play())
