"""One connection has bounds in memory, names and entries, and releases all of them."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import INT32_MAX, KIB, MIB
from headgate.base.work_units import COLD, TURN_UNITS
from headgate.broker.connection import producers
from headgate.broker.connection.bounds import (
    COMMAND_BYTES_MAX,
    COMMANDS_MAX,
    DESCRIPTION_BYTES_MAX,
    DESCRIPTIONS_BYTES_MAX,
    OBJECTS_MAX,
    UNREAD_BYTES_MAX,
    bytes_beside,
    taken_bytes,
    work_expected,
)
from headgate.broker.connection.command_budget import SHORT_WORK
from headgate.broker.connection.connection import Connection
from headgate.broker.held_memory import (
    DESCRIPTION_FACTOR,
    PROPERTY_BYTES,
    READER_BYTES,
    WAITING_BYTES,
    WAITING_ID_BYTES,
    WAITING_WORD_BYTES,
)
from headgate.testing import NetworkProfile, RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, SchemaType, ServerError, SubscriptionType
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand, CommandProducer, CommandSubscribe, Schema
from tests.unit.broker.playing import TOPIC, played

SHARED = SubscriptionType.SHARED


def server_side(world: World, client: SimClient) -> Connection:
    """The broker's connection of a client."""
    (found,) = (c for c in world.broker.connections if c._transport is client.transport._peer)  # type: ignore[attr-defined]
    return found


def test_properties_and_the_subscriptions_of_readers_are_charged() -> None:
    producer, consumer = CommandProducer(), CommandSubscribe()
    assert (bytes_beside(producer), bytes_beside(consumer)) == (0, 0)
    for number in range(3):
        for properties in (producer.metadata, consumer.metadata, consumer.subscription_properties):
            properties.add(key=str(number), value="")
    assert bytes_beside(producer) == 3 * PROPERTY_BYTES
    assert bytes_beside(consumer) == 6 * PROPERTY_BYTES
    consumer.durable = False
    assert bytes_beside(consumer) == 6 * PROPERTY_BYTES + READER_BYTES


def test_a_command_that_waits_takes_more_than_its_bytes() -> None:
    """Its ids and properties are messages of their own, and its handler is a task."""
    expected = WAITING_BYTES + DESCRIPTION_FACTOR * 100
    command = BaseCommand(type=CommandType.LOOKUP)
    assert taken_bytes(command, 100) == expected
    for kind, ids in (
        (CommandType.ACK, command.ack.message_id),
        (
            CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES,
            command.redeliverUnacknowledgedMessages.message_ids,
        ),
    ):
        command.type = kind
        ids.add(ledgerId=1, entryId=2)
        assert taken_bytes(command, 100) == expected + WAITING_ID_BYTES
    command.type = CommandType.PRODUCER
    command.producer.metadata.add(key="k", value="")
    assert taken_bytes(command, 100) == expected + PROPERTY_BYTES
    command.type = CommandType.SUBSCRIBE
    command.subscribe.durable = False
    assert taken_bytes(command, 100) == expected + READER_BYTES


def test_the_words_of_an_acknowledgement_that_waits_are_charged() -> None:
    """Each may have one byte on the wire, and takes 16 in memory and more."""
    command = BaseCommand(type=CommandType.ACK)
    command.ack.message_id.add(ledgerId=1, entryId=1)
    before = taken_bytes(command, 100)
    command.ack.message_id[0].ack_set.extend([1] * 1_000)
    assert taken_bytes(command, 100) == before + 1_000 * WAITING_WORD_BYTES


@played()
async def test_a_client_is_charged_with_its_properties(world: World) -> None:
    """Short ones take more for themselves than they have bytes."""
    client = await world.connect()
    command = BaseCommand(type=CommandType.PRODUCER)
    command.producer.topic, command.producer.producer_id = TOPIC, 1
    command.producer.request_id = 1
    for number in range(500):
        command.producer.metadata.add(key=str(number), value="")
    client.write(encode_frame(command))
    await asyncio.sleep(2)
    assert world.broker.client_memory.held.descriptions > 500 * PROPERTY_BYTES


@played(settings={"maxPendingPublishRequestsPerConnection": "10"})
async def test_unloads_amid_a_flood_do_not_stop_its_connection(world: World) -> None:
    """Sends whose receipts go nowhere are not waited for."""
    client = await world.connect()
    for _ in range(5):
        producer = await client.producer(TOPIC)
        world.lanes[0].freeze()
        for _ in range(30):
            producer.send_nowait(b"x")
        await asyncio.sleep(0.1)
        unload = asyncio.ensure_future(world.broker.registry.unload(parse_topic(TOPIC)))
        await asyncio.sleep(0.1)
        world.lanes[0].thaw()
        await unload
        assert not producer.is_open
    assert await (await client.producer(TOPIC)).send(b"read as ever")
    assert server_side(world, client).producer_port.pending_count == 0


@played(settings={"maxPendingPublishRequestsPerConnection": "10"})
async def test_closing_a_producer_whose_sends_failed(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x") for _ in range(8)]
    closing = asyncio.ensure_future(producer.close())
    await asyncio.sleep(0.1)
    assert not closing.done()
    world.lanes[0].thaw()
    await closing
    assert all(future.done() for future in sent)
    assert server_side(world, client).producer_port.pending_count == 0


@played(settings={"keepAliveIntervalSeconds": "5"})
async def test_a_deaf_and_dumb_consumer_holds_nothing_for_long(world: World) -> None:
    """Its socket is full, so there are last words that it will never take."""
    deaf, client = await world.connect(), await world.connect()
    stuck = await deaf.subscribe(TOPIC, "s", kind=SHARED, queue_size=1_000)
    deaf.transport.pause_reading()
    producer = await client.producer(TOPIC)
    for _ in range(10):
        await asyncio.gather(*[producer.send_nowait(b"x" * 10_000) for _ in range(40)])
    assert not stuck.queue
    other = await client.subscribe(TOPIC, "s", kind=SHARED, queue_size=1_000)
    await asyncio.sleep(11)
    assert len(other.queue) == 400
    assert len(world.broker.connections) == 1


@played()
async def test_a_peer_that_does_not_read_the_last_frames_is_cut_off(world: World) -> None:
    deaf, client = await world.connect(), await world.connect()
    await deaf.producer(TOPIC, name="p")
    await deaf.subscribe(TOPIC, "s", queue_size=1_000)
    deaf.transport.pause_reading()
    producer = await client.producer(TOPIC)
    await asyncio.gather(*[producer.send_nowait(b"x" * 10_000) for _ in range(40)])
    assert deaf.transport._peer.get_write_buffer_size() > 0  # type: ignore[attr-defined]
    deaf.write(b"garbage!")
    await asyncio.sleep(0.1)
    topic = world.broker.engine.topics[TOPIC]
    assert not topic.subscriptions["s"].consumers
    assert "p" not in topic.producers
    await client.producer(TOPIC, name="p")
    await asyncio.sleep(5.1)
    assert deaf.transport._peer._lost  # type: ignore[attr-defined]


def question(request_id: int) -> bytes:
    """A request whose answer is forty times as long as itself: the names of many topics."""
    return frames.get_topics_of_namespace(request_id, "public/default")


async def make_topics(world: World) -> None:
    client = await world.connect()
    await asyncio.gather(*[client.partitions(f"{TOPIC}-{index}") for index in range(40)])
    await asyncio.gather(*[client.producer(f"{TOPIC}-{index}") for index in range(40)])
    client.close()


@played()
async def test_long_answers_are_made_one_in_a_turn(world: World) -> None:
    """Others wait for one of them, not for all that somebody asked for at once."""
    await make_topics(world)
    client = await world.connect()
    server = server_side(world, client)
    turn, made_in, write = 0, [], server.write

    def note(frame: bytes) -> None:
        made_in.append(turn)
        write(frame)

    server.write = note  # type: ignore[method-assign]
    questions = b"".join(question(10_000 + index) for index in range(20))
    server.get_buffer(-1)[: len(questions)] = questions
    server.buffer_updated(len(questions))
    while turn < 100:
        await asyncio.sleep(0)
        turn += 1
    assert len(made_in) == len(set(made_in)) == 20


@played(settings={"keepAliveIntervalSeconds": "5"})
async def test_answers_that_are_read_late_are_bounded(world: World) -> None:
    await make_topics(world)
    client = await world.connect()
    client.transport.pause_reading()
    for index in range(1_500):
        client.write(question(10_000 + index))
        await asyncio.sleep(0.0005)
    server = server_side(world, client)
    assert server._transport.get_write_buffer_size() < UNREAD_BYTES_MAX + MIB // 2
    client.transport.resume_reading()
    await asyncio.sleep(4)
    assert len(client.unexpected) == 1_500


@played(settings={"keepAliveIntervalSeconds": "5"})
async def test_a_peer_that_only_sends_and_never_reads_is_cut_off(world: World) -> None:
    await make_topics(world)
    client = await world.connect()
    client.transport.pause_reading()
    for index in range(1_500):
        client.write(question(10_000 + index))
    await asyncio.sleep(11)
    assert not world.broker.connections


@played()
async def test_commands_that_wait_are_bounded(world: World) -> None:
    client = await world.connect()
    count = COMMANDS_MAX + 200
    world.lanes[2].freeze()
    names = [f"{TOPIC}-{index}" for index in range(count)]
    asked = [asyncio.ensure_future(client.producer(name)) for name in names]
    await asyncio.sleep(0.5)
    assert len(server_side(world, client)._waiting_commands._tasks) == COMMANDS_MAX
    world.lanes[2].thaw()
    producers = await asyncio.gather(*asked)
    assert len({producer.name for producer in producers}) == count


def large_producer(request_id: int) -> bytes:
    """A PRODUCER with a long schema."""
    command = BaseCommand(type=CommandType.PRODUCER)
    producer = command.producer
    producer.request_id = producer.producer_id = request_id
    producer.topic = f"{TOPIC}-{request_id}"
    producer.schema.name = ""
    producer.schema.type = 0
    producer.schema.schema_data = b"x" * 120_000
    return encode_frame(command)


@played()
async def test_the_bytes_of_commands_that_wait_are_bounded(world: World) -> None:
    client = await world.connect()
    world.lanes[2].freeze()
    asked = [asyncio.ensure_future(client.request(large_producer)) for _ in range(60)]
    await asyncio.sleep(1)
    server = server_side(world, client)
    assert server._waiting_commands._size_bytes < COMMAND_BYTES_MAX + MIB
    world.lanes[2].thaw()
    await asyncio.gather(*asked)
    assert (server._waiting_commands.taken_bytes, len(server.producers)) == (0, 60)


@played(settings={"maxPendingPublishRequestsPerConnection": "10"})
async def test_a_producer_that_waits_for_a_slow_disk_keeps_its_name(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC, name="p")
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x") for _ in range(30)]
    await asyncio.sleep(0.1)
    with pytest.raises(RefusedError) as refusal:
        await (await world.connect()).producer(TOPIC, name="p")
    assert refusal.value.code == ServerError.PRODUCER_BUSY
    await asyncio.sleep(100)
    world.lanes[0].thaw()
    await asyncio.gather(*sent)
    assert client.is_open


@played()
async def test_a_producer_that_was_given_up_and_asked_for_again(world: World) -> None:
    """As a client does whose first request took longer than its patience."""
    client = await world.connect()
    world.lanes[2].freeze()
    client.write(frames.producer(901, 7, TOPIC))
    await client.request(lambda i: frames.close_producer(i, 7))
    again = asyncio.ensure_future(client.request(lambda i: frames.producer(i, 7, TOPIC, name="p")))
    await asyncio.sleep(0.1)
    world.lanes[2].thaw()
    assert (await again).producer_success.producer_name == "p"
    assert list(world.broker.engine.topics[TOPIC].producers) == ["p"]
    assert not client.unexpected
    await client.request(lambda i: frames.close_producer(i, 7))
    assert not world.broker.engine.topics[TOPIC].producers


@played()
async def test_one_that_was_given_up_takes_nothing_from_the_one_that_came_instead(
    world: World,
) -> None:
    """It closed the other one without a word to its connection. What came for that was stored on a
    topic that was unloaded meanwhile, which ended the broker."""
    client = await world.connect()
    await client.producer(TOPIC, name="other")
    world.lanes[2].freeze()
    schema = Schema(name="", type=SchemaType.STRING, schema_data=b"")
    client.write(frames.producer(901, 7, TOPIC, name="p", schema=schema))
    await client.request(lambda i: frames.close_producer(i, 7))
    await client.request(lambda i: frames.producer(i, 7, TOPIC, name="p"))
    world.lanes[2].thaw()
    await asyncio.sleep(1)
    producer = world.broker.engine.topics[TOPIC].producers["p"]
    assert not producer.closed
    (connection,) = world.broker.connections
    assert connection.producers[7][0] is producer
    await client.request(lambda i: frames.close_producer(i, 7))
    assert list(world.broker.engine.topics[TOPIC].producers) == ["other"]
    assert 7 not in connection.producers


@played()
async def test_a_consumer_that_was_given_up_and_asked_for_again(world: World) -> None:
    client = await world.connect()
    world.lanes[0].freeze()
    client.write(frames.subscribe(901, 7, TOPIC, "s", consumer_name="first"))
    await asyncio.sleep(0.1)
    await client.request(lambda i: frames.close_consumer(i, 7))
    again = asyncio.ensure_future(
        client.request(lambda i: frames.subscribe(i, 7, TOPIC, "s", consumer_name="second"))
    )
    await asyncio.sleep(0.1)
    world.lanes[0].thaw()
    await again
    (consumer,) = world.broker.engine.topics[TOPIC].subscriptions["s"].consumers
    assert consumer.name == "second"
    assert not client.unexpected


@played(network=NetworkProfile(window_bytes=4 * KIB, write_high_bytes=4 * KIB))
async def test_a_consumer_slow_to_read_delays_only_itself(world: World) -> None:
    slow, client = await world.connect(), await world.connect()
    stuck = await slow.subscribe(TOPIC, "slow", queue_size=1_000)
    consumer = await client.subscribe(TOPIC, "s", queue_size=1_000)
    slow.transport.pause_reading()
    producer = await client.producer(TOPIC)
    positions = await asyncio.gather(*[producer.send_nowait(b"x" * 1_000) for _ in range(200)])
    assert [(await consumer.receive()).position for _ in range(200)] == positions
    assert server_side(world, slow)._transport.get_write_buffer_size() < 300 * KIB
    slow.transport.resume_reading()
    assert [(await stuck.receive()).position for _ in range(200)] == positions


@played()
async def test_a_slow_reader_is_not_taken_for_dead(world: World) -> None:
    """The question whether it lives waits behind what it was sent before."""
    slow, client = await world.connect(), await world.connect()
    consumer = await slow.subscribe(TOPIC, "s", queue_size=1_000)
    slow.transport.pause_reading()
    producer = await client.producer(TOPIC)
    await asyncio.gather(*[producer.send_nowait(b"x" * 10_000) for _ in range(80)])
    newcomer = asyncio.ensure_future(client.subscribe(TOPIC, "s"))
    for _ in range(4):
        await asyncio.sleep(1)
        slow.transport.resume_reading()
        await asyncio.sleep(0.0015)
        slow.transport.pause_reading()
    with pytest.raises(RefusedError) as refusal:
        await newcomer
    assert refusal.value.code == ServerError.CONSUMER_BUSY
    slow.transport.resume_reading()
    for _ in range(80):
        await consumer.receive()


@played()
async def test_permits_stay_within_what_clients_can_count(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    for _ in range(3):
        consumer.flow(INT32_MAX)
    await (await client.producer(TOPIC)).send(b"x")
    await consumer.receive()
    consumer.flow(5)
    await asyncio.sleep(0.1)
    (seen,) = world.broker.engine.topics[TOPIC].subscriptions["s"].consumers
    assert seen.permits == INT32_MAX


@played()
async def test_very_many_closed_producers_are_bounded_and_charged(world: World) -> None:
    """60,000 that broke their SENDs, 6 MB, were forgotten in one turn of 1.3 s half a minute later,
    twice as many in one of 5 s. Till then they were 10 MB that nobody was charged with."""
    client = await world.connect()
    server = server_side(world, client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(producers, "CLOSED_MAX", 3)
        for _ in range(5):
            await client.producer(TOPIC)
            await world.broker.registry.unload(parse_topic(TOPIC))
    assert server.producer_port.closed_bytes == 3 * producers.CLOSED_BYTES
    assert server.held_memory(is_scarce=False).descriptions == 3 * producers.CLOSED_BYTES
    await asyncio.sleep(31)
    assert server.held_memory(is_scarce=False).descriptions == 0
    assert not server.producer_port._closed_ns


@played()
async def test_what_is_remembered_of_closed_producers_is_forgotten(world: World) -> None:
    client = await world.connect()
    for _ in range(5):
        producer = await client.producer(TOPIC)
        await world.broker.registry.unload(parse_topic(TOPIC))
        await asyncio.sleep(20)
    server = server_side(world, client)
    assert len(server.producer_port._closed_ns) == 2
    producer.sequence_id = 0
    late = frames.send(producer.producer_id, 1, producer.entry(b"too late"))
    client.write(late)
    await asyncio.sleep(0.1)
    assert client.is_open
    await asyncio.sleep(15)
    client.write(late)
    await client.lost


def describing(
    kind: CommandType, size_bytes: int, *, schema_bytes: int = 0, object_id: int = 1
) -> bytes:
    """A PRODUCER or SUBSCRIBE whose metadata has about ``size_bytes``."""
    command = BaseCommand(type=kind)
    if kind == CommandType.PRODUCER:
        asked = command.producer
        asked.producer_id = object_id
    else:
        asked = command.subscribe
        asked.consumer_id = object_id
        asked.subscription = "s"
        asked.subType = SHARED
    asked.topic = TOPIC
    asked.request_id = 1_000_000
    asked.metadata.add(key="k", value="v" * size_bytes)
    if schema_bytes:
        asked.schema.name = ""
        asked.schema.type = 0
        asked.schema.schema_data = b"x" * schema_bytes
    return encode_frame(command)


@played()
async def test_what_many_producers_say_of_themselves_is_bounded_together(world: World) -> None:
    """Ten thousand of the longest descriptions would keep 640 MiB."""
    client = await world.connect()
    producers = [await client.producer(TOPIC, name=f"p{index}") for index in range(300)]
    client.write(describing(CommandType.PRODUCER, 60_000, object_id=400))
    await asyncio.sleep(1)
    (refused,) = client.unexpected
    allowed = DESCRIPTIONS_BYTES_MAX // 301
    assert f"{allowed} are allowed beside 300 others" in refused.error.message
    client.write(describing(CommandType.PRODUCER, allowed - 200, object_id=400))
    await asyncio.sleep(1)
    assert len(server_side(world, client).producers) == len(producers) + 1


@pytest.mark.parametrize("kind", [CommandType.PRODUCER, CommandType.SUBSCRIBE])
def test_what_a_producer_or_consumer_says_of_itself_is_bounded(kind: CommandType) -> None:
    @played()
    async def story(world: World) -> None:
        client = await world.connect()
        world_before = set(world.broker.engine.topics)
        client.write(describing(kind, DESCRIPTION_BYTES_MAX))
        await asyncio.sleep(1)
        (refused,) = client.unexpected
        assert refused.error.error == ServerError.NOT_ALLOWED_ERROR
        assert f"{DESCRIPTION_BYTES_MAX} are allowed" in refused.error.message
        assert set(world.broker.engine.topics) == world_before
        client.write(describing(kind, DESCRIPTION_BYTES_MAX - 200, schema_bytes=120_000))
        await asyncio.sleep(1)
        connection = server_side(world, client)
        assert len(connection.producers) + len(connection.consumers) == 1

    story()


@played()
async def test_producers_and_consumers_of_one_connection_are_bounded(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await client.subscribe(TOPIC, "s", kind=SHARED)
    connection = server_side(world, client)
    entry = connection.producers[producer.producer_id]
    for number in range(OBJECTS_MAX - 2):
        connection.producers[-1 - number] = entry
    for attempt in (client.producer(TOPIC), client.subscribe(TOPIC, "s", kind=SHARED)):
        with pytest.raises(RefusedError, match="10000 are allowed") as refusal:
            await attempt
        assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    del connection.producers[-1]
    await client.producer(TOPIC)


def test_the_work_of_a_command_is_known_by_its_type_and_size() -> None:
    for kind in ("SEND", "ACK", "FLOW", "PING"):
        assert work_expected(CommandType[kind], 30) == 1
    assert work_expected(CommandType.PONG, 5) > SHORT_WORK[0], "a message goes first"
    assert work_expected(CommandType.LOOKUP, 63) == COLD
    assert work_expected(CommandType.PRODUCER, 64 * KIB) > TURN_UNITS
    assert work_expected(CommandType.ACK, 64 * KIB) == TURN_UNITS + 1
    assert work_expected(0, 0) == COLD, "unknown"
