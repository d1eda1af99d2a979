"""All producers of a topic are closed, each after its receipts."""

from __future__ import annotations

import asyncio

from headgate.broker.producer_closing import CLOSED_AT_ONCE, close_producers
from headgate.ledger import LedgerSettings
from headgate.testing import ConnectionLostError, World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_no_receipt_is_lost_and_nothing_is_taken_afterwards(world: World) -> None:
    client = await world.connect()
    producers = [await client.producer(TOPIC) for _ in range(CLOSED_AT_ONCE * 3)]
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x") for producer in producers]
    await asyncio.sleep(0.5)
    topic = world.broker.engine.topics[TOPIC]
    closing = asyncio.create_task(close_producers(topic, world.broker))
    await asyncio.sleep(0.5)
    assert not closing.done()
    late = [producer.send_nowait(b"late") for producer in producers[:3]]
    await asyncio.sleep(0.5)
    world.lanes[0].thaw()
    await closing
    assert not topic.producers
    await asyncio.gather(*sent)
    for each in await asyncio.gather(*late, return_exceptions=True):
        assert isinstance(each, ConnectionLostError)
    assert topic.log.end == len(producers)


@played(
    ledger=LedgerSettings(
        segment_bytes=64 * 1024, checkpoint_bytes=256 * 1024, ledger_age_ms_min=0
    ),
    capacity_bytes=256 * 1024,
)
async def test_a_full_disk_does_not_keep_them(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await client.subscribe(TOPIC, "s", queue_size=0)
    for _ in range(300):
        producer.send_nowait(bytes(1_000))
    await asyncio.sleep(5)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.publishing.parking
    await close_producers(topic, world.broker)
    await asyncio.sleep(1)
    assert not topic.producers
    assert not producer.is_open
