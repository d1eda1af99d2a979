"""The consumer of the kit against a whole broker."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.positions import EARLIEST
from headgate.testing import ConnectionLostError, World
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_permits_come_back_by_halves(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", queue_size=4)
    for number in range(10):
        await producer.send(b"%d" % number)
    assert len(consumer.queue) == 4
    assert consumer.permits == 0
    consumer.receive_nowait()
    assert consumer.permits == 0
    consumer.receive_nowait()
    assert consumer.permits == 2
    await asyncio.sleep(0.1)
    assert [m.payload for m in consumer.queue] == [b"2", b"3", b"4", b"5"]


@played()
async def test_receiving_waits_and_ends_with_the_consumer(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    arrived: list[bytes] = []
    consumer.on_arrival = lambda message: arrived.append(message.payload)
    waiting = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(1)
    await producer.send(b"x")
    assert (await waiting).payload == b"x"
    assert arrived == [b"x"]
    waiting = asyncio.ensure_future(consumer.receive())
    await consumer.close()
    with pytest.raises(ConnectionLostError, match="the consumer is closed"):
        await waiting


@played()
async def test_acknowledging_giving_back_and_moving(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    receipts = [await producer.send(b"%d" % number) for number in range(4)]
    taken = [await consumer.receive() for _ in range(4)]
    assert [message.position for message in taken] == receipts
    await consumer.ack(receipts[0])
    consumer.ack_nowait(receipts[1])
    consumer.redeliver([receipts[2]])
    again = await consumer.receive()
    assert (again.position, again.redelivery_count) == (receipts[2], 1)
    assert await consumer.last_message_id() == receipts[3]
    await consumer.seek(position=EARLIEST)
    assert not consumer.is_open
    consumer = await client.subscribe(TOPIC, "s")
    assert (await consumer.receive()).position == receipts[0]
    await consumer.ack_through(receipts[2])
    await consumer.unsubscribe()
    assert "s" not in world.broker.engine.topics[TOPIC].subscriptions


@played()
async def test_a_failover_consumer_is_reported_whose_turn_it_is(world: World) -> None:
    client = await world.connect()
    kind = SubscriptionType.FAILOVER
    first = await client.subscribe(TOPIC, "s", kind=kind, name="a", priority_level=0)
    second = await client.subscribe(TOPIC, "s", kind=kind, name="b", priority_level=1)
    await asyncio.sleep(0.1)
    assert first.active_changes[-1] is True
    assert second.active_changes == [False]
    await first.close()
    await asyncio.sleep(0.1)
    assert second.active_changes[-1] is True
