"""A bad client harms its own connection only."""

from __future__ import annotations

import asyncio
import random

import pytest

from headgate.base.positions import Position
from headgate.base.units import MIB, NS_PER_MS
from headgate.testing import NetworkProfile, RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError, SubscriptionType
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played


class Neighbour:
    """A well-behaved client that must not notice anything."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def begin(self) -> None:
        """Produce and consume on a connection of its own."""
        self.client = await self.world.connect()
        self.producer = await self.client.producer(TOPIC)
        self.consumer = await self.client.subscribe(TOPIC, "neighbour")

    async def is_well(self) -> None:
        """A message still makes its way."""
        position = await self.producer.send(b"fine")
        message = await self.consumer.receive()
        assert message.position == position
        await self.consumer.ack(position)


async def cut_off(world: World, client: SimClient) -> None:
    """The broker ends this connection soon, and only this one."""
    before_s = world.now_s
    await client.lost
    assert world.now_s - before_s < 1
    assert not client.is_open


@played()
async def test_garbage(world: World) -> None:
    neighbour = Neighbour(world)
    await neighbour.begin()
    chance = random.Random(5)
    for _ in range(40):
        client = world.open_connection()
        client.write(b"\xff" * 4 + chance.randbytes(chance.randrange(1, 300)))
        await cut_off(world, client)
    await neighbour.is_well()


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x08\x00\x00\x00\x09abcdefgh",
        b"\x7f\xff\xff\xff\x00\x00\x00\x04abcd",
    ],
)
def test_what_is_no_frame(start: bytes) -> None:
    async def story(world: World) -> None:
        client = await world.connect()
        client.write(start)
        await cut_off(world, client)

    played()(story)()


@played()
async def test_damaged_frames(world: World) -> None:
    """Bits flipped in whole frames: whatever they come to mean, the neighbour is well."""
    neighbour = Neighbour(world)
    await neighbour.begin()
    chance = random.Random(11)
    for _ in range(150):
        client = await world.connect()
        producer = await client.producer(f"{TOPIC}-damaged")
        consumer = await client.subscribe(f"{TOPIC}-damaged", "s", kind=SubscriptionType.SHARED)
        producer.sequence_id = 0
        good = [
            frames.send(producer.producer_id, 0, producer.entry(b"x" * 20)),
            frames.ack(consumer.consumer_id, [Position(1, 0)], request_id=900),
            frames.subscribe(901, 77, TOPIC, "other", consumer_name="c"),
            frames.seek(902, consumer.consumer_id, position=Position(1, 0)),
            frames.redeliver(consumer.consumer_id, [Position(1, 0)]),
            frames.lookup(903, TOPIC),
            frames.flow(consumer.consumer_id, 5),
        ]
        for _ in range(3):
            frame = bytearray(chance.choice(good))
            for _ in range(chance.randrange(1, 4)):
                frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            if client.is_open:
                client.write(bytes(frame))
        await asyncio.sleep(0.01)
        client.abort()
    await neighbour.is_well()


WHOLE = NetworkProfile(NS_PER_MS, NS_PER_MS, piece_bytes_max=MIB)
"""A network that hands over in one piece what was written as one."""


@played(network=WHOLE)
async def test_a_flood_of_small_frames_is_read_in_turns(world: World) -> None:
    """A neighbour whose frame comes right behind waits for a small part of the flood."""
    flooder, neighbour = await world.connect(), await world.connect()
    before = []

    class Answers(list[BaseCommand]):
        def append(self, command: BaseCommand) -> None:
            before.append(len(flooder.unexpected))

    neighbour.unexpected = Answers()
    flooder.write(frames.ping() * 3_000)
    neighbour.write(frames.ping())
    await asyncio.sleep(0.1)
    assert len(flooder.unexpected) == 3_000
    assert before[0] <= 300


@played()
async def test_commands_before_connect(world: World) -> None:
    neighbour = Neighbour(world)
    await neighbour.begin()
    for frame in (frames.ping(), frames.lookup(1, TOPIC), frames.producer(1, 1, TOPIC)):
        client = world.open_connection()
        client.write(frame)
        await cut_off(world, client)
    await neighbour.is_well()


@played()
async def test_connect_twice(world: World) -> None:
    client = await world.connect()
    client.write(frames.connect())
    await cut_off(world, client)


@played()
async def test_commands_of_brokers(world: World) -> None:
    client = await world.connect()
    command = BaseCommand(type=CommandType.SUCCESS)
    command.success.request_id = 1
    client.write(encode_frame(command))
    await cut_off(world, client)


@played()
async def test_a_flow_of_nothing(world: World) -> None:
    neighbour = Neighbour(world)
    await neighbour.begin()
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    client.write(frames.flow(consumer.consumer_id, 0))
    await cut_off(world, client)
    await neighbour.is_well()


@played()
async def test_a_negative_flow(world: World) -> None:
    """On the wire it is a number above two thousand million, as Java reads it a negative one."""
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    command = BaseCommand(type=CommandType.FLOW)
    command.flow.consumer_id = 1
    command.flow.messagePermits = (1 << 32) - 1
    client.write(encode_frame(command))
    await cut_off(world, client)


@played()
async def test_sends_without_body_or_messages(world: World) -> None:
    for count, body in ((1, b""), (0, b"some"), (-1, b"some")):
        client = await world.connect()
        producer = await client.producer(TOPIC)
        producer.sequence_id = 0
        entry = producer.entry(b"x") if body else b""
        client.write(frames.send(producer.producer_id, 0, entry, message_count=count))
        await cut_off(world, client)
    assert world.broker.engine.topics[TOPIC].log.end == 0


@played()
async def test_an_entry_that_is_shorter_than_it_says(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    client.write(frames.send(producer.producer_id, 0, b"\x00\x00\x01\x00abc"))
    await cut_off(world, client)
    assert world.broker.engine.topics[TOPIC].log.end == 0


@played()
async def test_unknown_ids(world: World) -> None:
    """Late words about what was closed meanwhile are normal; requests get an answer."""
    client = await world.connect()
    client.write(frames.flow(42, 1))
    client.write(frames.ack(42, [Position(1, 1)]))
    client.write(frames.redeliver(42))
    for make in (
        lambda i: frames.unsubscribe(i, 42),
        lambda i: frames.seek(i, 42, position=Position(1, 1)),
        lambda i: frames.get_last_message_id(i, 42),
    ):
        with pytest.raises(RefusedError):
            await client.request(make)
    await client.request(lambda i: frames.close_consumer(i, 42))
    await client.request(lambda i: frames.close_producer(i, 42))
    assert client.is_open


@played()
async def test_a_seek_to_nowhere(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    with pytest.raises(RefusedError) as refusal:
        await consumer.seek()
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    assert consumer.is_open


@played()
async def test_types_that_are_not_built(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.subscribe(TOPIC, "s", kind=SubscriptionType.KEY_SHARED)
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR


@played()
async def test_a_cumulative_ack_of_a_shared_subscription(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    position = await (await client.producer(TOPIC)).send(b"x")
    with pytest.raises(RefusedError) as refusal:
        await consumer.ack_through(position)
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR


@played()
async def test_the_same_ids_again_are_answered_again(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC, name="p")
    again = await client.request(lambda i: frames.producer(i, producer.producer_id, TOPIC))
    assert again.producer_success.producer_name == "p"
    consumer = await client.subscribe(TOPIC, "s")
    await client.request(lambda i: frames.subscribe(i, consumer.consumer_id, TOPIC, "s"))
    await producer.send(b"x")
    assert (await consumer.receive()).payload == b"x"


@played()
async def test_a_peer_that_never_says_connect(world: World) -> None:
    client = world.open_connection()
    before_s = world.now_s
    await client.lost
    assert world.now_s - before_s == pytest.approx(10, abs=0.1)


@played(settings={"keepAliveIntervalSeconds": "5"})
async def test_a_half_open_connection_is_cleaned_up(world: World) -> None:
    client = await world.connect()
    await (await client.producer(TOPIC)).send(b"x")
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.receive()
    client.transport.silence()
    await asyncio.sleep(11)
    topic = world.broker.engine.topics[TOPIC]
    assert not topic.producers
    assert not topic.subscriptions["s"].consumers
    other = await (await world.connect()).subscribe(TOPIC, "s")
    assert (await other.receive()).payload == b"x"


@played(settings={"keepAliveIntervalSeconds": "5"})
async def test_a_peer_that_answers_pings_stays(world: World) -> None:
    client = await world.connect()
    await asyncio.sleep(120)
    assert client.is_open
    client.answers_pings = False
    await asyncio.sleep(11)
    assert not client.is_open


@played()
async def test_a_client_that_leaves_while_it_is_served(world: World) -> None:
    neighbour = Neighbour(world)
    await neighbour.begin()
    for lane in world.lanes:
        lane.latency_ns_max = 20_000_000
    chance = random.Random(3)
    for index in range(40):
        client = world.open_connection()
        client.write(frames.connect())
        topic = f"{TOPIC}-{index % 7}"
        client.write(frames.producer(1, 1, topic))
        client.write(frames.subscribe(2, 2, topic, "s", kind=SubscriptionType.SHARED))
        client.write(frames.unsubscribe(3, 2))
        await asyncio.sleep(chance.random() * 0.05)
        client.abort()
    await asyncio.sleep(1)
    for index in range(7):
        topic = world.broker.engine.topics[f"{TOPIC}-{index}"]
        assert not topic.producers
        assert not any(s.consumers for s in topic.subscriptions.values())
    await neighbour.is_well()
