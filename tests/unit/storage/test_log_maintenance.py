"""One log's maintenance: one job at a time, on its own lane, and none after the end."""

from __future__ import annotations

import asyncio

from headgate.base.errors import StorageError
from headgate.ledger import LedgerSettings
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

SMALL = LedgerSettings(segment_bytes=16_384)


async def publish(world: World, count: int) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(count):
        await producer.send(bytes(4_000))


@played(ledger=SMALL)
async def test_segments_are_sealed_as_they_fill(world: World) -> None:
    await publish(world, 20)
    await asyncio.sleep(2)
    statistics = world.broker.log.statistics()
    assert statistics.segments - statistics.segments_sealed <= 1
    assert not world.broker.logs.main.maintenance.bugs()


@played(ledger=SMALL)
async def test_a_job_that_fails_is_done_again(world: World) -> None:
    maintenance = world.broker.logs.main.maintenance
    world.broker.log._staging.roll()
    await publish(world, 1)
    world.broker.log._staging.roll()
    world.lanes[0].fail_next(StorageError("hiccup", retryable=True))
    maintenance.run()
    await asyncio.sleep(3)
    statistics = world.broker.log.statistics()
    assert statistics.segments - statistics.segments_sealed <= 1


@played(ledger=SMALL)
async def test_after_its_end_nothing_begins(world: World) -> None:
    maintenance = world.broker.logs.main.maintenance
    maintenance.stop()
    await publish(world, 20)
    await asyncio.sleep(2)
    assert world.broker.log.statistics().segments_sealed == 0
