"""Acknowledgements count although their client has left before their index was read."""

from __future__ import annotations

import asyncio

from headgate.broker.connection.left_acknowledgements import (
    LEFT_BYTES_MAX,
    STOP_TIMEOUT_S,
    LeftAcknowledgements,
)
from headgate.testing import World
from tests.unit.broker.commands.test_acknowledging import COLD, backlog
from tests.unit.broker.playing import TOPIC, played

ENTRIES = 600


async def acknowledged_and_left(world: World) -> None:
    """A client acknowledges entries whose index is on the disk, and closes its connection."""
    client, other = await world.connect(), await world.connect()
    producer = await other.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    positions = [await producer.send(b"x" * 100) for _ in range(ENTRIES)]
    await asyncio.sleep(20)
    assert world.broker.engine.topics[TOPIC].log.memory_first >= 100
    for lane in world.lanes:
        lane.freeze()
    consumer.ack_nowait(*positions[:10])
    consumer.ack_through_nowait(positions[49])
    await asyncio.sleep(0.5)
    client.close()
    await asyncio.sleep(0.5)
    assert backlog(world) == ENTRIES


@played(ledger=COLD)
async def test_they_are_carried_out_when_the_index_is_read(world: World) -> None:
    """They ended with the connection: a client that acknowledged and closed got all again."""
    await acknowledged_and_left(world)
    for lane in world.lanes:
        lane.thaw()
    await asyncio.sleep(1)
    assert backlog(world) == ENTRIES - 50
    assert world.broker.connections.left_acknowledgements.taken_bytes == 0


@played(ledger=COLD)
async def test_a_stop_waits_for_them(world: World) -> None:
    await acknowledged_and_left(world)
    loop = asyncio.get_running_loop()
    for lane in world.lanes:
        loop.call_later(STOP_TIMEOUT_S / 2, lane.thaw)
    await world.stop()
    await world.start()
    assert backlog(world) == ENTRIES - 50


@played()
async def test_a_stop_waits_for_a_second(world: World) -> None:
    left, loop = LeftAcknowledgements(), world.loop
    never, soon = (loop.create_task(asyncio.sleep(s)) for s in (60, STOP_TIMEOUT_S / 2))
    assert left.keep(never, 100)
    assert left.keep(soon, 100)
    began = loop.time()
    await left.finish()
    assert loop.time() - began <= STOP_TIMEOUT_S * 1.01
    await asyncio.sleep(0.1)
    assert (never.cancelled(), soon.cancelled(), left.taken_bytes) == (True, False, 0)
    await left.finish()


@played()
async def test_they_take_no_more_than_their_room(world: World) -> None:
    left, loop = LeftAcknowledgements(), world.loop
    first, second = (loop.create_task(asyncio.sleep(1)) for _ in range(2))
    assert left.keep(first, LEFT_BYTES_MAX)
    assert not left.keep(second, 1)
    await asyncio.sleep(2)
    assert left.taken_bytes == 0


@played()
async def test_who_has_many_leaves_room_to_others(world: World) -> None:
    """One client with 500 that waited had those of all others end, and their messages again."""
    left, loop = LeftAcknowledgements(), world.loop
    size = LEFT_BYTES_MAX // 16
    many, few = ([loop.create_task(asyncio.sleep(1)) for _ in range(20)] for _ in range(2))
    assert [left.keep(task, size, "role many") for task in many] == [True] * 16 + [False] * 4
    assert [left.keep(task, size, "role few") for task in few[:10]] == [True] * 8 + [False] * 2
    assert left.keep(few[10], size, "role other")
    assert not left.keep(many[16], size, "role many")
    assert left.taken_bytes == LEFT_BYTES_MAX
    await asyncio.sleep(0.1)
    assert sum(task.cancelled() for task in (*many, *few)) == 9
    await asyncio.sleep(2)
    assert left.taken_bytes == 0
