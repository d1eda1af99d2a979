"""The publish buffer: bytes in flight count, and half of the limit must be free again."""

from __future__ import annotations

import asyncio
import struct

from headgate.base.positions import Position
from headgate.base.units import MIB
from headgate.storage.publish_buffer import RECORD_MEMORY_BYTES, PublishBuffer
from headgate.testing import World
from headgate.testing.client import SimClient
from headgate.wire import client as frames
from headgate.wire.codes import CommandType
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


LARGE = 400_000
SMALL = 20_000


async def send_once(world: World, size_bytes: int) -> tuple[SimClient, asyncio.Future[Position]]:
    """A client with a producer, which has sent one message and has no receipt."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    sent = producer.send_nowait(b"x" * size_bytes)
    await asyncio.sleep(0.1)
    return client, sent


@played(settings={"maxMessagePublishBufferSizeInMB": "1"})
async def test_clients_that_come_and_send_once_do_not_pass_the_limit(world: World) -> None:
    """Each of them added a message, also if it left: its bytes then belonged to nobody."""
    await (await send_once(world, 1))[1]
    world.lanes[0].freeze()
    for leaves in (True, False):
        clients = [await send_once(world, LARGE) for _ in range(10)]
        assert world.broker.log.unstored_bytes <= MIB + LARGE + 1_000
        for client, _ in clients:
            if leaves:
                client.abort()
    others, sent = await send_once(world, 1)
    assert others.is_open
    held = [client for client, waiting in clients if not waiting.done()]
    measured = [each.held_memory(is_scarce=True) for each in world.broker.connections]
    assert sum(each.received > LARGE // 2 for each in measured) == len(held) == 10
    world.lanes[0].thaw()
    await asyncio.gather(sent, *(waiting for _, waiting in clients))
    assert world.broker.engine.topics[TOPIC].log.end == 1 + 3 + 10 + 1
    assert world.broker.log.unstored_bytes == 0


@played(settings={"maxMessagePublishBufferSizeInMB": "1"})
async def test_small_ones_are_held_later(world: World) -> None:
    world.lanes[0].freeze()
    for _ in range(4):
        await send_once(world, LARGE)
    others = await world.connect()
    for _ in range(150):
        (await send_once(world, SMALL))[0].abort()
    assert 2 * MIB < world.broker.log.unstored_bytes < 3 * MIB + 2 * SMALL
    producer = await others.producer(TOPIC)
    assert await others.lookup(TOPIC)  # a producer that sends nothing is not held
    sent = producer.send_nowait(b"x")
    await asyncio.sleep(1)
    assert not sent.done()
    world.lanes[0].thaw()
    await sent


@played(settings={"maxMessagePublishBufferSizeInMB": "1"})
async def test_a_send_that_names_another_type_first_does_not_pass(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.lanes[0].freeze()
    for _ in range(4):
        await send_once(world, LARGE)
    before = world.broker.log.unstored_bytes
    producer.sequence_id = 0
    frame = frames.send(producer.producer_id, 0, producer.entry(b"x"))
    total, command = struct.unpack_from(">II", frame)
    type_first = bytes((0x08, CommandType.PING))
    client.write(struct.pack(">II", total + 2, command + 2) + type_first + frame[8:])
    await asyncio.wait_for(client.lost, 1)
    assert world.broker.log.unstored_bytes == before


@played(settings={"maxMessagePublishBufferSizeInMB": "1"})
async def test_very_many_empty_ones_count_with_their_memory(world: World) -> None:
    """One has 48 bytes in the log, and took 430 of memory."""
    await (await send_once(world, 1))[1]
    world.lanes[0].freeze()
    await send_once(world, 1)
    empty = struct.pack(">I", 0)
    for leaves in (True, False):
        for _ in range(10):
            client = await world.connect()
            own = (await client.producer(TOPIC)).producer_id
            client.write(b"".join(frames.send(own, number, empty) for number in range(1_000)))
            await asyncio.sleep(0.1)
            if leaves:
                client.abort()
    log = world.broker.log
    assert log.unstored_bytes < MIB
    assert 2 * MIB < RECORD_MEMORY_BYTES * log.staged_records < 3.2 * MIB
    world.lanes[0].thaw()
    await asyncio.sleep(5)
    assert world.broker.engine.topics[TOPIC].log.end > 10_000
    assert not world.broker.publish_buffer_full()
