"""Acknowledgements of entries, of parts of batches and of unknown ids, and their answers."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.positions import Position
from headgate.base.work_units import HOLDERS_PER_UNIT, TURN_UNITS
from headgate.testing import RefusedError, SimConsumer, World
from headgate.wire import client as frames
from headgate.wire.codes import AckType, CommandType, ServerError, SubscriptionType
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played


def part_of_a_batch(consumer: SimConsumer, position: Position, kind: AckType) -> bytes:
    """An ACK after which two messages of the batch at ``position`` are still to be done."""
    command = BaseCommand(type=CommandType.ACK)
    command.ack.consumer_id = consumer.consumer_id
    command.ack.ack_type = kind
    ids = command.ack.message_id.add()
    ids.ledgerId, ids.entryId = position
    ids.ack_set.append(0b110)
    return encode_frame(command)


def backlog(world: World) -> int:
    return world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries


@played()
async def test_a_part_of_a_batch_is_not_its_entry(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    await producer.send(b"before")
    batch = await producer.send(b"", batch=[b"a", b"b", b"c"])
    client.write(part_of_a_batch(consumer, batch, AckType.INDIVIDUAL))
    await asyncio.sleep(0.1)
    assert backlog(world) == 2
    client.write(part_of_a_batch(consumer, batch, AckType.CUMULATIVE))
    await asyncio.sleep(0.1)
    assert backlog(world) == 1
    await consumer.ack_through(batch)
    assert backlog(world) == 0


@played()
async def test_up_to_an_id_that_lies_between_two_ledgers(world: World) -> None:
    client = await world.connect()
    first = await (await client.producer(TOPIC)).send(b"first ledger")
    world.crash()
    await world.start()
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    second = await producer.send(b"second ledger")
    assert second.ledger_id > first.ledger_id
    await consumer.ack_through(Position(first.ledger_id, 99))
    assert backlog(world) == 1
    await consumer.ack_through(Position(first.ledger_id, -1))
    assert backlog(world) == 1


@played()
async def test_again_of_what_was_given_up_long_ago(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    old = await producer.send(b"old")
    await consumer.ack_through(old)
    topic = world.broker.engine.topics[TOPIC]
    world.broker.log.stage_trim(topic.log, 1)
    await world.broker.when_durable()
    assert topic.log.first == topic.log.end == 1
    await consumer.ack_through(old)
    await consumer.ack(old)
    assert backlog(world) == 0


@played()
async def test_nothing_can_be_acknowledged_on_an_empty_topic(world: World) -> None:
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    with pytest.raises(RefusedError):
        await consumer.ack_through(Position(0, 0))
    await consumer.ack(Position(0, 0))


@played()
async def test_of_a_consumer_that_is_gone(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.request(lambda i: frames.ack(42, [Position(1, 1)], request_id=i))
    assert refusal.value.code == ServerError.CONSUMER_NOT_FOUND


@played()
async def test_the_answer_waits_for_the_disk(world: World) -> None:
    client = await world.connect()
    position = await (await client.producer(TOPIC)).send(b"x")
    consumer = await client.subscribe(TOPIC, "s")
    world.lanes[0].freeze()
    answer = asyncio.ensure_future(consumer.ack(position))
    await asyncio.sleep(5)
    assert not answer.done()
    world.lanes[0].thaw()
    await answer
    world.crash()
    await world.start()
    assert backlog(world) == 0


@played()
async def test_a_failed_disk_is_no_answer_of_success(world: World) -> None:
    client = await world.connect()
    position = await (await client.producer(TOPIC)).send(b"x")
    consumer = await client.subscribe(TOPIC, "s")

    def plan(operation: object) -> None:
        if getattr(operation, "kind", "") == "sync":
            raise OSError(5, "input/output error")

    world.disk.plan = plan
    for _ in range(2):
        with pytest.raises(RefusedError) as refusal:
            await consumer.ack(position)
        assert refusal.value.code == ServerError.PERSISTENCE_ERROR


@played()
async def test_acks_of_what_others_hold_are_slices_of_bounded_work(world: World) -> None:
    """Each such id searches the consumers: 256 ids in one turn took 0.4 s at 10,000 of them."""
    consumers_count, entries_count = 8 * HOLDERS_PER_UNIT, 100
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumers = [
        await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=0)
        for _ in range(consumers_count)
    ]
    holder, other = consumers[-1], consumers[0]
    holder.flow(entries_count)
    positions = [await producer.send(b"x") for _ in range(entries_count)]
    while len(holder.queue) < entries_count:
        await asyncio.sleep(0.1)
    dispatcher = world.broker.engine.topics[TOPIC].subscriptions["s"].dispatcher
    begin_turn = world.broker.begin_turn
    before = most = 0

    def begun() -> None:
        nonlocal before, most
        most = max(most, dispatcher.holders_searched_count - before)
        before = dispatcher.holders_searched_count
        begin_turn()

    world.broker.begin_turn = begun  # type: ignore[method-assign]
    await other.ack(*positions)
    begun()
    assert backlog(world) == 0
    assert before == consumers_count * entries_count
    assert most <= 2 * TURN_UNITS * HOLDERS_PER_UNIT
