"""Consumers as they see the broker: types, permits, acks, redelivery, seeks, readers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import pytest

from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.base.units import KIB
from headgate.ledger import LedgerSettings
from headgate.testing import RefusedError, SimClient, SimConsumer, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError, SubscriptionType
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played

SHARED = SubscriptionType.SHARED
FAILOVER = SubscriptionType.FAILOVER


async def publish(client: SimClient, count: int, *, topic: str = TOPIC) -> list[Position]:
    """``count`` messages with the payloads 0, 1, 2..."""
    producer = await client.producer(topic)
    receipts = await asyncio.gather(*[producer.send_nowait(b"%d" % i) for i in range(count)])
    await producer.close()
    return list(receipts)


async def take(consumer: SimConsumer, count: int) -> list[bytes]:
    """The payloads of the next ``count`` entries."""
    return [(await consumer.receive()).payload for _ in range(count)]


def numbers(values: Sequence[int]) -> list[bytes]:
    """The payloads that :func:`publish` gave these messages."""
    return [b"%d" % value for value in values]


def backlog(world: World, subscription: str = "s") -> int:
    """What the broker says that the subscription owes."""
    return world.broker.engine.topics[TOPIC].subscriptions[subscription].backlog_messages


@played()
async def test_exclusive_delivers_in_order(world: World) -> None:
    client = await world.connect()
    await publish(client, 100)
    consumer = await client.subscribe(TOPIC, "s", queue_size=7)
    assert await take(consumer, 100) == numbers(range(100))


@played()
async def test_exclusive_admits_one(world: World) -> None:
    client = await world.connect()
    first = await client.subscribe(TOPIC, "s")
    for other in (client, await world.connect()):
        with pytest.raises(RefusedError) as refusal:
            await other.subscribe(TOPIC, "s")
        assert refusal.value.code == ServerError.CONSUMER_BUSY
    with pytest.raises(RefusedError) as refusal:
        await client.subscribe(TOPIC, "s", kind=SHARED)
    assert refusal.value.code == ServerError.CONSUMER_BUSY
    await first.close()
    await client.subscribe(TOPIC, "s", kind=SHARED)


@played()
async def test_a_subscription_starts_where_it_was_asked_to(world: World) -> None:
    client = await world.connect()
    await publish(client, 3)
    late = await client.subscribe(TOPIC, "late", earliest=False)
    early = await client.subscribe(TOPIC, "early")
    assert await take(early, 3) == numbers(range(3))
    await publish(client, 1)
    assert await take(late, 1) == numbers([0])


@played()
async def test_permits_bound_what_is_sent(world: World) -> None:
    client = await world.connect()
    await publish(client, 10)
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    await asyncio.sleep(0.1)
    assert not consumer.queue
    consumer.flow(4)
    await asyncio.sleep(0.1)
    assert len(consumer.queue) == 4


@played()
async def test_what_was_acknowledged_stays_so(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 10)
    consumer = await client.subscribe(TOPIC, "s")
    await take(consumer, 10)
    await consumer.ack(receipts[0], receipts[2], receipts[5])
    await consumer.ack_through(receipts[3])
    assert backlog(world) == 5
    world.crash()
    await world.start()
    assert backlog(world) == 5
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    assert await take(consumer, 5) == numbers([4, 6, 7, 8, 9])


@played()
async def test_an_unanswered_ack_is_safe_after_a_second(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 2)
    consumer = await client.subscribe(TOPIC, "s")
    await take(consumer, 2)
    consumer.ack_nowait(receipts[0])
    await asyncio.sleep(1)
    world.crash()
    await world.start()
    assert backlog(world) == 1


@played()
async def test_acks_of_strangers_change_nothing(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 2)
    consumer = await client.subscribe(TOPIC, "s")
    ledger = receipts[0].ledger_id
    await consumer.ack(Position(ledger, 99), Position(ledger + 7, 0), Position(-3, -5))
    await consumer.ack(receipts[1], receipts[1])
    assert backlog(world) == 1
    for stranger in (Position(ledger, 2), Position(ledger + 7, 0), LATEST):
        with pytest.raises(RefusedError, match="nothing was acknowledged"):
            await consumer.ack_through(stranger)
    assert backlog(world) == 1


@played()
async def test_shared_divides_and_takes_back(world: World) -> None:
    client = await world.connect()
    await publish(client, 60)
    first = await client.subscribe(TOPIC, "s", kind=SHARED, queue_size=30)
    second = await client.subscribe(TOPIC, "s", kind=SHARED, queue_size=30)
    await asyncio.sleep(0.1)
    of_first = {message.payload for message in first.queue}
    of_second = {message.payload for message in second.queue}
    assert len(of_first) == len(of_second) == 30
    assert of_first | of_second == set(numbers(range(60)))
    await first.close()
    second.flow(60)
    await asyncio.sleep(0.1)
    again = list(second.queue)[30:]
    assert {message.payload for message in again} == of_first
    assert {message.redelivery_count for message in again} == {0}


@played()
async def test_redelivery_is_counted(world: World) -> None:
    client = await world.connect()
    await publish(client, 3)
    consumer = await client.subscribe(TOPIC, "s", kind=SHARED)
    first = [await consumer.receive() for _ in range(3)]
    for count in (1, 2):
        consumer.redeliver([first[1].position])
        again = await consumer.receive()
        assert (again.position, again.redelivery_count) == (first[1].position, count)
    consumer.redeliver()
    everything = [await consumer.receive() for _ in range(3)]
    assert [(m.position, m.redelivery_count) for m in everything] == [
        (first[0].position, 1),
        (first[1].position, 3),
        (first[2].position, 1),
    ]
    await consumer.ack(*[m.position for m in everything])
    consumer.redeliver()
    await asyncio.sleep(0.1)
    assert not consumer.queue


@played()
async def test_exclusive_redelivers_from_the_first_unacknowledged(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 5)
    consumer = await client.subscribe(TOPIC, "s")
    await take(consumer, 5)
    await consumer.ack(receipts[0], receipts[3])
    consumer.redeliver([receipts[4]])
    assert await take(consumer, 3) == numbers([1, 2, 4])


@played()
async def test_failover_passes_on_to_the_next(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    await publish(client, 4)
    first = await client.subscribe(TOPIC, "s", kind=FAILOVER, name="a", priority_level=0)
    second = await other.subscribe(TOPIC, "s", kind=FAILOVER, name="b", priority_level=1)
    got = await take(first, 4)
    assert got == numbers(range(4))
    await asyncio.sleep(0.1)
    assert (first.active_changes, second.active_changes) == ([True], [False])
    assert not second.queue
    first.ack_nowait(first_position := (await first.last_message_id())._replace(entry_id=0))
    client.abort()
    assert await take(second, 3) == numbers([1, 2, 3])
    assert second.active_changes == [False, True]
    assert first_position.entry_id == 0


@played()
async def test_a_client_knows_its_consumer_before_a_notice_for_it(
    world: World,
) -> None:
    """Go's client drops notices for a consumer whose SUBSCRIBE is not answered."""
    client = await world.connect()
    received: list[int] = []
    receive = client._receive

    def noted(command: BaseCommand, body: bytes | None) -> None:
        received.append(command.type)
        receive(command, body)

    client._receive = noted  # type: ignore[method-assign]
    await client.request(lambda i: frames.subscribe(i, 7, TOPIC, "s", kind=FAILOVER))
    await asyncio.sleep(0.1)
    assert CommandType.ACTIVE_CONSUMER_CHANGE not in received
    await asyncio.sleep(1)  # it asks for no message
    assert received[-1] == CommandType.ACTIVE_CONSUMER_CHANGE
    await client.request(lambda i: frames.subscribe(i, 8, TOPIC, "t", kind=FAILOVER))
    client.write(frames.flow(8, 10))
    await asyncio.sleep(0.1)
    assert received.count(CommandType.ACTIVE_CONSUMER_CHANGE) == 2
    await asyncio.sleep(2)
    assert received.count(CommandType.ACTIVE_CONSUMER_CHANGE) == 2


@played(settings={"maxUnackedMessagesPerConsumer": "10"})
async def test_a_consumer_that_acknowledges_nothing_gets_no_more(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 30)
    consumer = await client.subscribe(TOPIC, "s", kind=SHARED)
    await asyncio.sleep(0.1)
    assert len(consumer.queue) == 10
    await consumer.ack(*receipts[:4])
    await asyncio.sleep(0.1)
    assert len(consumer.queue) == 10
    await consumer.ack(receipts[4])
    await asyncio.sleep(0.1)
    assert len(consumer.queue) == 15


@played()
async def test_unsubscribe_forgets(world: World) -> None:
    client = await world.connect()
    await publish(client, 3)
    consumer = await client.subscribe(TOPIC, "s")
    assert await take(consumer, 3) == numbers(range(3))
    await consumer.unsubscribe()
    world.crash()
    await world.start()
    assert not world.broker.engine.topics[TOPIC].subscriptions
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", earliest=False)
    await publish(client, 1)
    assert await take(consumer, 1) == numbers([0])


@played()
async def test_unsubscribe_is_refused_while_others_are_there(world: World) -> None:
    client = await world.connect()
    first = await client.subscribe(TOPIC, "s", kind=SHARED)
    second = await client.subscribe(TOPIC, "s", kind=SHARED)
    with pytest.raises(RefusedError):
        await first.unsubscribe()
    await publish(client, 1)
    await asyncio.sleep(0.1)
    assert len(first.queue) + len(second.queue) == 1


@played()
async def test_seek_to_a_message(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 10)
    consumer = await client.subscribe(TOPIC, "s")
    await take(consumer, 10)
    await consumer.ack_through(receipts[9])
    await consumer.seek(position=receipts[4])
    assert not consumer.is_open
    consumer = await client.subscribe(TOPIC, "s")
    assert await take(consumer, 6) == numbers(range(4, 10))
    await consumer.seek(position=LATEST)
    assert backlog(world) == 0
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.seek(position=EARLIEST)
    world.crash()
    await world.start()
    assert backlog(world) == 10


@played()
async def test_seek_into_a_batch(world: World) -> None:
    """Java names the message by what is left of the batch, Go by its index."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    messages = [b"a", b"b", b"c", b"d"]
    batch = await producer.send(b"", batch=messages)
    await producer.send(b"", batch=messages)
    for seek in ({"left_mask": 0b1100}, {"batch_index": 2}):
        for kind in (SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED):
            consumer = await client.subscribe(TOPIC, "s", kind=kind)
            await consumer.seek(position=batch, **seek)
            world.crash()
            await world.start()
            client = await world.connect()
            consumer = await client.subscribe(TOPIC, "s", kind=kind)
            left = [(await consumer.receive()).left_mask for _ in range(2)]
            assert left == [0b1100, 0b1111]
            await consumer.close()
    consumer = await client.subscribe(TOPIC, "s")
    with pytest.raises(RefusedError, match="leaves message 4 of a batch of 4") as refusal:
        await consumer.seek(position=batch, left_mask=0b11100)
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    for seek in ({"batch_index": 0}, {"batch_index": 4}, {"batch_index": 1 << 20}):
        await consumer.seek(position=batch, **seek)
        consumer = await client.subscribe(TOPIC, "s")
        assert (await consumer.receive()).left_mask == 0b1111, "there is no such message"
    gone = batch._replace(entry_id=99)
    await consumer.seek(position=gone, batch_index=1)
    world.broker.settings.acknowledgmentAtBatchIndexLevelEnabled = False
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.seek(position=batch, left_mask=0b1100)
    consumer = await client.subscribe(TOPIC, "s")
    assert (await consumer.receive()).left_mask == 0b1111


@played(ledger=LedgerSettings(segment_bytes=64 * KIB, index_cache_bytes=0))
async def test_a_seek_into_a_batch_that_is_trimmed_meanwhile(world: World) -> None:
    """It failed with an internal error while the index of the batch was read."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    producer = await client.producer(TOPIC)
    batch = [await producer.send(b"", batch=[b"a", b"b"]) for _ in range(300)][150]
    other = await client.producer(f"{TOPIC}-other")
    for _ in range(30):
        await other.send(b"x" * 10_000)
    await asyncio.sleep(5)
    assert not world.broker.engine.topics[TOPIC].log.is_indexed(150)
    world.lanes[1].freeze()  # the lane of reads
    seek = asyncio.ensure_future(consumer.seek(position=batch, batch_index=1))
    await asyncio.sleep(0.1)
    log = world.broker.log.topic(world.broker.engine.topics[TOPIC].log.number)
    world.broker.log.stage_trim(log, log.end)
    await world.broker.when_durable()
    world.lanes[1].thaw()
    await seek
    await client.subscribe(TOPIC, "s")
    assert backlog(world) == 0


@played()
async def test_seek_to_a_time(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    times = []
    for number in range(5):
        await asyncio.sleep(1)
        times.append(world.wall_ms())
        await producer.send(b"%d" % number)
    consumer = await client.subscribe(TOPIC, "s", earliest=False)
    await consumer.seek(publish_time_ms=times[2])
    consumer = await client.subscribe(TOPIC, "s")
    assert await take(consumer, 3) == numbers([2, 3, 4])
    await consumer.seek(publish_time_ms=world.wall_ms() + 1)
    assert backlog(world) == 0
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.seek(publish_time_ms=0)
    assert backlog(world) == 5


@played()
async def test_a_seek_to_a_time_goes_by_the_producers_clock_within_bounds(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    hour_ms = 3_600_000
    slow_ms = world.wall_ms() - hour_ms
    for step_ms in (0, 10, -5_000, 2 * hour_ms, 20):  # the third runs backwards, the next ahead
        client.wall_ms = lambda step_ms=step_ms: slow_ms + step_ms  # type: ignore[misc]
        await asyncio.sleep(1)
        await producer.send(b"x")
    received_ms = world.broker.log.topic(world.broker.engine.topics[TOPIC].log.number).received_ms(
        3
    )
    assert slow_ms + hour_ms < received_ms < slow_ms + 2 * hour_ms
    for life in range(2):
        for publish_ms, left in (
            (slow_ms - 5_000, 5),
            (slow_ms, 5),
            (slow_ms + 1, 4),
            (slow_ms + 10, 4),
            (slow_ms + 11, 2),
            (received_ms, 2),
            (received_ms + 1, 0),
        ):
            client = await world.connect()
            consumer = await client.subscribe(TOPIC, "s", earliest=False)
            await consumer.seek(publish_time_ms=publish_ms)
            assert backlog(world) == left, (life, publish_ms - slow_ms)
            client.abort()
            await asyncio.sleep(0.1)
        world.crash()
        await world.start()


@played()
async def test_a_reader_leaves_nothing_behind(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 5)
    reader = await client.reader(TOPIC, receipts[2])
    assert await take(reader, 3) == numbers([2, 3, 4])
    await reader.close()
    assert not world.broker.engine.topics[TOPIC].subscriptions
    everything = await client.reader(TOPIC, EARLIEST)
    assert await take(everything, 5) == numbers(range(5))
    tail = await client.reader(TOPIC, LATEST, name="tail")
    await publish(client, 1)
    assert await take(tail, 1) == numbers([0])
    client.abort()
    await asyncio.sleep(0.1)
    assert not world.broker.engine.topics[TOPIC].subscriptions


@played()
async def test_a_reader_can_seek(world: World) -> None:
    client = await world.connect()
    receipts = await publish(client, 5)
    reader = await client.reader(TOPIC, EARLIEST)
    await take(reader, 5)
    await reader.seek(position=receipts[3])
    reader = await client.reader(TOPIC, EARLIEST)
    assert await take(reader, 2) == numbers([3, 4])


@played()
async def test_last_message_id(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    assert (await consumer.last_message_id()).entry_id == -1
    receipts = await publish(client, 3)
    assert await consumer.last_message_id() == receipts[-1]


@played(settings={"managedLedgerCacheSizeMB": "1"})
async def test_a_cold_backlog_comes_from_disk(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    size = 10_000
    for start in range(0, 300, 50):
        sends = [producer.send_nowait(b"%06d" % i + b"x" * size) for i in range(start, start + 50)]
        await asyncio.gather(*sends)
    consumer = await client.subscribe(TOPIC, "s", queue_size=20)
    got = [(await consumer.receive()).payload[:6] for _ in range(300)]
    assert got == [b"%06d" % i for i in range(300)]


@played()
async def test_a_client_that_reads_nothing_holds_nobody_up(world: World) -> None:
    deaf, client = await world.connect(), await world.connect()
    stuck = await deaf.subscribe(TOPIC, "stuck", queue_size=10_000)
    consumer = await client.subscribe(TOPIC, "s", queue_size=100)
    deaf.transport.pause_reading()
    producer = await client.producer(TOPIC)
    for start in range(0, 400, 40):
        await asyncio.gather(
            *[producer.send_nowait(b"%06d" % i + b"x" * 5_000) for i in range(start, start + 40)]
        )
        await take(consumer, 40)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["stuck"]
    assert subscription.bytes_sent < 2_000_000
    deaf.transport.resume_reading()
    assert [(await stuck.receive()).payload[:6] for _ in range(400)] == [
        b"%06d" % i for i in range(400)
    ]


COLD = LedgerSettings(
    segment_bytes=8 * KIB, extent_bytes=512, ledger_entries_max=20, index_cache_bytes=KIB
)
"""The index of all but the last entries is on the disk."""


async def publish_old(world: World, client: SimClient, count: int) -> list[Position]:
    """Messages, most of them with their index on the disk alone."""
    producer = await client.producer(TOPIC)
    positions = [await producer.send(b"x" * 100) for _ in range(count)]
    await asyncio.sleep(20)
    assert world.broker.engine.topics[TOPIC].log.memory_first >= count // 2
    return positions


@played(ledger=COLD)
async def test_seeks_of_clients_that_have_left_do_not_wait_for_the_index(world: World) -> None:
    """Readers that came, asked for an old message and left: their seeks stood in the line of the
    reads, more of them than were read, and nobody was charged with them."""
    client, other = await world.connect(), await world.connect()
    positions = await publish_old(world, other, 600)
    readers = [
        await client.subscribe(TOPIC, f"r{at}", kind=SHARED, durable=False, earliest=False)
        for at in range(50)
    ]
    world.lanes[1].freeze()  # the lane of reads
    for at, reader in enumerate(readers):
        client.write(frames.seek(1_000 + at, reader.consumer_id, position=positions[at]))
    await asyncio.sleep(1)
    assert world.broker.subscriptions.running_count > 10
    client.abort()
    await asyncio.sleep(1)
    assert world.broker.subscriptions.running_count == 0
    world.lanes[1].thaw()


class Held:
    """What a read of the index brought, as long as somebody holds it."""

    def __init__(self, blocks: object) -> None:
        self.blocks = blocks


@played(ledger=COLD)
async def test_redeliveries_that_wait_for_their_turn_hold_no_index(world: World) -> None:
    """Reads were faster than turns, so thousands held 32 blocks each, with which nobody is
    charged."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SHARED, queue_size=500)
    positions = await publish_old(world, client, 600)
    topic = world.broker.engine.topics[TOPIC]
    index, held, most = world.broker.logs.of(topic).index, WeakSet[Held](), 0
    load, give_way, goes_on = index.load, world.broker.work.give_way, asyncio.Event()

    async def give_way_later(*arguments: Any) -> None:
        await goes_on.wait()
        await give_way(*arguments)

    async def watched_load(*args: Any) -> Any:
        nonlocal most
        brought = Held(await load(*args))
        held.add(brought)
        most = max(most, len(held))
        return brought

    index.load = watched_load  # type: ignore[method-assign]
    world.broker.work.give_way = give_way_later  # type: ignore[method-assign]
    first = len(consumer.queue)
    client.write(
        b"".join(
            frames.redeliver(consumer.consumer_id, positions[at : at + 4])
            for at in range(0, 200, 4)
        )
    )
    await asyncio.sleep(5)
    assert not held
    goes_on.set()
    consumer.flow(200)
    while len(consumer.queue) < first + 200:
        await asyncio.sleep(0.1)
    assert most == 1
    assert not held
