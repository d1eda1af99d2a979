"""Consumers that come while their topic is being closed."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import RefusedError, World
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_nobody_joins_a_subscription_whose_topic_is_unloaded(world: World) -> None:
    """It would stay with what is forgotten, and acknowledge behind the back of its successor."""
    client = await world.connect()
    await (await client.subscribe(TOPIC, "s")).close()
    producer = await client.producer(TOPIC)
    commits = world.lanes[0]
    commits.freeze()
    producer.send_nowait(b"kept waiting")
    await asyncio.sleep(0.01)
    facade = AdminFacade(world.broker, world.observer)
    unloading = asyncio.create_task(world.ask(facade.unload_topic(parse_topic(TOPIC))))
    await asyncio.sleep(0.01)
    with pytest.raises(RefusedError) as refusal:
        await client.subscribe(TOPIC, "s")
    assert refusal.value.code == ServerError.SERVICE_NOT_READY
    commits.thaw()
    await unloading
    await client.subscribe(TOPIC, "s")
    assert len(world.broker.engine.topics[TOPIC].subscriptions["s"].consumers) == 1
