"""The client of the kit against a whole broker."""

from __future__ import annotations

import asyncio

import pytest

from headgate.testing import ConnectionLostError, RefusedError, World
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_it_is_welcomed_and_asks(world: World) -> None:
    client = await world.connect()
    assert client.connected is not None
    assert await client.partitions(TOPIC) == 0
    assert await client.lookup(TOPIC) == "pulsar://127.0.0.1:6650"
    await client.producer(TOPIC)
    assert await client.topics("public/default") == [TOPIC]
    assert not client.unexpected


@played()
async def test_a_refusal_is_an_error_with_the_brokers_code(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.producer("persistent://no/such/namespace-at-all")
    assert refusal.value.code == ServerError.TOPIC_NOT_FOUND
    await client.producer(TOPIC, name="p")
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC, name="p")
    assert refusal.value.code == ServerError.PRODUCER_BUSY


@played()
async def test_whatever_waits_learns_that_the_connection_ended(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    waiting = [
        asyncio.ensure_future(consumer.receive()),
        asyncio.ensure_future(client.lookup(TOPIC)),
        producer.send_nowait(b"on its way"),
    ]
    await asyncio.sleep(0)
    client.abort()
    await client.lost
    for future in waiting:
        with pytest.raises(ConnectionLostError):
            await future
    with pytest.raises(ConnectionLostError):
        client.write(b"")
    assert not client.is_open


@played(settings={"keepAliveIntervalSeconds": "2"})
async def test_pings_are_answered_unless_it_plays_dead(world: World) -> None:
    alive, dead = await world.connect(), await world.connect()
    dead.answers_pings = False
    await asyncio.sleep(30)
    assert alive.is_open
    assert not dead.is_open


@played()
async def test_what_nobody_asked_for_is_kept(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    receipt = producer.send_nowait(b"forgotten")
    client.forget_producer(producer.producer_id)
    await asyncio.sleep(1)
    assert not receipt.done()
    assert len(client.unexpected) == 1
