"""Acknowledgements of entries, of parts of batches and of unknown ids, and their answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.base.partial_acks import ENTRY_BYTES, MAP_BYTES, SET_BYTES
from headgate.base.positions import Position
from headgate.base.units import KIB
from headgate.base.work_units import HOLDERS_PER_UNIT, PIECE_UNITS, TURN_UNITS
from headgate.broker.commands.acknowledging import ANSWERS_MAX
from headgate.broker.connection.bounds import COMMANDS_MAX
from headgate.broker.held_memory import WAITING_BYTES
from headgate.engine.dispatcher import Dispatcher
from headgate.ledger import LedgerSettings
from headgate.testing import RefusedError, SimClient, SimConsumer, World
from headgate.wire import client as frames
from headgate.wire.codes import AckType, CommandType, ServerError, SubscriptionType
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played


def backlog(world: World) -> int:
    return world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries


def left_messages(world: World) -> int:
    return world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_messages


BATCH = [b"a", b"b", b"c"]


@played()
async def test_a_part_of_a_batch_is_not_its_entry(world: World) -> None:
    world.broker.settings.acknowledgmentAtBatchIndexLevelEnabled = False
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    await producer.send(b"before")
    batch = await producer.send(b"", batch=BATCH)
    await consumer.ack_part(batch, 0b110)
    assert (backlog(world), left_messages(world)) == (2, 4)
    await consumer.ack_part(batch, 0b110, AckType.CUMULATIVE)
    assert (backlog(world), left_messages(world)) == (1, 3)
    await consumer.ack_through(batch)
    assert backlog(world) == 0


@played()
async def test_messages_of_a_batch_stay_acknowledged_over_a_crash(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    await producer.send(b"before")
    batch = await producer.send(b"", batch=BATCH)
    await consumer.ack_part(batch, 0b101)
    await consumer.ack_part(batch, 0b101)
    assert (backlog(world), left_messages(world)) == (2, 3)
    for _ in range(2):
        world.crash()
        await world.start()
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
        assert left_messages(world) == 3
        assert [(await consumer.receive()).left_mask for _ in range(2)] == [1, 0b101]
        await world.stop()
        await world.start()
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
        assert [(await consumer.receive()).left_mask for _ in range(2)] == [1, 0b101]
    await consumer.ack_part(batch, 0b010)
    assert (backlog(world), left_messages(world)) == (1, 1)


@played()
async def test_cumulatively_within_a_batch(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    await producer.send(b"before")
    batch = await producer.send(b"", batch=BATCH)
    await producer.send(b"after")
    await consumer.ack_part(batch, 0b100, AckType.CUMULATIVE)
    assert (backlog(world), left_messages(world)) == (2, 2)
    world.crash()
    await world.start()
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    assert [(await consumer.receive()).left_mask for _ in range(2)] == [0b100, 1]
    await consumer.ack_part(batch, 0b110, AckType.CUMULATIVE)
    assert left_messages(world) == 2, "what is acknowledged stays so"
    await consumer.ack_through(batch)
    assert (backlog(world), left_messages(world)) == (1, 1)


@played()
async def test_an_ack_set_that_does_not_fit_is_refused_and_harms_nobody(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    first = await producer.send(b"", batch=BATCH)
    second = await producer.send(b"", batch=BATCH)
    single = await producer.send(b"x")
    for kind in (AckType.INDIVIDUAL, AckType.CUMULATIVE):
        with pytest.raises(RefusedError, match="leaves message 3 of a batch of 3") as refusal:
            await consumer.ack_part(first, 0b1000, kind)
        assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    with pytest.raises(RefusedError, match="leaves message 999 of a batch of 1"):
        await consumer.ack_part(single, 1 << 999)
    consumer.ack_part_nowait(first, 0b1000)
    assert left_messages(world) == 7
    # The other ids of the command count.
    ids = [first, single, second]
    with pytest.raises(RefusedError, match=f"{single} was not acknowledged"):
        await client.request(
            lambda i: frames.ack(consumer.consumer_id, ids, request_id=i, ack_set=[0b110])
        )
    assert (backlog(world), left_messages(world)) == (3, 5)
    # Words of which none is set leave nothing.
    await client.request(
        lambda i: frames.ack(consumer.consumer_id, ids, request_id=i, ack_set=[0, 0])
    )
    assert backlog(world) == 0


@played()
async def test_a_batch_index_without_an_ack_set_is_the_whole_entry(world: World) -> None:
    """As in Pulsar: clients track the messages of a batch, and send the id of the last one."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    batch = await producer.send(b"", batch=BATCH)
    command = BaseCommand(type=CommandType.ACK)
    command.ack.consumer_id = consumer.consumer_id
    command.ack.ack_type = AckType.INDIVIDUAL
    ids = command.ack.message_id.add()
    ids.ledgerId, ids.entryId, ids.batch_index = batch.ledger_id, batch.entry_id, 2
    client.write(encode_frame(command))
    await consumer.ack(batch)
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


class Searches:
    """How many consumers a dispatcher searches for a holder, and how many of them in a turn."""

    def __init__(self, world: World, dispatcher: Dispatcher, *, in_pieces: bool = False) -> None:
        """``in_pieces``: a piece of long work counts as a turn of its own."""
        broker = world.broker
        self._dispatcher, self._begin_turn = dispatcher, broker.begin_turn
        self.count = self.most = 0
        """In all, and the most of one turn."""
        broker.begin_turn = self.begin_turn  # type: ignore[method-assign]
        if in_pieces:
            broker.work._begin_turn = self.begin_turn

    def begin_turn(self) -> None:
        """The next turn begins."""
        searched = self._dispatcher.holders_searched_count
        self.most, self.count = max(self.most, searched - self.count), searched
        self._begin_turn()


async def crowd_of(client: SimClient, count: int) -> list[SimConsumer]:
    """Consumers of one Shared subscription that ask for nothing yet."""
    kind = SubscriptionType.SHARED
    return [await client.subscribe(TOPIC, "s", kind=kind, queue_size=0) for _ in range(count)]


@played()
async def test_acks_of_what_others_hold_are_slices_of_bounded_work(world: World) -> None:
    """Each such id searches the consumers: 256 ids in one turn took 0.4 s at 10,000 of them."""
    consumers_count, entries_count = 8 * HOLDERS_PER_UNIT, 100
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumers = await crowd_of(client, consumers_count)
    holder, other = consumers[-1], consumers[0]
    holder.flow(entries_count)
    positions = [await producer.send(b"x") for _ in range(entries_count)]
    while len(holder.queue) < entries_count:
        await asyncio.sleep(0.1)
    dispatcher = world.broker.engine.topics[TOPIC].subscriptions["s"].dispatcher
    searches = Searches(world, dispatcher)
    await other.ack(*positions)
    searches.begin_turn()
    assert backlog(world) == 0
    assert searches.count == consumers_count * entries_count
    assert searches.most <= 2 * TURN_UNITS * HOLDERS_PER_UNIT


@played()
async def test_what_is_partly_acknowledged_is_charged_to_its_consumers(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.EXCLUSIVE)
    batch = [await producer.send(b"", batch=[b"x"] * 80) for _ in range(100)]
    before = sum(c.held_memory(is_scarce=False).pending for c in world.broker.connections)
    for position in batch:
        consumer.ack_part_nowait(position, 1)
    await asyncio.sleep(1)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    assert subscription.acks.partial_bytes == SET_BYTES + MAP_BYTES + 100 * (ENTRY_BYTES + 10)
    held = [c.held_memory(is_scarce=False).pending for c in world.broker.connections]
    assert sum(held) - before == subscription.acks.partial_bytes
    await consumer.ack_through(batch[-1])
    assert sum(c.held_memory(is_scarce=False).pending for c in world.broker.connections) == before


COLD = LedgerSettings(
    segment_bytes=8 * KIB,
    extent_bytes=512,
    checkpoint_records=50,
    checkpoint_bytes=64 * KIB,
    ledger_entries_max=20,
    ledger_age_ms_min=0,
    index_cache_bytes=KIB,
)
"""The index of all but the last entries is on the disk."""


@played(ledger=COLD)
async def test_acks_of_entries_whose_index_was_read_are_pieces_of_bounded_work(
    world: World,
) -> None:
    """64 such ids were one turn, whatever each took: 0.1 s at 10,000 consumers."""
    consumers_count, entries_count = 8 * HOLDERS_PER_UNIT, 100
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumers = await crowd_of(client, consumers_count)
    positions = [await producer.send(b"x" * 100) for _ in range(600)]
    await asyncio.sleep(20)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.log.memory_first >= entries_count
    holder, other = consumers[-1], consumers[0]
    holder.flow(entries_count)
    while len(holder.queue) < entries_count:
        await asyncio.sleep(0.1)
    dispatcher = topic.subscriptions["s"].dispatcher
    searches = Searches(world, dispatcher, in_pieces=True)
    await other.ack(*positions[:entries_count])
    searches.begin_turn()
    assert backlog(world) == 500
    assert searches.count == consumers_count * entries_count
    assert searches.most <= 2 * PIECE_UNITS * HOLDERS_PER_UNIT


@played(ledger=COLD, settings={"retentionCheckIntervalInSeconds": "1"})
async def test_what_passes_messages_that_others_got_meanwhile_is_told_to_them(world: World) -> None:
    """A cumulative acknowledgement waited for the index. Its consumer left, and consumers of type
    Shared came. What they held was trimmed, and the broker ended when one of them left."""
    work = world.broker.work
    give_way, goes_on = work.give_way, asyncio.Event()

    async def give_way_later(*arguments: Any) -> None:
        await goes_on.wait()
        await give_way(*arguments)

    client, other = await world.connect(), await world.connect()
    producer = await client.producer(TOPIC)
    alone = await client.subscribe(TOPIC, "s", queue_size=0)
    positions = [await producer.send(b"x" * 100) for _ in range(600)]
    await asyncio.sleep(20)
    work.give_way = give_way_later  # type: ignore[method-assign]
    client.write(frames.ack(alone.consumer_id, [positions[-1]], AckType.CUMULATIVE))
    await asyncio.sleep(1)
    work.give_way = give_way  # type: ignore[method-assign]
    await alone.close()
    kind = SubscriptionType.SHARED
    first = await client.subscribe(TOPIC, "s", kind=kind, queue_size=0)
    second = await other.subscribe(TOPIC, "s", kind=kind, queue_size=0)
    first.flow(100)
    await asyncio.sleep(5)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    assert sum(len(consumer.held) for consumer in subscription.consumers) == 100
    goes_on.set()
    await asyncio.sleep(60)
    assert backlog(world) == 0
    assert not any(consumer.held for consumer in subscription.consumers)
    last = await producer.send(b"y")
    await first.close()
    second.flow(1)
    assert (await second.receive()).position == last


@played()
async def test_answers_that_wait_for_the_disk_have_a_bound(world: World) -> None:
    """Of a disk that stands still each took 700 bytes, whose client had sent 25 and might be gone,
    without an end."""
    client, other = await world.connect(), await world.connect()
    consumers = [
        await each.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED) for each in (client, other)
    ]
    producer = await other.producer(TOPIC)
    world.lanes[0].freeze()
    sent = producer.send_nowait(b"x")
    await asyncio.sleep(1)
    memory, committer = world.broker.client_memory, world.broker.committer

    def acks(consumer: SimConsumer, count: int) -> bytes:
        ids = [Position(1, 0)]
        return b"".join(frames.ack(consumer.consumer_id, ids, request_id=i) for i in range(count))

    client.write(acks(consumers[0], ANSWERS_MAX + 500))
    await asyncio.sleep(2)
    assert 100 * WAITING_BYTES < memory.held.commands < 500 * 2 * WAITING_BYTES
    other.write(acks(consumers[1], 3 * COMMANDS_MAX))
    await asyncio.sleep(2)
    waiting_count = committer.waiting_count
    assert ANSWERS_MAX < waiting_count < ANSWERS_MAX + 2 * COMMANDS_MAX
    assert memory.held.commands > COMMANDS_MAX * WAITING_BYTES
    world.lanes[0].thaw()
    await sent
    await asyncio.sleep(5)
    answers = [each.ackResponse.request_id for each in client.unexpected]
    assert sorted(answers) == list(range(ANSWERS_MAX + 500))
    assert len(other.unexpected) == 3 * COMMANDS_MAX
    assert not committer.waiting_count
