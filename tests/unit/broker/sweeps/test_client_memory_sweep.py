"""The sweep measures in slices of the work budget."""

from __future__ import annotations

import asyncio

from headgate.broker.client_memory import PERIOD_S
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_connections_are_measured_every_second(world: World) -> None:
    memory = world.broker.client_memory
    client = await world.connect()
    await client.producer(TOPIC)
    await asyncio.sleep(2 * PERIOD_S)
    held = memory.held
    assert held.connections
    assert held.descriptions
    client.abort()
    await asyncio.sleep(2 * PERIOD_S)
    assert memory.held.total == 0
