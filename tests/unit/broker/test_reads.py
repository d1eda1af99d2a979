"""Backlog from disk: refused reads, damaged entries, small caches, topics that go meanwhile."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.base.units import MIB
from headgate.engine.subscription import Subscription
from headgate.ledger import LedgerSettings
from headgate.testing import SimConsumer, World
from headgate.testing.world import DIRECTORY
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def store(world: World, *payloads: bytes, topic: str = TOPIC) -> None:
    """Publish to a topic without subscriptions, so that nothing of it is in memory."""
    client = await world.connect()
    producer = await client.producer(topic)
    await asyncio.gather(*[producer.send_nowait(payload) for payload in payloads])
    client.close()


async def take(consumer: SimConsumer, count: int) -> list[bytes]:
    return [(await consumer.receive()).payload for _ in range(count)]


def subscription(world: World) -> Subscription:
    return world.broker.engine.topics[TOPIC].subscriptions["s"]


def reads_count(world: World) -> int:
    return world.lanes[1].jobs_count


def refuse_reads(operation: object) -> None:
    if getattr(operation, "kind", "") == "read":
        raise OSError(5, "input/output error")


def damage(world: World, payload: bytes) -> None:
    """Change one stored byte of the entry that holds ``payload``."""
    for name in world.fs.list_directory(DIRECTORY):
        file = world.fs.open(f"{DIRECTORY}/{name}", writable=True)
        at = file.read_at(0, file.size()).find(payload)
        if at >= 0:
            file.write_at(at, [b"?"])


@played()
async def test_a_read_that_is_refused_is_tried_again(world: World) -> None:
    await store(world, *[b"%d" % index for index in range(10)])
    world.disk.plan = refuse_reads
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    await asyncio.sleep(5.5)
    assert not consumer.queue
    assert "input/output error" in subscription(world).read_failed
    assert 5 <= reads_count(world) <= 7
    world.disk.plan = lambda _: None
    assert await take(consumer, 10) == [b"%d" % index for index in range(10)]
    assert subscription(world).read_failed == ""


@played()
async def test_only_the_damaged_entry_is_not_served(world: World) -> None:
    payloads = [b"entry number %03d" % index for index in range(100)]
    await store(world, *payloads)
    damage(world, payloads[40])
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await asyncio.sleep(1)
    assert [message.payload for message in consumer.queue] == payloads[:40]
    assert "entry 40 of topic" in subscription(world).read_failed
    before = reads_count(world)
    for _ in range(20):
        consumer.flow(1)
        await asyncio.sleep(1)
    assert reads_count(world) == before
    consumer.queue.clear()
    subscription(world).skip_to(41)
    assert await take(consumer, 59) == payloads[41:]
    assert subscription(world).read_failed == ""


@played()
async def test_the_first_entry_may_be_the_damaged_one(world: World) -> None:
    await store(world, b"the first entry", b"the second entry")
    damage(world, b"the first entry")
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    await asyncio.sleep(1)
    assert not consumer.queue
    subscription(world).skip_messages(1)
    assert await take(consumer, 1) == [b"the second entry"]


@played(settings={"managedLedgerCacheSizeMB": "1"}, ledger=LedgerSettings(segment_bytes=16 * MIB))
async def test_entries_larger_than_the_cache(world: World) -> None:
    await store(world, *[b"%d" % index * 2_000_000 for index in range(4)])
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    assert [payload[:1] for payload in await take(consumer, 4)] == [b"0", b"1", b"2", b"3"]
    assert reads_count(world) <= 10


@played(settings={"managedLedgerCacheSizeMB": "1"}, ledger=LedgerSettings(segment_bytes=16 * MIB))
async def test_several_readers_of_much_more_than_the_cache_holds(world: World) -> None:
    payloads = [b"%05d" % index + b"x" * 4_000 for index in range(400)]
    await store(world, *payloads)
    clients = [await world.connect() for _ in range(3)]
    consumers = [
        await client.subscribe(TOPIC, f"s{index}", queue_size=50)
        for index, client in enumerate(clients)
    ]
    got = await asyncio.gather(*[take(consumer, 400) for consumer in consumers])
    assert got == [payloads] * 3
    assert reads_count(world) < 200
    # What was in memory when it was wanted was not read.
    assert 400 - 250 <= world.broker.engine.topics[TOPIC].entries_read < 3 * 400


@played()
async def test_one_read_serves_the_topics_that_wait(world: World) -> None:
    topics = [f"{TOPIC}-{index}" for index in range(10)]
    for _ in range(5):
        for topic in topics:
            await store(world, *[b"x" * 100] * 4, topic=topic)
    client = await world.connect()
    consumers = [await client.subscribe(topic, "s", queue_size=0) for topic in topics]
    world.lanes[1].freeze()
    for consumer in consumers:
        consumer.flow(20)
    await asyncio.sleep(0.1)
    world.lanes[1].thaw()
    await asyncio.sleep(0.5)
    assert [len(consumer.queue) for consumer in consumers] == [20] * 10
    assert reads_count(world) <= 10


@played()
async def test_topics_that_go_while_they_are_read(world: World) -> None:
    client = await world.connect()
    for topic in (TOPIC, f"{TOPIC}-unloaded"):
        await store(world, b"x", topic=topic)
    world.lanes[1].freeze()
    for topic in (TOPIC, f"{TOPIC}-unloaded"):
        await client.subscribe(topic, "s")
    reader = await client.subscribe(f"{TOPIC}-unloaded", "r", durable=False)
    await asyncio.sleep(0.1)
    await world.broker.registry.delete(NAME, force=True)
    await world.broker.registry.unload(parse_topic(f"{TOPIC}-unloaded"))
    await asyncio.sleep(0.1)
    assert not reader.is_open
    consumer = await client.subscribe(f"{TOPIC}-unloaded", "s")
    world.lanes[1].thaw()
    assert await take(consumer, 1) == [b"x"]
    world.disk.plan = refuse_reads
    await asyncio.sleep(5)
    assert not world.broker.reader._waiting
    assert (await client.subscribe(TOPIC, "s")).is_open


@played()
async def test_a_subscription_that_leaves_while_its_read_fails(world: World) -> None:
    await store(world, b"x")
    world.disk.plan = refuse_reads
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    await asyncio.sleep(0.5)
    gone = subscription(world)
    await consumer.unsubscribe()
    await asyncio.sleep(5)
    assert gone.removed
    assert reads_count(world) == 1
