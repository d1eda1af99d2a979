"""CONSUMER_STATS, over the protocol."""

from __future__ import annotations

import asyncio

import pytest

from headgate.testing import RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import ServerError, SubscriptionType
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_the_statistics_of_a_consumer(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(
        TOPIC, "s", kind=SubscriptionType.SHARED, name="me", queue_size=10
    )
    producer = await client.producer(TOPIC)
    for _ in range(3):
        await producer.send(b"x")
    await asyncio.sleep(1)
    answer = await client.request(lambda i: frames.consumer_stats(i, consumer.consumer_id))
    found = answer.consumerStatsResponse
    assert not found.HasField("error_code")
    assert (found.consumerName, found.type) == ("me", "Shared")
    assert (found.availablePermits, found.unackedMessages, found.msgBacklog) == (7, 3, 3)
    assert found.connectedSince.endswith("Z")
    assert found.address.startswith("/")
    assert not found.blockedConsumerOnUnackedMsgs


@played()
async def test_a_consumer_that_is_not_there(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError, match="Consumer 9 not found") as refusal:
        await client.request(lambda i: frames.consumer_stats(i, 9))
    assert refusal.value.code == ServerError.CONSUMER_NOT_FOUND
