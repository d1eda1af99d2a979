"""The event loop on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headgate.base.units import NS_PER_S
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
