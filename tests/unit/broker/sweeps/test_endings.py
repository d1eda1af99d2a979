"""The sweeps that end something run, each at its interval."""

from __future__ import annotations

import asyncio

from headgate.broker.sweeps.endings import Endings
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_a_broker_has_them(world: World) -> None:
    endings = world.broker.endings
    assert isinstance(endings, Endings)
    client = await world.connect()
    await (await client.producer(TOPIC)).close()
    await asyncio.sleep(130)
    assert world.broker.catalog.topic(TOPIC) is None
    assert world.broker.internal_errors() == []
