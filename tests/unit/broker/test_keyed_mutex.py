"""Work under one key runs in order and to its end, also when its caller is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headgate.broker.keyed_mutex import KeyedMutex
from headgate.testing import SimLoop


def play(story: Callable[[KeyedMutex], Coroutine[Any, Any, None]]) -> None:
    loop = SimLoop()
    with contextlib.closing(loop):
        loop.run_until_complete(story(KeyedMutex()))


def job(done: list[str], name: str, seconds: float = 1) -> Callable[[], Coroutine[Any, Any, str]]:
    async def work() -> str:
        done.append(f"{name} begins")
        await asyncio.sleep(seconds)
        done.append(f"{name} ends")
        return name

    return work


def test_one_key_is_worked_on_in_order_and_keys_are_independent() -> None:
    async def story(work: KeyedMutex) -> None:
        done: list[str] = []
        results = await asyncio.gather(
            work.run_alone("a", job(done, "first")),
            work.run_alone("a", job(done, "second")),
            work.run_alone("b", job(done, "other", 0.5)),
        )
        assert results == ["first", "second", "other"]
        assert [line for line in done if "other" not in line] == [
            "first begins",
            "first ends",
            "second begins",
            "second ends",
        ]
        assert done.index("other ends") < done.index("first ends")

    play(story)


def test_work_goes_on_when_its_caller_is_cancelled() -> None:
    async def story(work: KeyedMutex) -> None:
        done: list[str] = []
        caller = asyncio.ensure_future(work.run_alone("a", job(done, "left alone")))
        await asyncio.sleep(0.5)
        caller.cancel()
        await asyncio.sleep(0)
        assert caller.cancelled()
        await work.when_idle("a")
        assert done[-1] == "left alone ends"

    play(story)


def test_an_error_is_the_callers_and_the_next_one_works() -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def story(work: KeyedMutex) -> None:
        done: list[str] = []
        with pytest.raises(ValueError, match="no"):
            await work.run_alone("a", fail)
        assert await work.run_alone("a", job(done, "next")) == "next"
        await work.when_idle("a")

    play(story)


def test_an_error_that_nobody_waits_for_is_no_trouble() -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError("unheard")

    async def story(work: KeyedMutex) -> None:
        caller = asyncio.ensure_future(work.run_alone("a", fail))
        await asyncio.sleep(0.5)
        caller.cancel()
        await asyncio.sleep(5)

    play(story)
