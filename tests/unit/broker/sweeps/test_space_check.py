"""The hourly check of the counts of live bytes."""

from __future__ import annotations

import asyncio

from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played(limit_s=8_000)
async def test_a_count_that_is_too_low_is_raised_within_the_hour(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s", queue_size=0)
    producer = await client.producer(TOPIC)
    await producer.send(b"x" * 100)
    world.crash()
    broker = await world.start()
    state = broker.log._state
    (info,) = state.segments.values()
    assert info.sealed
    state.born(info, -5)
    await asyncio.sleep(3_700)
    assert broker.space_check.wrong_count == 1
    assert (
        info.live_bytes
        == state.space.live_bytes
        == broker.engine.topics[TOPIC].log.live_bytes(0, 1)
    )  # type: ignore[attr-defined]
    await asyncio.sleep(3_700)
    assert broker.space_check.wrong_count == 1
