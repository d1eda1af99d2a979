"""Well-formed commands with any content in any order harm no other client."""

from __future__ import annotations

import asyncio
import random

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from headgate.base.units import NS_PER_MS
from headgate.testing import World
from headgate.wire.client import connect
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.entry import build_entry
from headgate.wire.frame import FIELD_OF_TYPE, encode_frame, encode_frame_head
from headgate.wire.messages import BaseCommand, MessageMetadata
from tests.unit.broker.playing import TOPIC, played

TEXTS = (
    f"{TOPIC}-a", f"{TOPIC}-b", f"{TOPIC}-b-partition-0", "public/default", "s", "r", "", "a b",
    "non-persistent://public/default/x", "persistent://nobody/here/x", "\N{SNOWMAN}" * 50,
)  # fmt: skip
NUMBERS = (0, 1, 1, 1, 2, 2, 3, 5, 100, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)
_32_BITS = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32)
_SIGNED = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)


def value_of(field: FieldDescriptor, chance: random.Random) -> object:
    """Any value that the field can hold."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        return chance.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice(TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.randbytes(chance.randrange(5))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    number = chance.choice(NUMBERS)
    bits = (32 if field.type in _32_BITS else 64) - (field.type in _SIGNED)
    number &= (1 << bits) - 1
    return -number if field.type in _SIGNED and chance.random() < 0.2 else number


def fill(message: Message, chance: random.Random, depth: int = 0) -> None:
    """Fill in what is required and some of the rest."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and chance.random() < 0.5:
            continue
        if field.is_repeated:
            values = getattr(message, field.name)
            for _ in range(chance.randrange(4)):
                if field.type == FieldDescriptor.TYPE_MESSAGE:
                    fill(values.add(), chance, depth + 1)
                else:
                    values.append(value_of(field, chance))
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            if depth < 3 or field.is_required:
                getattr(message, field.name).SetInParent()
                fill(getattr(message, field.name), chance, depth + 1)
        else:
            setattr(message, field.name, value_of(field, chance))


def any_frame(chance: random.Random, kinds: list[int]) -> bytes:
    """A command of any kind; a SEND carries an entry."""
    kind = chance.choice(kinds)
    command = BaseCommand(type=kind)
    inner = getattr(command, FIELD_OF_TYPE[kind])
    inner.SetInParent()
    fill(inner, chance)
    if kind != CommandType.SEND:
        return encode_frame(command)
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    entry = build_entry(metadata, chance.randbytes(chance.randrange(50)))
    return encode_frame_head(command, len(entry)) + entry


HARMLESS = [
    kind for kind, facts in COMMANDS.items()
    if facts.built and kind not in (CommandType.CONNECT, CommandType.SEND, CommandType.FLOW)
]  # fmt: skip
"""Commands that do not end a connection, whatever is in them."""


@pytest.mark.parametrize("seed", range(4))
def test_any_commands_in_any_order(seed: int) -> None:
    async def story(world: World) -> None:
        chance = random.Random(seed)
        if seed % 2:  # commands of one connection overlap
            for lane in world.lanes:
                lane.latency_ns_max = 30 * NS_PER_MS
        client = await world.connect()
        producer = await client.producer(TOPIC)
        consumer = await client.subscribe(TOPIC, "s")
        for round_number in range(40):
            wild = world.open_connection()
            wild.data_received = lambda _: None  # type: ignore[method-assign]
            wild.write(connect())
            kinds = HARMLESS if round_number % 2 else list(COMMANDS)
            for _ in range(40):
                if not wild.is_open:
                    break
                wild.write(any_frame(chance, kinds))
                await asyncio.sleep(chance.choice((0, 0, 0.002)))
            wild.abort()
            position = await producer.send(b"fine")
            assert (await consumer.receive()).position == position
            await consumer.ack(position)
        await asyncio.sleep(70)  # a reader may take a minute to come back from its seek
        assert len(world.broker.connections) == 1
        assert world.broker.catalog.in_flight_count == 0
        for topic in world.broker.engine.topics.values():
            if topic.name.full != TOPIC:
                assert not topic.producers
                assert not any(held.consumers for held in topic.subscriptions.values())
                assert all(held.is_durable for held in topic.subscriptions.values())
        world.crash()
        await world.start()

    played()(story)()
