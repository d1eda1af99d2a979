"""Long commands count as the work of parsing them, whatever they are."""

from __future__ import annotations

import asyncio

from headgate.base.units import KIB
from headgate.base.work_units import COLD_BYTES_PER_UNIT, HOT_BYTES_PER_UNIT
from headgate.broker.connection.connection import Connection
from headgate.testing import SimClient, World
from headgate.wire.entry import build_entry
from headgate.wire.frame import encode_frame_head, frame_of
from headgate.wire.limits import PARTS_MAX
from headgate.wire.messages import BaseCommand, MessageMetadata
from headgate.wire.varint import varint
from tests.unit.broker.connection.test_connection_turns import server_side
from tests.unit.broker.playing import TOPIC, played

LONG_BYTES = 60 * KIB
UNKNOWN = varint(99 << 3 | 2)
"""The tag of a field that no command has: what is in it costs as much as if it were known."""


ENTRY = build_entry(MessageMetadata(producer_name="p", sequence_id=0, publish_time=1), b"x")


async def units_of(connection: Connection, encoded: bytes) -> int:
    return await units_of_frame(connection, frame_of(encoded))


async def units_of_frame(connection: Connection, data: bytes) -> int:
    """The work units that a frame counts when its last byte arrives."""
    await asyncio.sleep(0.1)
    budget = connection._budget
    connection._decoder.feed(data[:-1])
    budget.renew()
    before = budget.left
    connection.get_buffer(1)[:1] = data[-1:]
    connection.buffer_updated(1)
    return before - budget.left


async def connected(world: World) -> tuple[SimClient, Connection]:
    client = await world.connect()
    return client, server_side(world, client)


@played()
async def test_long_commands_that_ask_for_little_count_as_their_bytes(world: World) -> None:
    """200 connections with a PING of 256 KiB each were one step of two seconds."""
    client, connection = await connected(world)
    consumer = await client.subscribe(TOPIC, "s")
    ping, pong, flow = BaseCommand(type="PING"), BaseCommand(type="PONG"), BaseCommand(type="FLOW")
    ping.ping.SetInParent()
    pong.pong.SetInParent()
    flow.flow.consumer_id, flow.flow.messagePermits = consumer.consumer_id, 1
    for command in (ping, pong, flow):
        encoded = command.SerializeToString()
        long = encoded + UNKNOWN + varint(LONG_BYTES) + bytes(LONG_BYTES)
        assert await units_of(connection, encoded) < 4
        assert await units_of(connection, long) >= LONG_BYTES // HOT_BYTES_PER_UNIT
    assert connection.is_open


@played()
async def test_a_long_send_counts_as_its_bytes_beside_its_message(world: World) -> None:
    client, connection = await connected(world)
    producer = await client.producer(TOPIC)
    send = BaseCommand(type="SEND")
    send.send.producer_id, send.send.sequence_id = producer.producer_id, 0
    for more_bytes in (0, LONG_BYTES):
        send.MergeFromString(UNKNOWN + varint(more_bytes) + bytes(more_bytes))
        data = encode_frame_head(send, len(ENTRY)) + ENTRY
        units = await units_of_frame(connection, data)
        assert more_bytes // HOT_BYTES_PER_UNIT <= units < more_bytes // HOT_BYTES_PER_UNIT + 8
        send.send.sequence_id += 1
    assert connection.is_open


@played()
async def test_what_is_no_command_counts_as_its_bytes(world: World) -> None:
    """It ends its connection, which was one unit, also before a client has shown who it is."""
    _, connection = await connected(world)
    ack_without_fields = varint(10 << 3 | 2) + b"\0"
    ping = BaseCommand(type="PING")
    ping.ping.SetInParent()
    encoded = ping.SerializeToString() + ack_without_fields * (LONG_BYTES // 2)
    assert await units_of(connection, encoded) >= LONG_BYTES // COLD_BYTES_PER_UNIT
    assert not connection.is_open


@played()
async def test_a_command_of_too_many_parts_counts_as_its_bytes(world: World) -> None:
    _, connection = await connected(world)
    command = BaseCommand(type="PRODUCER")
    command.producer.topic, command.producer.producer_id, command.producer.request_id = TOPIC, 1, 1
    for n in range(2 * PARTS_MAX):
        command.producer.metadata.add(key=str(n), value="x" * 20)
    encoded = command.SerializeToString()
    assert await units_of(connection, encoded) >= len(encoded) // COLD_BYTES_PER_UNIT
    assert connection.is_open


@played()
async def test_a_command_that_is_too_long_counts_as_what_is_parsed_to_refuse_it(
    world: World,
) -> None:
    """Its first 32 fields of up to 1 KiB."""
    _, connection = await connected(world)
    fields = (varint(7 << 3 | 2) + varint(1000) + bytes([5 << 3 | 2, 0]) * 500) * 32
    rest = varint(1 << 3 | 2) + varint(300 * KIB) + bytes(300 * KIB)
    command = fields + rest
    encoded = bytes([1 << 3, 5]) + varint(5 << 3 | 2) + varint(len(command)) + command
    assert await units_of(connection, encoded) >= 32 * KIB // COLD_BYTES_PER_UNIT
