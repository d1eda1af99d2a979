"""Owners of work take turns, however much one of them sends."""

from __future__ import annotations

import asyncio
import random

import pytest

from headgate.storage.fair_slots import FairSlots


async def rest() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_an_owner_with_much_work_holds_up_itself_alone() -> None:
    order: list[str] = []

    async def story() -> None:
        slots = FairSlots(2, 1)
        ends = asyncio.Event()

        async def work(owner: str) -> None:
            async with slots.slot(owner):
                order.append(owner)
                await ends.wait()
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(work("many")) for _ in range(5)]
        await rest()
        assert order == ["many"]
        tasks += [asyncio.create_task(work("few")) for _ in range(2)]
        await rest()
        assert order == ["many", "few"]
        ends.set()
        await asyncio.gather(*tasks)
        assert order[:4] in (["many", "few", "many", "few"], ["many", "few", "few", "many"])
        assert sorted(order) == ["few"] * 2 + ["many"] * 5

    asyncio.run(story())


def test_an_owner_has_its_least_number_whatever_others_hold() -> None:
    async def story() -> None:
        slots = FairSlots(2, 2, 1)
        for owner in ("a", "a", "b", "c"):
            await asyncio.wait_for(slots.take(owner), 1)
        waiting = [asyncio.create_task(slots.take(owner)) for owner in ("a", "b", "c")]
        await rest()
        for owner in ("a", "a"):
            slots.give_back(owner)
            await rest()
        assert [task.done() for task in waiting] == [True, False, False]
        for owner in ("b", "c", "a"):
            slots.give_back(owner)
            await rest()
        assert all(task.done() for task in waiting)

    asyncio.run(story())


def test_a_waiter_that_is_cancelled_takes_no_slot() -> None:
    async def story() -> None:
        slots = FairSlots(1, 1)
        held = asyncio.Event()

        async def work() -> None:
            async with slots.slot("a"):
                await held.wait()

        first, second, third = [asyncio.create_task(work()) for _ in range(3)]
        await rest()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        third.cancel()
        held.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await third
        async with asyncio.timeout(1), slots.slot("b"):
            pass
        assert not slots._waiting
        assert not slots._used

    asyncio.run(story())


def test_thousands_that_are_cancelled_in_the_opposite_order_are_not_searched_for() -> None:
    compared = 0

    class CountedFuture(asyncio.Future[None]):
        __hash__ = asyncio.Future.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

    async def story() -> None:
        asyncio.get_running_loop().create_future = CountedFuture  # type: ignore[method-assign]
        slots, held = FairSlots(1, 1), asyncio.Event()

        async def work() -> None:
            async with slots.slot("a"):
                await held.wait()

        tasks = [asyncio.create_task(work()) for _ in range(1_000)]
        await rest()
        for task in reversed(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not slots._waiting

    asyncio.run(story())
    assert compared < 10_000, "each that is cancelled looks at those before it"


@pytest.mark.parametrize("owner_min", [0, 1])
@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_and_all_work_ends(seed: int, owner_min: int) -> None:
    async def story() -> None:
        chance = random.Random(seed)
        slots_max, owner_max = chance.randrange(1, 5), chance.randrange(1, 3)
        slots = FairSlots(slots_max, owner_max, owner_min)
        running: list[str] = []

        async def work(owner: str, pauses: int) -> None:
            async with slots.slot(owner):
                running.append(owner)
                beyond = owner_min * (len(set(running)) - 1)
                assert len(running) <= slots_max + beyond
                assert running.count(owner) <= owner_max
                for _ in range(pauses):
                    await asyncio.sleep(0)
                running.remove(owner)
                if pauses == 3:
                    raise ValueError(owner)

        tasks = []
        for _ in range(60):
            tasks.append(asyncio.create_task(work(chance.choice("abc"), chance.randrange(4))))
            if chance.random() < 0.2:
                await asyncio.sleep(0)
                chance.choice(tasks).cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        for _ in range(slots_max):
            async with slots.slot("z"):
                pass
        assert not slots._waiting
        assert not slots._used

    asyncio.run(story())
