"""An attempt to connect a producer leaves nothing behind, however it ends."""

from __future__ import annotations

import asyncio

import pytest

from headgate.broker.connection.producer_attempt import ProducerAttempt
from headgate.testing import RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import ProducerAccessMode, ServerError
from tests.unit.broker.playing import TOPIC, played

WAIT = ProducerAccessMode.WAIT_FOR_EXCLUSIVE


@played()
async def test_an_attempt_that_waits_is_described_and_then_forgotten(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    waiting = asyncio.create_task(other.producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(1)
    connection = next(c for c in world.broker.connections if c.creating)
    (attempt,) = connection.creating.values()
    assert isinstance(attempt, ProducerAttempt)
    assert attempt.is_wanted
    assert attempt.brought_epoch is None
    described_bytes = connection.held_memory(is_scarce=False)
    assert described_bytes == connection.held_memory(is_scarce=True)
    assert attempt.key in connection.described_bytes
    await first.close()
    await waiting
    assert not connection.creating
    assert not attempt.is_wanted
    attempt.end()  # changes nothing: the producer is connected
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    assert topic.access.holder is attempt.producer


@played()
async def test_a_client_that_closes_while_its_epoch_is_stored(world: World) -> None:
    client = await world.connect()
    await (await client.producer(TOPIC)).close()
    world.lanes[2].freeze()  # that of the metadata
    other = await world.connect()
    other.write(frames.producer(1, 5, TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE_WITH_FENCING))
    await asyncio.sleep(1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    assert topic.access.holder is not None
    with pytest.raises(RefusedError) as refused:
        await client.producer(TOPIC)
    assert refused.value.code == ServerError.PRODUCER_BUSY
    await other.request(lambda i: frames.close_producer(i, 5))
    assert topic.access.is_idle
    world.lanes[2].thaw()
    await asyncio.sleep(1)
    assert not topic.producers
    assert await (await client.producer(TOPIC)).send(b"free again")


@played()
async def test_many_that_wait_end_with_their_connections(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    for number in range(1_500):
        other.write(frames.producer(number, number, TOPIC, access_mode=WAIT))
    await asyncio.sleep(5)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    assert topic.access.waiting_count == 1_500
    assert await (await client.producer(f"{TOPIC}-2")).send(b"others go on")
    other.abort()
    await asyncio.sleep(5)
    assert topic.access.waiting_count == 0
    await first.close()
    assert topic.access.is_idle
