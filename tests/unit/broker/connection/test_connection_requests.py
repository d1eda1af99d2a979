"""A request that cannot be met is answered, and its connection stays open."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest

from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.fs import Operation
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError, SubscriptionType
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played

SHARED = SubscriptionType.SHARED
NAME = parse_topic(TOPIC)
INVALID_TOPICS = (
    "",
    "persistent://",
    "persistent://public/default/",
    "persistent://public/default",
    "a/b",
    "a//b",
    "persistent://a b/c/d",
    "memory://public/default/x",
    "persistent://public/default/" + "x" * 5_000,
)


async def code_of(client: SimClient, make: Callable[[int], bytes]) -> ServerError:
    """What a request is refused with; the connection stays."""
    with pytest.raises(RefusedError) as refusal:
        await client.request(make)
    assert client.is_open
    assert refusal.value.message
    return refusal.value.code


@played()
async def test_invalid_topic_names(world: World) -> None:
    client = await world.connect()
    for topic in INVALID_TOPICS:
        for make in (
            lambda i, topic=topic: frames.producer(i, 1, topic),
            lambda i, topic=topic: frames.subscribe(i, 1, topic, "s"),
            lambda i, topic=topic: frames.lookup(i, topic),
            lambda i, topic=topic: frames.partitioned_metadata(i, topic),
        ):
            assert await code_of(client, make) == ServerError.INVALID_TOPIC_NAME
    for namespace in ("", "public", "public/default/x", "a b/c"):
        await code_of(client, lambda i, n=namespace: frames.get_topics_of_namespace(i, n))
    assert not world.broker.engine.topics


@played()
async def test_invalid_subscriptions_create_no_topic(world: World) -> None:
    client = await world.connect()
    for name in ("", "x" * 100_000):
        await code_of(client, lambda i, name=name: frames.subscribe(i, 1, TOPIC, name))
    await code_of(
        client, lambda i: frames.subscribe(i, 1, TOPIC, "s", kind=SubscriptionType.KEY_SHARED)
    )
    assert not world.broker.engine.topics


@played()
async def test_properties_that_are_too_long_to_be_stored(world: World) -> None:
    client = await world.connect()
    properties = {"x" * 100_000: "value"}
    with pytest.raises(RefusedError):
        await client.subscribe(TOPIC, "s", properties=properties)
    await client.subscribe(TOPIC, "s", properties={"key": "x" * 1_000})


@played()
async def test_what_is_not_supported_is_refused(world: World) -> None:
    client = await world.connect()
    topic = "non-persistent://public/default/x"
    for make in (
        lambda i: frames.producer(i, 1, topic),
        lambda i: frames.subscribe(i, 1, topic, "s"),
        lambda i: frames.partitioned_metadata(i, topic),
    ):
        assert await code_of(client, make) == ServerError.NOT_ALLOWED_ERROR
    assert not world.broker.engine.topics


@played()
async def test_numbers_at_their_ends(world: World) -> None:
    client = await world.connect()
    position = await (await client.producer(TOPIC)).send(b"x")
    command = BaseCommand(type=CommandType.SUBSCRIBE)
    subscribe = command.subscribe
    subscribe.topic, subscribe.subscription = TOPIC, "s"
    subscribe.subType, subscribe.consumer_id, subscribe.request_id = SHARED, (1 << 64) - 1, 900
    subscribe.priority_level = -(1 << 31)
    subscribe.start_message_rollback_duration_sec = (1 << 64) - 1
    subscribe.consumer_epoch = (1 << 64) - 1
    client.write(encode_frame(command))
    await asyncio.sleep(0.1)
    client.write(frames.flow((1 << 64) - 1, 10))
    await asyncio.sleep(0.1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.subscriptions["s"].messages_sent == 1
    for entry in (
        Position(-1, -1),
        Position((1 << 63) - 1, (1 << 63) - 1),
        Position(-(1 << 63), 0),
    ):
        client.write(frames.ack((1 << 64) - 1, [entry]))
        client.write(frames.redeliver((1 << 64) - 1, [entry]))
    assert topic.subscriptions["s"].backlog_entries == 1
    client.write(frames.ack((1 << 64) - 1, [position]))
    await asyncio.sleep(0.1)
    assert topic.subscriptions["s"].backlog_entries == 0
    assert client.is_open


@played()
async def test_seeks_to_the_ends_of_time_and_place(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(3):
        await producer.send(b"x")
    places: tuple[tuple[dict[str, object], int], ...] = (
        ({"publish_time_ms": 0}, 3),
        ({"publish_time_ms": (1 << 64) - 1}, 0),
        ({"position": Position(-(1 << 63), -(1 << 63))}, 3),
        ({"position": Position((1 << 63) - 1, (1 << 63) - 1)}, 0),
        ({"position": Position(0, 0)}, 3),
    )
    for place, backlog in places:
        consumer = await client.subscribe(TOPIC, "s")
        await consumer.seek(**place)  # type: ignore[arg-type]
        assert world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries == backlog


@played()
async def test_closing_twice_is_answered_twice(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    for _ in range(2):
        await client.request(lambda i: frames.close_producer(i, producer.producer_id))
        await client.request(lambda i: frames.close_consumer(i, consumer.consumer_id))
    topic = world.broker.engine.topics[TOPIC]
    assert not topic.producers
    assert not topic.subscriptions["s"].consumers


@played()
async def test_unsubscribing_amid_deliveries(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", queue_size=100)
    neighbour = await client.subscribe(TOPIC, "neighbour", queue_size=10)
    sends = [producer.send_nowait(b"%d" % index) for index in range(500)]
    await consumer.receive()
    await asyncio.gather(consumer.unsubscribe(), *sends)
    assert list(world.broker.engine.topics[TOPIC].subscriptions) == ["neighbour"]
    got = [(await neighbour.receive()).payload for _ in range(500)]
    assert got == [b"%d" % index for index in range(500)]


@played()
async def test_a_refused_unsubscribe_leaves_no_consumer_behind(world: World) -> None:
    """Its client sees the disconnect and reconnects."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    world.lanes[0].freeze()
    unloading = asyncio.ensure_future(world.broker.registry.unload(NAME))
    asked = asyncio.ensure_future(consumer.unsubscribe())
    await asyncio.sleep(0.1)
    world.lanes[0].thaw()
    with pytest.raises(RefusedError):
        await asked
    await unloading
    await asyncio.sleep(0.1)
    assert not consumer.is_open
    assert (await client.subscribe(TOPIC, "s")).is_open


async def unsubscribe_and_reuse_the_id(
    world: World, client: SimClient
) -> asyncio.Future[BaseCommand]:
    """Ask to delete a subscription, and give the consumer's id to one of ``kept`` meanwhile."""
    consumer = await client.subscribe(TOPIC, "s")
    number = consumer.consumer_id
    world.lanes[0].freeze()
    asked = asyncio.ensure_future(client.request(lambda i: frames.unsubscribe(i, number)))
    await asyncio.sleep(0.1)
    await client.request(lambda i: frames.close_consumer(i, number))
    await client.request(lambda i: frames.subscribe(i, number, TOPIC, "kept"))
    return asked


@played()
async def test_the_id_of_a_consumer_that_unsubscribes_may_be_used_again(world: World) -> None:
    """Else the one that got the id would stay on its subscription when the connection has ended."""
    client = await world.connect()
    await (await client.subscribe(TOPIC, "kept")).close()
    asked = await unsubscribe_and_reuse_the_id(world, client)
    world.lanes[0].thaw()
    await asked
    kept = world.broker.engine.topics[TOPIC].subscriptions["kept"]
    assert len(kept.consumers) == 1
    client.close()
    await asyncio.sleep(0.1)
    assert not kept.consumers


@played()
async def test_a_refused_unsubscribe_closes_no_other_consumer(world: World) -> None:
    client = await world.connect()
    await (await client.subscribe(TOPIC, "kept")).close()
    asked = await unsubscribe_and_reuse_the_id(world, client)
    kept = world.broker.engine.topics[TOPIC].subscriptions["kept"]

    def plan(operation: Operation) -> None:
        if operation.kind == "write":
            raise OSError(errno.EMFILE, "too many open files")

    world.disk.plan = plan
    world.lanes[0].thaw()
    with pytest.raises(RefusedError):
        await asked
    assert len(kept.consumers) == 1
    client.close()
    await asyncio.sleep(0.1)
    assert not kept.consumers


@played()
async def test_an_unsubscribe_that_is_not_stored(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")

    def plan(operation: Operation) -> None:
        if operation.kind == "write":
            raise OSError(errno.EMFILE, "too many open files")

    world.disk.plan = plan
    with pytest.raises(RefusedError) as refusal:
        await consumer.unsubscribe()
    assert refusal.value.code == ServerError.PERSISTENCE_ERROR
    await asyncio.sleep(0.1)
    assert not consumer.is_open


@played()
async def test_seeking_amid_redeliveries(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    producer = await client.producer(TOPIC)
    positions = await asyncio.gather(*[producer.send_nowait(b"%d" % i) for i in range(50)])
    first = await client.subscribe(TOPIC, "s", kind=SHARED)
    second = await other.subscribe(TOPIC, "s", kind=SHARED)
    await asyncio.sleep(0.1)
    first.redeliver()
    second.redeliver([message.position for message in second.queue])
    await first.seek(position=positions[40])
    await asyncio.sleep(0.1)
    assert (first.is_open, second.is_open) == (False, False)
    again = await other.subscribe(TOPIC, "s", kind=SHARED)
    got = [(await again.receive()).position for _ in range(10)]
    assert got == positions[40:]
    await again.ack(*got)
    assert world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries == 0


@played()
async def test_two_seeks_at_once(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    positions = [await producer.send(b"x") for _ in range(5)]
    first = await client.subscribe(TOPIC, "s", kind=SHARED)
    second = await client.subscribe(TOPIC, "s", kind=SHARED)
    world.lanes[0].freeze()
    one = asyncio.ensure_future(first.seek(position=positions[1]))
    other = asyncio.ensure_future(second.seek(position=positions[3]))
    await asyncio.sleep(0.1)
    world.lanes[0].thaw()
    results = await asyncio.gather(one, other, return_exceptions=True)
    assert [isinstance(result, RefusedError) for result in results].count(True) <= 1
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    assert not subscription.fenced
    assert subscription.backlog_entries in (2, 4)
    assert (await client.subscribe(TOPIC, "s", kind=SHARED)).is_open


@played()
async def test_a_reader_and_a_subscription_of_one_name(world: World) -> None:
    """Whoever asks first has the name, although a stored subscription takes longer to make."""
    client, other = await world.connect(), await world.connect()
    await client.producer(TOPIC)
    world.lanes[0].freeze()
    stored = asyncio.ensure_future(client.subscribe(TOPIC, "s"))
    await asyncio.sleep(0.1)
    reader = asyncio.ensure_future(other.subscribe(TOPIC, "s", durable=False))
    await asyncio.sleep(0.1)
    world.lanes[0].thaw()
    await stored
    with pytest.raises(RefusedError, match="is durable") as refusal:
        await reader
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    await other.subscribe(TOPIC, "r", durable=False)
    with pytest.raises(RefusedError, match="is non-durable"):
        await client.subscribe(TOPIC, "r")
    other.abort()
    await asyncio.sleep(0.1)
    assert list(world.broker.engine.topics[TOPIC].subscriptions) == ["s"]


@played()
async def test_coming_back_while_the_seek_is_not_stored_yet(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    positions = [await producer.send(b"%d" % index) for index in range(4)]
    consumer = await client.subscribe(TOPIC, "s")
    world.lanes[0].freeze()
    seeking = asyncio.ensure_future(consumer.seek(position=positions[2]))
    await asyncio.sleep(0.1)
    assert not consumer.is_open
    again = asyncio.ensure_future(client.subscribe(TOPIC, "s"))
    await asyncio.sleep(0.1)
    world.lanes[0].thaw()
    await seeking
    assert [(await (await again).receive()).position for _ in range(2)] == positions[2:]


def with_initial_subscription(request_id: int, name: str) -> bytes:
    command = BaseCommand(type=CommandType.PRODUCER)
    command.producer.request_id = request_id
    command.producer.producer_id = request_id
    command.producer.topic = TOPIC
    command.producer.initial_subscription_name = name
    return encode_frame(command)


@played()
async def test_a_producer_may_bring_a_subscription(world: World) -> None:
    client = await world.connect()
    for name in ("x" * 100_000, "a\nb"):
        await code_of(client, lambda i, name=name: with_initial_subscription(i, name))
    assert not world.broker.engine.topics
    for _ in range(2):
        await client.request(lambda i: with_initial_subscription(i, "early"))
    position = await (await client.producer(TOPIC)).send(b"x")
    world.crash()
    await world.start()
    consumer = await (await world.connect()).subscribe(TOPIC, "early", earliest=False)
    assert (await consumer.receive()).position == position
