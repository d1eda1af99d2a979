"""Frames that are damaged, cut, repeated, lengthened and lied about: a client that sends them harms
only itself, in bounded time, memory and lines of the log.

Everything follows from the seed: what failed once fails again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable

import pytest

from headgate.base.positions import Position
from headgate.base.units import KIB, MIB
from headgate.broker.connection.bounds import UNREAD_BYTES_MAX
from headgate.testing import NetworkProfile, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, SubscriptionType
from headgate.wire.commands import COMMANDS
from headgate.wire.entry import build_entry
from headgate.wire.messages import MessageMetadata
from tests.unit.broker.connection.test_connection_fuzz import any_frame
from tests.unit.broker.playing import TOPIC, played

MESSAGE_MAX = 200 * KIB
SETTINGS = {
    "maxMessageSize": str(MESSAGE_MAX),
    "headgateMaxCommandBytes": str(64 * KIB),
    "brokerDeleteInactiveTopicsEnabled": "false",
}
"""Small bounds, so that seconds of bytes pass them often."""

CLIENTS = 25
FRAMES = 12
HELD_S_MAX = 0.5
"""Of processor time for one client's frames, megabytes at most, on a busy machine."""
LINE_CHARACTERS_MAX = 1_000
LINES_MAX = 12
"""Of one client in the log."""

Mutation = Callable[[bytearray, random.Random], None]


def flip_bits(frame: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 5)):
        frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)


def cut(frame: bytearray, chance: random.Random) -> None:
    del frame[chance.randrange(len(frame)) :]


def drop_middle(frame: bytearray, chance: random.Random) -> None:
    """The lengths in front stay as they are."""
    start = chance.randrange(len(frame))
    del frame[start : start + chance.randrange(1, 20)]


def insert(frame: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(frame) + 1)
    frame[at:at] = chance.randbytes(chance.randrange(1, 40))


def repeat(frame: bytearray, chance: random.Random) -> None:
    """Some of its end again and again, and the lengths say so: fields with very many values."""
    size = chance.randrange(1, 20)
    tail = bytes(frame[-size:])
    frame += tail * (chance.choice((100, 5_000, 150_000)) // size)
    fix_lengths(frame)


def repeat_empties(frame: bytearray, chance: random.Random) -> None:
    """Empty messages or texts in a field, as many as there is room for."""
    frame += bytes((chance.randrange(1, 16) << 3 | 2, 0)) * (chance.choice((500, 30_000, 90_000)))
    fix_lengths(frame)


def lie(frame: bytearray, chance: random.Random) -> None:
    """About one of the two lengths."""
    at = chance.choice((0, 4))
    frame[at : at + 4] = chance.choice(
        (0, 1, 4, 5, 7, 0xFFFF, 150_000, MESSAGE_MAX, MESSAGE_MAX + 10 * KIB, 0x7FFFFFFF)
    ).to_bytes(4)


def add_body(frame: bytearray, chance: random.Random) -> None:
    frame += chance.randbytes(chance.choice((8, 50, 100_000)))
    frame[:4] = (len(frame) - 4).to_bytes(4)


def change_type(frame: bytearray, chance: random.Random) -> None:
    if len(frame) > 9:
        frame[9] = chance.randrange(1, 128)


def fix_lengths(frame: bytearray) -> None:
    """So that the frame is a command and nothing else, whose own message is as long as it can be
    said in the place that is there."""
    if len(frame) < 16:
        return
    frame[:4] = (len(frame) - 4).to_bytes(4)
    frame[4:8] = (len(frame) - 8).to_bytes(4)
    tag_bytes = 1 if len(frame) < 11 or frame[10] < 0x80 else 2
    at = 10 + tag_bytes
    end = at
    while end < len(frame) and frame[end] >= 0x80:
        end += 1
    size, encoded = max(len(frame) - end - 1, 0), bytearray()
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    encoded.append(size)
    frame[at : end + 1] = encoded
    frame[:4] = (len(frame) - 4).to_bytes(4)
    frame[4:8] = (len(frame) - 8).to_bytes(4)


MUTATIONS: list[Mutation] = [
    flip_bits, cut, drop_middle, insert, repeat, repeat_empties, lie, add_body, change_type,
]  # fmt: skip


def seeds_of_frames(chance: random.Random) -> list[bytes]:
    """Good frames, which mean something to a broker with a consumer 1 and a producer 1."""
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    ids = [Position(chance.randrange(3), chance.randrange(50)) for _ in range(9_000)]
    topic = f"{TOPIC}-mutant"
    return [
        frames.send(1, chance.randrange(5), build_entry(metadata, b"x" * 100)),
        frames.ack(1, ids[:3], request_id=7),
        frames.ack(1, ids, request_id=8),
        frames.redeliver(1, ids[:2]),
        frames.redeliver(1, ids),
        frames.flow(1, 10),
        frames.lookup(9, topic),
        frames.partitioned_metadata(10, topic),
        frames.get_topics_of_namespace(11, "public/default"),
        frames.producer(12, 2, topic, name="q"),
        frames.subscribe(13, 2, topic, "t", consumer_name="c", properties={"a": "b"}),
        frames.seek(14, 1, position=Position(1, 1)),
        frames.unsubscribe(15, 2),
        frames.get_last_message_id(16, 1),
        frames.close_consumer(17, 2),
        frames.close_producer(18, 2),
        frames.ping(),
    ]


def mutants(chance: random.Random) -> bytes:
    """What one bad client sends."""
    good, sent = seeds_of_frames(chance), bytearray()
    for _ in range(FRAMES):
        if chance.random() < 0.2:
            frame = bytearray(any_frame(chance, list(COMMANDS)))
        else:
            frame = bytearray(chance.choice(good))
        for _ in range(chance.choice((0, 1, 1, 2))):
            if frame:
                chance.choice(MUTATIONS)(frame, chance)
        sent += frame
    return bytes(sent)


async def check_neighbour(producer: object, consumer: object) -> None:
    """A message still makes its way."""
    position = await producer.send(b"fine")  # type: ignore[attr-defined]
    message = await asyncio.wait_for(consumer.receive(), 60)  # type: ignore[attr-defined]
    assert message.position == position
    await consumer.ack(position)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(6))
def test_mutants(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    network = NetworkProfile(piece_bytes_max=chunk) if (chunk := (0, 1_000)[seed % 2]) else None

    async def story(world: World) -> None:
        chance = random.Random(seed)
        client = await world.connect()
        producer = await client.producer(TOPIC)
        consumer = await client.subscribe(TOPIC, "s")
        await check_neighbour(producer, consumer)
        for number in range(CLIENTS):
            bad = world.open_connection()
            bad.data_received = lambda _: None  # type: ignore[method-assign]
            if chance.random() < 0.8:
                bad.write(frames.connect())
                bad.write(frames.producer(1, 1, f"{TOPIC}-mutant", name=f"p{number}"))
                bad.write(
                    frames.subscribe(2, 1, f"{TOPIC}-mutant", "s", kind=SubscriptionType.SHARED)
                )
                await asyncio.sleep(0.2)
            sent = mutants(chance)
            caplog.clear()
            begun_s = time.thread_time()
            if bad.is_open:
                bad.write(sent)
            await asyncio.sleep(0.5)
            assert time.thread_time() - begun_s < HELD_S_MAX + len(sent) / MIB, number
            for connection in world.broker.connections:
                held = connection._decoder.statistics()
                assert held.buffer_bytes < 2 * MESSAGE_MAX
                assert connection.unsent_bytes() < UNREAD_BYTES_MAX + MIB
            lines = [record.getMessage() for record in caplog.records]
            assert len(lines) <= LINES_MAX
            assert all(len(line) < LINE_CHARACTERS_MAX for line in lines)
            await check_neighbour(producer, consumer)
            bad.abort()
        await asyncio.sleep(70)  # a reader may take a minute to come back from its seek
        assert client.is_open
        assert len(world.broker.connections) == 1
        assert world.broker.catalog.in_flight_count == 0
        for topic in world.broker.engine.topics.values():
            if topic.name.full != TOPIC:
                assert not topic.producers
                assert not any(held.consumers for held in topic.subscriptions.values())
        world.crash()
        await world.start()

    with caplog.at_level(logging.INFO, logger="headgate"):
        played(settings=SETTINGS, **({"network": network} if network else {}))(story)()


def test_mutations_reach_the_long_commands() -> None:
    """Bounds are passed in earnest, else the test above says little."""
    chance = random.Random(1)
    sizes = [len(mutants(chance)) for _ in range(30)]
    assert max(sizes) > 300 * KIB
    frame = bytearray(frames.ack(1, [Position(1, 1)]))
    for _ in range(40):
        frame += b"\x1a\x04\x08\x01\x10\x01" * 400
    fix_lengths(frame)
    assert frame[9] == CommandType.ACK
    assert len(frame) > 64 * KIB
