"""Turns of keys: few at once, one of each key, and no key before all others."""

from __future__ import annotations

import asyncio

import pytest

from headgate.broker.schemas.turns import KeyedTurns


def test_one_key_takes_one_turn_at_a_time_and_others_come_between() -> None:
    ran: list[str] = []

    async def story() -> None:
        turns = KeyedTurns(2)

        async def work(key: str) -> None:
            async with turns.of(key):
                ran.append(key)
                await asyncio.sleep(0.001)

        async with asyncio.timeout(10):
            await asyncio.gather(*(work(key) for key in ["crowd"] * 50 + ["a", "b", "c"]))
        assert len(turns) == 0

    asyncio.run(story())
    assert len(ran) == 53
    assert max(ran.index(key) for key in "abc") < 8


def test_never_more_than_allowed_run() -> None:
    running, most = 0, 0

    async def story() -> None:
        turns = KeyedTurns(3)

        async def work(key: int) -> None:
            nonlocal running, most
            async with turns.of(key % 7):
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1

        await asyncio.gather(*(work(key) for key in range(100)))

    asyncio.run(story())
    assert most == 3


def test_who_leaves_or_fails_gives_the_turn_back() -> None:
    async def story() -> None:
        turns = KeyedTurns(1)

        async def fail() -> None:
            async with turns.of("a"):
                raise ValueError("no")

        async def wait() -> None:
            async with turns.of("a"):
                await asyncio.sleep(100)

        with pytest.raises(ValueError, match="no"):
            await fail()
        waiting = [asyncio.ensure_future(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        assert len(turns) == 1
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert len(turns) == 0
        async with asyncio.timeout(1), turns.of("b"):
            pass

    asyncio.run(story())
