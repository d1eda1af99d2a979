"""A long command delays other clients by a moment at most, before CONNECT and after."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from headgate.base.names import NAME_CHARACTERS_MAX
from headgate.base.units import KIB, MIB
from headgate.testing import RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import AckType, CommandType, ServerError, SubscriptionType
from headgate.wire.frame import encode_frame
from headgate.wire.limits import CONNECT_BYTES_MAX
from headgate.wire.messages import BaseCommand
from headgate.wire.peer import CLIENT_VERSION_CHARACTERS_MAX
from tests.unit.broker.playing import TOPIC, played

LIMIT = 256 * KIB
HELD_S_MAX = 0.3
"""Of real time, on a busy machine: in a fraction of it the broker is done with such a frame."""


def producer(request_id: int, properties: int = 0, *, schema_bytes: int = 0) -> bytes:
    """A PRODUCER of empty properties and of a schema."""
    command = BaseCommand(type=CommandType.PRODUCER)
    asked = command.producer
    asked.request_id = asked.producer_id = request_id
    asked.topic = TOPIC
    for _ in range(properties):
        asked.metadata.add(key="", value="")
    if schema_bytes:
        asked.schema.name, asked.schema.type = "", 0
        asked.schema.schema_data = b"x" * schema_bytes
    return encode_frame(command)


FIVE_MIB_OF_PROPERTIES = producer(900, 5 * MIB // 6)


@played()
async def test_megabytes_of_properties_before_connect(world: World) -> None:
    client = world.open_connection()
    begun_s = time.thread_time()
    client.write(FIVE_MIB_OF_PROPERTIES)
    await client.lost
    assert time.thread_time() - begun_s < HELD_S_MAX


@played()
async def test_megabytes_of_properties_are_refused(world: World) -> None:
    client = await world.connect()
    begun_s = time.thread_time()
    client.write(FIVE_MIB_OF_PROPERTIES)
    assert await client.partitions(TOPIC) == 0
    (refused,) = client.unexpected
    assert refused.error.request_id == 900
    assert refused.error.error == ServerError.NOT_ALLOWED_ERROR
    assert f"headgateMaxCommandBytes={LIMIT}" in refused.error.message
    assert time.thread_time() - begun_s < 2 * HELD_S_MAX  # most of it is the client's


@played()
async def test_megabytes_of_empty_ids(world: World) -> None:
    """The parser would take a gigabyte and name each missing number in its error."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    inner = b"\x08" + bytes((consumer.consumer_id,)) + b"\x10\x00" + b"\x1a\x00" * (5 * MIB // 2)
    command = b"\x08\x0a\x52" + _varint(len(inner)) + inner
    begun_s = time.thread_time()
    client.write((len(command) + 4).to_bytes(4) + len(command).to_bytes(4) + command)
    await client.lost
    assert time.thread_time() - begun_s < HELD_S_MAX


def _varint(value: int) -> bytes:
    encoded = b""
    while value > 127:
        encoded += bytes((value & 127 | 128,))
        value >>= 7
    return encoded + bytes((value,))


@played()
async def test_the_first_frame_is_short(world: World) -> None:
    command = BaseCommand(type=CommandType.CONNECT)
    command.connect.client_version = "v"
    command.connect.auth_data = b"x" * (CONNECT_BYTES_MAX - 100)
    client = world.open_connection()
    client.write(encode_frame(command))
    await asyncio.sleep(0.1)
    assert client.is_open
    command.connect.auth_data += b"x" * 100
    client = world.open_connection()
    client.write(encode_frame(command)[:20])
    await asyncio.sleep(0.1)
    assert not client.is_open


def too_much(world_settings: dict[str, str], schema_bytes: int) -> bool:
    """Whether a PRODUCER with a schema of so many bytes is refused."""
    refused: list[bool] = []

    async def story(world: World) -> None:
        client = await world.connect()
        try:
            await client.request(lambda i: producer(i, schema_bytes=schema_bytes))
            refused.append(False)
        except RefusedError as error:  # a definition as long as that is refused otherwise
            refused.append(error.code != ServerError.INCOMPATIBLE_SCHEMA)
        assert client.is_open

    played(settings=world_settings)(story)()
    return refused[0]


def test_the_setting_says_how_long() -> None:
    assert not too_much({}, LIMIT - 100)
    assert too_much({}, LIMIT)
    assert not too_much({"headgateMaxCommandBytes": "1000000"}, LIMIT)
    assert not too_much({"headgateMaxCommandBytes": "100000"}, 90_000)
    assert too_much({"headgateMaxCommandBytes": "100000"}, 100_000)


def test_a_refused_command_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert too_much({}, LIMIT)
    (line,) = [line for line in caplog.messages if "headgateMaxCommandBytes" in line]
    assert "PRODUCER refused: PRODUCER of 262" in line


@played()
async def test_a_thousand_properties_are_allowed(world: World) -> None:
    client = await world.connect()
    await client.request(lambda i: producer(i, 990))
    with pytest.raises(RefusedError, match="more than 1000 parts"):
        await client.request(lambda i: producer(i, 1_100))
    assert client.is_open


@played()
async def test_a_long_redelivery_gives_each_back_once(world: World) -> None:
    client = await world.connect()
    sender = await client.producer(TOPIC)
    shared = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    alone = await client.subscribe(TOPIC, "alone")
    position = await sender.send(b"x")
    await shared.receive()
    await alone.receive()
    for consumer in (shared, alone):
        nowhere = [position._replace(entry_id=1 << 40)] * 40_000
        client.write(frames.redeliver(consumer.consumer_id, [*nowhere, position]))
        assert (await consumer.receive()).redelivery_count == (consumer is shared)
        await asyncio.sleep(0.1)
        assert not consumer.queue


@played()
async def test_a_long_cumulative_ack(world: World) -> None:
    """Cut into pieces, one of its ids alone would be taken at its word."""
    client = await world.connect()
    sender = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    position = await sender.send(b"x")
    client.write(frames.ack(consumer.consumer_id, [position] * 60_000, AckType.CUMULATIVE))
    await client.lost
    assert world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries == 1


@pytest.mark.parametrize("name", ["x" * (NAME_CHARACTERS_MAX + 1), "two\nlines", "\x00"])
def test_names_of_producers_and_consumers(name: str) -> None:
    @played()
    async def story(world: World) -> None:
        client = await world.connect()
        with pytest.raises(RefusedError, match="Invalid producer name"):
            await client.producer(TOPIC, name=name)
        with pytest.raises(RefusedError, match="Invalid consumer name"):
            await client.subscribe(TOPIC, "s", name=name)
        await client.producer(TOPIC, name="with spaces \N{SNOWMAN}\u3000")

    story()


@played()
async def test_what_a_client_calls_itself_is_cut(world: World) -> None:
    client = world.open_connection()
    client.write(frames.connect(client_version="v" * 10_000))
    await asyncio.sleep(0.1)
    (server,) = world.broker.connections
    assert server.peer is not None
    assert server.peer.client_version == "v" * CLIENT_VERSION_CHARACTERS_MAX
