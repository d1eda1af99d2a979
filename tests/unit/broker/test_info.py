"""The counters of a broker's connections and lookups."""

from __future__ import annotations

import asyncio

import pytest

from headgate.broker.info import BrokerCounts
from headgate.testing import RefusedError, World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_connections_are_counted_from_their_begin_to_their_end(world: World) -> None:
    counts = world.broker.counts
    clients = [await world.connect() for _ in range(3)]
    world.open_connection()
    assert counts.connections_accepted >= 3
    clients[0].close()
    clients[1].abort()
    await asyncio.sleep(30)  # who says nothing is cut off
    assert counts == BrokerCounts(
        connections_accepted=4,
        connections_established=3,
        connections_failed=1,
        connections_closed=3,
    )
    assert counts.connections_accepted - counts.connections_closed == len(world.broker.connections)


@played()
async def test_lookups_are_counted_by_their_answer(world: World) -> None:
    client = await world.connect()
    for _ in range(3):
        await client.lookup(TOPIC)
    for refused in ("persistent://public/nowhere/t", "no-domain://public/default/t"):
        with pytest.raises(RefusedError):
            await client.lookup(refused)
    assert (world.broker.counts.lookups_answered, world.broker.counts.lookups_failed) == (3, 2)
