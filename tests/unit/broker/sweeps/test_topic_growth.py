"""The sweep that finds the topics that grow."""

from __future__ import annotations

import asyncio

import pytest

from headgate.broker.sweeps.topic_growth import FIRST_PERIOD_S, PERIOD_S, TopicGrowthSweep
from headgate.engine.engine import Engine
from headgate.testing import World
from tests.unit.broker.playing import played
from tests.unit.broker.virtual import VirtualBroker

GROWS, KEEPS_UP, IDLE = (f"persistent://public/default/{name}" for name in ("grows", "up", "idle"))


@played()
async def test_topics_are_found_by_what_they_retain(world: World) -> None:
    client, broker = await world.connect(), world.broker
    producers = []
    for name in (GROWS, KEEPS_UP, IDLE):
        await client.subscribe(name, "s")
        producers.append(await client.producer(name))
    await producers[2].send(bytes(50_000))
    for _ in range(150):
        await producers[0].send(bytes(1_000))
        await producers[1].send(bytes(5_000))
        topic = broker.engine.topics[KEEPS_UP]
        broker.log.stage_trim(topic.log, topic.log.end)
        await asyncio.sleep(1)
    (grows, *others) = broker.topic_growth.growths.fastest(5)
    assert grows.topic == GROWS
    assert grows.number == broker.engine.topics[GROWS].log.number
    assert grows.bytes_per_s == pytest.approx(1_090, rel=0.03)  # with the heads of its records
    assert all(other.bytes_per_s < 100 for other in others)
    await broker.registry.delete(broker.engine.topics[GROWS].name, force=True)
    await asyncio.sleep(70)
    assert GROWS not in [one.topic for one in broker.topic_growth.growths.fastest(5)]


def test_the_walk_gives_way_and_the_first_round_is_soon() -> None:
    broker = VirtualBroker()
    gave: list[int] = []

    class Turns:
        def begin_turn(self) -> None: ...

        async def give_way(self, units: int) -> None:
            gave.append(units)

        async def grant(self, units: int) -> int:
            await self.give_way(units)
            return units

    for at in range(300):
        broker.topic(f"persistent://public/default/t{at}")
    engine: Engine = broker.engine
    sweep = TopicGrowthSweep(engine, broker.logs, Turns())
    assert sweep.period_s() == FIRST_PERIOD_S
    asyncio.run(sweep.measure())
    assert sweep.period_s() == PERIOD_S
    assert len(gave) == 4
