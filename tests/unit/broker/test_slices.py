"""Work in steps: at once, or in slices between which others have their turn."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from headgate.base.sliced import Sliced, at_once
from headgate.base.work_units import PIECE_UNITS, SLICE_UNITS
from headgate.broker.service import Broker
from headgate.broker.slices import (
    SLICE_TOPICS,
    SLICE_YIELDS,
    AdminTurns,
    in_slices,
    live_topics,
)
from headgate.testing import World
from tests.unit.broker.playing import played
from tests.unit.broker.virtual import VirtualBroker


class Turns:
    """A broker of which only the turns are looked at."""

    def __init__(self) -> None:
        self.count = 0

    def begin_turn(self) -> None:
        self.count += 1

    async def give_way(self, units: int) -> None:
        assert units == PIECE_UNITS
        await asyncio.sleep(0)
        self.begin_turn()

    async def grant(self, units: int) -> int:
        await self.give_way(units)
        return units


def counting(steps: int) -> Sliced[int]:
    for _ in range(steps):
        yield
    return steps


def failing() -> Sliced[int]:
    yield
    raise KeyError("lost")


@pytest.mark.parametrize("steps", [0, 1, SLICE_YIELDS, 10 * SLICE_YIELDS + 1])
def test_the_result_is_the_same_either_way(steps: int) -> None:
    broker: Any = Turns()
    assert at_once(counting(steps)) == steps
    assert asyncio.run(in_slices(broker, counting(steps))) == steps
    assert broker.count == steps // SLICE_YIELDS


def test_others_have_their_turn_between_slices() -> None:
    async def story() -> None:
        broker: Any = Turns()
        seen: list[int] = []
        done: list[int] = []

        def steps() -> Sliced[None]:
            for number in range(5 * SLICE_YIELDS):
                done.append(number)
                yield

        work = asyncio.ensure_future(in_slices(broker, steps()))
        while not work.done():
            seen.append(len(done))
            await asyncio.sleep(0)
        assert max(after - before for before, after in pairwise(seen)) <= SLICE_YIELDS

    asyncio.run(story())


def test_an_error_of_the_work_is_its_callers() -> None:
    broker: Any = Turns()
    with pytest.raises(KeyError):
        at_once(failing())
    with pytest.raises(KeyError):
        asyncio.run(in_slices(broker, failing()))


def test_a_walk_leaves_out_topics_that_end_and_does_not_visit_topics_that_come_meanwhile() -> None:
    broker = VirtualBroker()
    names = [f"persistent://public/default/t{i}" for i in range(2 * SLICE_TOPICS + 2)]
    for name in names:
        broker.topic(name)
    turns = Turns()
    seen: set[str] = set()

    async def walk() -> None:
        others = asyncio.ensure_future(change_some())
        async for topic in live_topics(broker.engine, turns):
            seen.add(topic.name.full)
        await others

    async def change_some() -> None:
        assert len(seen) == SLICE_TOPICS
        broker.topic("persistent://public/default/late")
        for name in (names[0], names[-1]):  # one that was visited, one that was not
            broker.engine.unload_topic(broker.engine.topics[name])

    asyncio.run(walk())
    assert seen == set(names[:-1])
    assert turns.count == 2


@played()
async def test_walks_of_administrators_come_before_upkeep(world: World) -> None:
    order: list[str] = []

    async def walk(turns: AdminTurns | Broker, name: str) -> None:
        for _ in range(3):
            await turns.give_way(SLICE_UNITS)
            order.append(name)

    await asyncio.gather(walk(world.broker, "upkeep"), walk(AdminTurns(world.broker), "admin"))
    assert order.index("admin") < order.index("upkeep")
    assert order.count("admin") == order.count("upkeep") == 3


def test_a_walk_in_small_pieces_uses_all_that_a_slice_grants() -> None:
    """A piece in each iteration of a busy loop would make a long answer take seconds."""
    world = World(1)

    async def walk() -> int:
        broker = world.broker
        assert broker is not None
        turns, before = AdminTurns(broker), broker.work.slice_number
        for _ in range(40 * SLICE_UNITS // PIECE_UNITS):
            await turns.give_way(PIECE_UNITS)
        return broker.work.slice_number - before

    async def story() -> tuple[int, list[int]]:
        await world.start()
        return await walk(), await asyncio.gather(walk(), walk())

    with world:
        alone, together = world.run(story())
    assert 38 <= alone <= 42
    assert max(together) >= 76  # two share what one would have


def test_short_works_behind_each_other_use_what_a_slice_grants() -> None:
    """As the statistics of many partitions."""
    world = World(1)

    async def story() -> int:
        await world.start()
        broker = world.broker
        assert broker is not None
        turns, before = AdminTurns(broker), broker.work.slice_number
        for _ in range(100):
            await turns.give_way(PIECE_UNITS)  # for its first piece
            assert await in_slices(turns, counting(2 * SLICE_YIELDS)) == 2 * SLICE_YIELDS
        return broker.work.slice_number - before

    with world:
        assert world.run(story()) <= 70  # 200 before


def test_what_a_slice_granted_is_for_its_iteration_alone() -> None:
    world = World(1)

    async def story() -> int:
        await world.start()
        broker = world.broker
        assert broker is not None
        turns = AdminTurns(broker)
        await turns.give_way(PIECE_UNITS)
        before = broker.work.slice_number
        await broker.work.give_way(1)
        await turns.give_way(PIECE_UNITS)
        return broker.work.slice_number - before

    with world:
        assert world.run(story()) == 2
