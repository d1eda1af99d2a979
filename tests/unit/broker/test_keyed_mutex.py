"""Work under one key runs in order and to its end, also when its caller is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.broker.keyed_mutex import WOKEN_MAX, KeyedMutex
from headgate.testing import SimLoop
from tests.unit.work_meter import bytecodes


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


def test_a_caller_goes_on_before_those_that_waited_for_its_work() -> None:
    """Else a client's second SUBSCRIBE joined before its first one was given up."""

    async def story(work: KeyedMutex) -> None:
        done: list[str] = []

        async def first() -> None:
            await work.run_alone("a", job([], "first"))
            done.append("first")

        async def second() -> None:
            await work.when_idle("a")
            done.append("second")

        async def third() -> None:
            await work.run_alone("a", job([], "third"))
            done.append("third")

        await asyncio.gather(first(), second(), third())
        assert done == ["first", "second", "third"]

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


def test_work_that_ends_with_its_caller_makes_way_for_the_next() -> None:
    async def story(work: KeyedMutex) -> None:
        done: list[str] = []
        first, second = (
            asyncio.ensure_future(
                work.run_alone("a", job(done, name), ends_with_caller=lambda: True)
            )
            for name in ("first", "second")
        )
        await asyncio.sleep(0.5)
        first.cancel()
        assert await second == "second"
        assert first.cancelled()
        assert done == ["first begins", "second begins", "second ends"]
        assert len(work) == 0

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


def test_a_change_that_ends_wakes_the_next_one_and_not_all() -> None:
    """900 commands of 200 bytes, each to add a schema, took 6 s: after each all others awoke."""
    costs = []
    for count in (50, 200):
        done: list[str] = []

        async def story(work: KeyedMutex, count: int = count, done: list[str] = done) -> None:
            crowd = (work.run_alone("a", job(done, f"{at}")) for at in range(count))
            assert await asyncio.gather(*crowd) == [f"{at}" for at in range(count)]
            assert (len(work), work._lines) == (0, {})

        costs.append(bytecodes(partial(play, story)) / count)
        assert done[::2] == [f"{at} begins" for at in range(count)]
    assert costs[1] < 1.2 * costs[0]


def test_a_crowd_that_waits_until_nothing_runs_continues_a_few_at_once() -> None:
    async def story(work: KeyedMutex) -> None:
        async def wait() -> None:
            nonlocal woken
            await work.when_idle("a")
            woken += 1

        woken, may_end, done = 0, asyncio.Event(), list[str]()
        first = asyncio.ensure_future(work.run_alone("a", may_end.wait))
        await asyncio.sleep(1)
        crowd = [asyncio.ensure_future(wait()) for _ in range(3 * WOKEN_MAX)]
        last = asyncio.ensure_future(work.run_alone("a", job(done, "last")))
        await asyncio.sleep(1)
        may_end.set()
        seen = [woken]
        while woken < len(crowd):
            await asyncio.sleep(0)
            seen.append(woken)
        assert {now - before for before, now in pairwise(seen)} == {0, WOKEN_MAX}
        assert done == []
        await asyncio.gather(first, last, *crowd)
        assert (done, len(work), work._lines) == (["last begins", "last ends"], 0, {})

    play(story)


def test_crowds_that_wait_for_many_keys_continue_as_few_at_once_as_those_of_one() -> None:
    """SUBSCRIBEs of 80 names, 300 of each, waited for the index. All continued within ten
    iterations, 2,500 in one."""

    async def story(work: KeyedMutex) -> None:
        async def wait(key: str, owner: str) -> None:
            await work.when_idle(key, owner)
            woken.append(owner)

        may_end, woken, tasks = asyncio.Event(), list[str](), list[asyncio.Future[Any]]()
        for at in range(3 * WOKEN_MAX):
            tasks.append(asyncio.ensure_future(work.run_alone(f"{at}", may_end.wait)))
        tasks.append(asyncio.ensure_future(work.run_alone("own", may_end.wait)))
        await asyncio.sleep(1)
        for at in range(3 * WOKEN_MAX):
            tasks += [asyncio.ensure_future(wait(f"{at}", "acme")) for _ in range(4)]
        tasks.append(asyncio.ensure_future(wait("own", "globex")))
        await asyncio.sleep(1)
        may_end.set()
        seen = [0]
        while len(woken) < 12 * WOKEN_MAX + 1:
            await asyncio.sleep(0)
            seen.append(len(woken))
        assert max(now - before for before, now in pairwise(seen)) == WOKEN_MAX
        assert "globex" in woken[: 2 * WOKEN_MAX]
        await asyncio.gather(*tasks)
        assert (len(work), work._lines, len(work._free), work._free_keys) == (0, {}, 0, set())

    play(story)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 6) | st.none()), max_size=12
    )
)
def test_nobody_is_forgotten_and_nothing_runs_beside_another(
    callers: list[tuple[bool, int, int | None]],
) -> None:
    """Each caller runs something or waits for idleness, arrives and perhaps leaves at an instant.
    One that waited for idleness then runs something, too."""

    async def story(work: KeyedMutex) -> None:
        running = 0

        async def change() -> None:
            nonlocal running
            running += 1
            assert running == 1
            await asyncio.sleep(1)
            running -= 1

        async def call(runs: bool, begins_s: int, _: int | None) -> None:
            await asyncio.sleep(begins_s)
            if not runs:
                await work.when_idle("a")
                assert running == 0
            await work.run_alone("a", change)

        tasks = [asyncio.ensure_future(call(*caller)) for caller in callers]
        loop = asyncio.get_running_loop()
        for task, (_, _, leaves_s) in zip(tasks, callers, strict=True):
            if leaves_s is not None:
                loop.call_later(leaves_s, task.cancel)
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert ended is None or isinstance(ended, asyncio.CancelledError)
        await work.when_idle("a")
        assert (running, len(work), work._lines) == (0, 0, {})
        assert (len(work._free), work._free_keys) == (0, set())

    play(story)
