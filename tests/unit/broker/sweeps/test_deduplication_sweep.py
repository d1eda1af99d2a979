"""Which producers deduplication forgets, and when."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

TENTH_S = 360
"""A tenth of the timeout."""
SETTINGS = {
    "brokerDeduplicationEnabled": "true",
    "brokerDeduplicationProducerInactivityTimeoutMinutes": "60",
}


def known(world: World) -> list[str]:
    table = world.broker.engine.topics[parse_topic(TOPIC).full].log.sequences
    assert table is not None
    return [row.name for row in table.rows(1 << 60)]


@played(limit_s=20 * TENTH_S, settings=SETTINGS)
async def test_a_producer_is_forgotten_some_time_after_it_left(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    stays, goes = [await client.producer(TOPIC, name=name) for name in ("stays", "goes")]
    await stays.send(b"x")
    await goes.send(b"x")
    await goes.close()
    await asyncio.sleep(8 * TENTH_S)
    assert known(world) == ["stays", "goes"]
    await asyncio.sleep(7 * TENTH_S)
    assert known(world) == ["stays"]


@played(limit_s=40 * TENTH_S, settings=SETTINGS)
async def test_restarts_do_not_keep_a_producer(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    await (await client.producer(TOPIC, name="gone")).send(b"x")
    for _ in range(3):
        client.close()
        await asyncio.sleep(2 * TENTH_S)
        await world.stop()
        await world.start()
        client = await world.connect()
    assert known(world) == ["gone"]
    await asyncio.sleep(3 * TENTH_S)
    await world.stop()
    await world.start()
    await asyncio.sleep(7 * TENTH_S)
    assert known(world) == []


@played(limit_s=20 * TENTH_S, settings=SETTINGS | {"brokerDeduplicationMaxNumberOfProducers": "3"})
async def test_the_number_of_producers_is_bounded(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    for at in range(6):
        producer = await client.producer(TOPIC, name=f"p{at}")
        await producer.send(b"x")
        await producer.close()
    assert known(world) == ["p3", "p4", "p5"]
