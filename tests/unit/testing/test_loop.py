"""The event loop on virtual time."""

from __future__ import annotations

import asyncio
import random
from asyncio.base_events import BaseEventLoop
from collections.abc import Iterator
from typing import Any

import pytest

from headgate.base.units import NS_PER_S
from headgate.testing.clock import ManualClock
from headgate.testing.loop import HOST, SimLoop, StalledError


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    loop = SimLoop()
    yield loop
    loop.close()


def test_an_hour_of_sleep_takes_an_hour_of_virtual_time(loop: SimLoop) -> None:
    before_ns = loop.clock.monotonic_ns()
    loop.run_until_complete(asyncio.sleep(3600))
    passed_ns = loop.clock.monotonic_ns() - before_ns
    assert 3600 * NS_PER_S <= passed_ns < 3600 * NS_PER_S + 1_000
    assert loop.time() == loop.clock.monotonic_ns() / NS_PER_S


def test_timers_go_off_in_the_order_of_their_instants(loop: SimLoop) -> None:
    seen: list[str] = []
    loop.call_later(0.2, seen.append, "second")
    loop.call_later(0.1, seen.append, "first")
    loop.call_soon(seen.append, "now")
    loop.run_until_complete(asyncio.sleep(0.3))
    assert seen == ["now", "first", "second"]


def test_waiting_for_what_never_comes_is_said_at_once(loop: SimLoop) -> None:
    with pytest.raises(StalledError, match="nothing is left to do"):
        loop.run_until_complete(loop.create_future())


def test_an_error_that_nobody_catches_ends_the_run(loop: SimLoop) -> None:
    def broken() -> None:
        raise ValueError("nobody listens")

    loop.call_soon(broken)
    with pytest.raises(ValueError, match="nobody listens"):
        loop.run_until_complete(asyncio.sleep(1))


def test_the_first_failure_counts_and_is_reported_once(loop: SimLoop) -> None:
    loop.fail(ValueError("first"))
    loop.fail(KeyError("second"))
    with pytest.raises(ValueError, match="first"):
        loop.raise_failure()
    loop.raise_failure()


def test_a_machine_that_is_killed_does_nothing_more(loop: SimLoop) -> None:
    seen: list[int] = []

    async def work(host: int) -> None:
        HOST.set(host)
        loop.call_later(0.2, seen.append, host)
        await asyncio.create_task(asyncio.sleep(0.1))
        seen.append(-host)

    async def story() -> None:
        tasks = [asyncio.create_task(work(host)) for host in (1, 2)]
        await asyncio.sleep(0.05)
        loop.kill_host(1)
        await asyncio.wait(tasks)
        await asyncio.sleep(0.2)
        assert [task.cancelled() for task in tasks] == [True, False]

    loop.run_until_complete(story())
    assert seen == [-2, 2]


class AsyncioLoop(BaseEventLoop):
    """The queues of asyncio itself, on virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self._selector = self

    def time(self) -> float:
        return self.clock.monotonic_ns() / NS_PER_S

    def select(self, timeout: float) -> list[Any]:
        if timeout > 0:
            self.clock.advance(int(timeout * NS_PER_S) + 1)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""


def callbacks(loop: SimLoop | AsyncioLoop, seed: int) -> list[tuple[int, int]]:
    """Callbacks that make and cancel others, many of them at the same instant: the number and the
    instant of each."""
    rng, seen, handles = random.Random(seed), [], []

    def called(number: int) -> None:
        seen.append((number, loop.clock.monotonic_ns()))
        if len(seen) == 1_500:
            loop.stop()
        for _ in range(rng.choice((1, 1, 2, 2))):
            kind, following = rng.random(), rng.randrange(1_000_000)
            if kind < 0.2:
                handles.append(loop.call_soon(called, following))
            elif kind < 0.9:
                at_s = round(loop.time() + rng.choice((0, 0.01, 0.1, 0.5, 200, 100_000)), 2)
                handles.append(loop.call_at(at_s, called, following))
            else:
                rng.choice(handles or [loop.call_soon(int)]).cancel()
        if rng.random() < 0.02:
            for handle in handles[-300:]:
                handle.cancel()
            for at in range(20):
                loop.call_later(at % 4 / 10, called, at)

    try:
        for at in range(20):
            loop.call_later(at % 4 / 10, called, at)
        loop.run_forever()
    finally:
        loop.close()
    return seen


@pytest.mark.parametrize("seed", range(5))
def test_callbacks_run_in_the_order_and_at_the_instants_of_asyncio(seed: int) -> None:
    found = callbacks(SimLoop(), seed)
    assert len(found) >= 1_500
    assert found == callbacks(AsyncioLoop(), seed)


def test_timers_that_are_cancelled_leave_the_loop(loop: SimLoop) -> None:
    """A client that sets a timer for each request and cancels it would fill the memory."""

    async def story() -> None:
        for _ in range(1_000):
            loop.call_later(3600, int).cancel()
            await asyncio.sleep(0)

    loop.run_until_complete(story())
    assert len(loop._scheduled) <= 200
