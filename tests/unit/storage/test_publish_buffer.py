"""The publish buffer: bytes in flight count, and half of the limit must be free again."""

from __future__ import annotations

import asyncio

from headgate.base.units import MIB
from headgate.storage.publish_buffer import PublishBuffer
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played(settings={"maxMessagePublishBufferSizeInMB": "1"})
async def test_bytes_in_flight_count(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"x")
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x" * 50_000) for _ in range(60)]
    await asyncio.sleep(1)
    log = world.broker.log
    assert world.broker.committer.in_flight
    assert log.staged_bytes < log.unstored_bytes  # a frozen batch and what is staged behind it
    assert MIB < log.unstored_bytes < MIB + 100_000
    assert world.broker.publish_buffer_full()
    world.lanes[0].thaw()
    await asyncio.gather(*sent)
    assert log.unstored_bytes == 0
    assert not world.broker.publish_buffer_full()


@played()
async def test_a_full_buffer_stays_full_until_half_of_it_is_free(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    limit_bytes = 10_000
    buffer = PublishBuffer(world.broker.log, lambda: limit_bytes)
    assert not buffer.is_full
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x" * 8_000)]
    await asyncio.sleep(0.1)
    assert not buffer.is_full
    limit_bytes = 8_000
    assert buffer.is_full
    limit_bytes = 12_000
    assert buffer.is_full
    limit_bytes = 17_000
    assert not buffer.is_full
    world.lanes[0].thaw()
    await asyncio.gather(*sent)
