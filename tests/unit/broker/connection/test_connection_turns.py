"""A connection with more than a turn of work is read no further until the work is done."""

from __future__ import annotations

import asyncio

from headgate.base.positions import Position
from headgate.base.units import KIB, MIB
from headgate.broker.connection.connection import Connection
from headgate.testing import NetworkProfile, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.playing import TOPIC, played

QUICK = NetworkProfile(0, 0, piece_bytes_max=MIB, window_bytes=16 * MIB)
"""A network that hands over as much as the receiver takes, as a loopback socket does."""

LONG_ACK_IDS = 300_000
"""About as many as a frame holds: 4 MiB."""


def server_side(world: World, client: SimClient) -> Connection:
    """The broker's connection of a client."""
    (found,) = (c for c in world.broker.connections if c._transport is client.transport._peer)  # type: ignore[attr-defined]
    return found


async def write_at_once(world: World, client: SimClient, data: bytes) -> Connection:
    """Have all of ``data`` wait in the broker's socket before it reads any of it."""
    connection = server_side(world, client)
    connection._transport.pause_reading()
    client.write(data)
    await asyncio.sleep(0.1)
    connection._transport.resume_reading()
    return connection


def watch_buffer(world: World, connection: Connection) -> list[int]:
    """The largest receive buffer of a connection at the beginning of any turn, from now on."""
    largest, begin_turn = [0], world.broker.begin_turn

    def looked() -> None:
        largest[0] = max(largest[0], connection._decoder.statistics().buffer_bytes)
        begin_turn()

    world.broker.begin_turn = looked  # type: ignore[method-assign]
    return largest


@played(network=QUICK)
async def test_long_acks_behind_each_other(world: World) -> None:
    """While one is carried out in slices, those behind it wait in the socket."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    nowhere = [Position(1 << 34, 1 << 34)] * LONG_ACK_IDS
    ack = frames.ack(consumer.consumer_id, nowhere)
    assert len(ack) > 4 * MIB
    largest = watch_buffer(world, server_side(world, client))
    await write_at_once(world, client, ack * 3)
    assert await client.partitions(f"{TOPIC}-asked-behind-them") == 0
    assert largest[0] < len(ack) + 128 * KIB


@played(network=QUICK)
async def test_a_flood_of_small_commands(world: World) -> None:
    client = await world.connect()
    largest = watch_buffer(world, server_side(world, client))
    await write_at_once(world, client, frames.ping() * 100_000)
    assert await client.partitions(f"{TOPIC}-asked-behind-them") == 0
    assert len(client.unexpected) == 100_000
    assert largest[0] <= 128 * KIB


@played(network=QUICK, settings={"maxPendingPublishRequestsPerConnection": "50"})
async def test_receipts_do_not_cut_a_long_command_short(world: World) -> None:
    """A commit that ends amid a long command resumes nothing that the command holds back."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    connection = server_side(world, client)
    largest = watch_buffer(world, connection)
    ack = frames.ack(consumer.consumer_id, [Position(1 << 34, 1 << 34)] * LONG_ACK_IDS)
    connection._transport.pause_reading()
    sent = []
    for _ in range(3):
        client.write(ack)
        sent += [producer.send_nowait(b"x" * 1_000) for _ in range(500)]
    await asyncio.sleep(0.1)
    each_slice = world.broker.begin_turn

    def looked() -> None:
        each_slice()
        if connection._unfinished is not None:
            world.broker.commit_ended()

    world.broker.begin_turn = looked  # type: ignore[method-assign]
    connection._transport.resume_reading()
    positions = await asyncio.gather(*sent)
    assert positions == sorted(positions)
    assert largest[0] < len(ack) + 128 * KIB
