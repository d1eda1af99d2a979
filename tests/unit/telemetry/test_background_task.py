"""A task from its start to its stop."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.telemetry.background_task import BackgroundTask


async def wait(seen: list[str]) -> None:
    seen.append("begun")
    try:
        await asyncio.Event().wait()
    finally:
        seen.append("ended")


async def fail() -> None:
    raise ValueError("broken")


def test_a_stop_waits_for_the_end_and_allows_another_start() -> None:
    async def play() -> list[str]:
        seen: list[str] = []
        task = BackgroundTask(asyncio.get_running_loop(), "work", "the work ended")
        await task.stop()
        assert not task.is_started
        for _ in range(2):
            task.start(wait(seen))
            assert task.is_started
            await asyncio.sleep(0)
            await task.stop()
            assert not task.is_started
        return seen

    assert asyncio.run(play()) == ["begun", "ended"] * 2


def test_an_exception_reaches_the_handler_of_the_loop_and_not_who_stops() -> None:
    async def play() -> list[dict[str, Any]]:
        loop, seen = asyncio.get_running_loop(), list[dict[str, Any]]()
        loop.set_exception_handler(lambda _, context: seen.append(context))
        task = BackgroundTask(loop, "work", "the work ended")
        task.start(fail())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert task.is_started
        await task.stop()
        return seen

    (context,) = asyncio.run(play())
    assert context["message"] == "the work ended"
    assert repr(context["exception"]) == "ValueError('broken')"
