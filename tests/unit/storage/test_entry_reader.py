"""Backlog from disk: refused reads, damaged entries, small caches, topics that go meanwhile."""

from __future__ import annotations

import asyncio
import logging

from headgate.base.names import NamespaceName, parse_topic
from headgate.base.positions import EARLIEST
from headgate.base.units import KIB, MIB, NS_PER_MS, NS_PER_S, NS_PER_US
from headgate.engine.subscription import Subscription
from headgate.ledger import LedgerSettings
from headgate.ledger.format.records import segment_name
from headgate.ledger.read_planner import INDEX_AHEAD
from headgate.metadata.rows import TenantRow
from headgate.storage.entry_reader import OPEN_READS_MAX, READ_ENTRIES_MAX
from headgate.storage.job_times import COUNT_MIN
from headgate.storage.read_pacing import BURST, BURST_NS, COMMIT_WAIT_S, COMMIT_WAITS_MAX
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
async def test_a_read_of_a_segment_that_was_deleted_meanwhile_is_repeated(world: World) -> None:
    """The bytes may be those of another segment, to which the file was given: no damage."""
    await store(world, b"a", b"b")
    log = world.broker.log
    has, log.has_segment = log.has_segment, lambda _segment: False  # type: ignore[method-assign]
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    await asyncio.sleep(1.5)
    assert not consumer.queue
    assert "was deleted while it was read" in subscription(world).read_failed
    log.has_segment = has  # type: ignore[method-assign]
    assert await take(consumer, 2) == [b"a", b"b"]


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


@played(ledger=LedgerSettings(segment_bytes=64 * KIB, index_cache_bytes=6_000))
async def test_entries_with_more_blocks_of_index_than_the_cache_holds(world: World) -> None:
    """Each read of blocks evicted those that the one before had brought, without end."""
    for number in range(20):  # each has a segment of its own, and so a block
        await store(world, b"%d" % number)
        await store(world, *[bytes(10_000)] * 7, topic=f"{TOPIC}-other")
    await asyncio.sleep(30)
    client = await world.connect()
    log = world.broker.engine.topics[TOPIC].log
    await world.broker.logs.main.index.load(log, range(5))  # some of them are in memory already
    consumer = await client.subscribe(TOPIC, "s")
    taken = asyncio.wait_for(take(consumer, 20), 60)
    assert await taken == [b"%d" % number for number in range(20)]


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
    assert world.broker.reader.is_idle()
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


async def publish_each(world: World, pause_s: float, until: asyncio.Event) -> None:
    """Publish to another topic again and again."""
    producer = await (await world.connect()).producer(f"{TOPIC}-beside")
    while not until.is_set():
        await producer.send(b"x")
        await asyncio.sleep(pause_s)


async def arrivals_ns(world: World, consumer: SimConsumer, count: int) -> list[int]:
    """When each of the next messages is taken."""
    taken = []
    for _ in range(count):
        await consumer.receive()
        taken.append(world.clock.monotonic_ns())
    return taken


@played()
async def test_a_backlog_comes_at_once_when_nobody_publishes(world: World) -> None:
    await store(world, *[b"%d" % index for index in range(2_000)])
    await asyncio.sleep(2)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=2_000)
    at_ns = await arrivals_ns(world, consumer, 2_000)
    assert at_ns[-1] - at_ns[0] < 100 * NS_PER_MS
    assert world.broker.engine.topics[TOPIC].entries_read == 2_000


@played()
async def test_beside_publishes_a_burst_comes_in_slices_and_a_backlog_as_it_can(
    world: World,
) -> None:
    await store(world, *[b"%d" % index for index in range(12_000)])
    done = asyncio.Event()
    beside = asyncio.create_task(publish_each(world, 0.001, done))
    await (await world.connect()).subscribe(TOPIC, "s", queue_size=12_000)
    topic = world.broker.engine.topics[TOPIC]
    read = [0]
    step_s = 0.0005
    while read[-1] < 12_000:
        await asyncio.sleep(step_s)
        read.append(topic.entries_read)
    done.set()
    await beside
    assert topic.entries_read == 12_000
    runs = world.broker.log.topic(topic.log.number).live_runs()
    # A read ends with a run. One of the index serves the next four reads.
    reads_max = 12_000 / READ_ENTRIES_MAX + len(runs)
    assert reads_count(world) <= reads_max + reads_max / INDEX_AHEAD
    burst = [count for count in read if count < 800]
    samples = int(BURST.pause_s / step_s)
    steps = [later - at for at, later in zip(burst, burst[samples - 1 :], strict=False)]
    assert max(steps) == BURST.entries_max
    slices = BURST_NS / NS_PER_S / (BURST.pause_s + COMMIT_WAITS_MAX * COMMIT_WAIT_S)
    assert read[int(BURST_NS / NS_PER_S / step_s)] >= (slices - 5) * BURST.entries_max
    assert len(read) * step_s < BURST_NS / NS_PER_S + 0.25


async def create_tenant(world: World, tenant: str) -> str:
    """Create a tenant with a namespace; returns the name of a topic in it."""
    broker = world.broker
    row = TenantRow(allowed_clusters=("standalone",))
    await broker.commit(broker.catalog.plan_create_tenant(tenant, row))
    await broker.commit(broker.catalog.plan_create_namespace(NamespaceName(tenant, "n")))
    return f"persistent://{tenant}/n/t"


async def readers_of_small_topics(world: World, count: int) -> list[SimConsumer]:
    """Consumers of topics with two entries each, which wait until the read lane is thawed."""
    topics = [f"{TOPIC}-{index}" for index in range(count)]
    for topic in topics:
        await store(world, b"first", b"second", topic=topic)
    client = await world.connect()
    world.lanes[1].freeze()
    consumers = [await client.subscribe(topic, "s") for topic in topics]
    await asyncio.sleep(0.1)
    return consumers


@played()
async def test_small_reads_share_a_slice(world: World) -> None:
    lane = world.lanes[1]
    lane.latency_ns_min = lane.latency_ns_max = NS_PER_US
    consumers = await readers_of_small_topics(world, 15)
    lane.thaw()
    taken = asyncio.gather(*[take(consumer, 2) for consumer in consumers])
    # With a slice for each it would take 15 rests.
    assert await asyncio.wait_for(taken, 8 * BURST.pause_s)


@played()
async def test_a_reader_that_was_moved_elsewhere_does_not_wait_for_what_it_left(
    world: World,
) -> None:
    await store(world, *[b"%d" % index for index in range(2_000)])
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=1)
    assert await take(consumer, 1) == [b"0"]
    subscription(world).skip_to(1_500)
    consumer.flow(1)
    while (await take(consumer, 1)) != [b"1500"]:
        consumer.flow(1)
    assert world.broker.engine.topics[TOPIC].entries_read < 512 + 512


@played()
async def test_a_read_ahead_that_meets_damage_says_nothing_yet(world: World) -> None:
    await store(world, *[b"entry number %03d" % index for index in range(100)])
    damage(world, b"entry number 040")
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=8)
    await take(consumer, 8)
    await asyncio.sleep(0.1)
    assert subscription(world).read_failed == ""
    consumer.flow(100)
    await asyncio.sleep(0.1)
    assert "entry 40 of topic" in subscription(world).read_failed
    subscription(world).skip_to(41)
    assert subscription(world).read_failed == ""
    assert len(await take(consumer, 32 + 59)) == 91


@played()
async def test_nothing_is_read_after_the_end(world: World) -> None:
    await store(world, *[b"%d" % index for index in range(2_000)])
    broker = world.broker
    await (await world.connect()).subscribe(TOPIC, "s", queue_size=2_000)
    await asyncio.sleep(0.002)
    await broker.close()
    topic = broker.engine.topics[TOPIC]
    read = topic.entries_read
    await asyncio.sleep(1)
    assert broker.reader.is_idle()
    assert topic.entries_read == read < 2_000
    assert reads_count(world) <= 1


@played()
async def test_more_readers_than_may_read_at_once(world: World) -> None:
    consumers = await readers_of_small_topics(world, OPEN_READS_MAX + 10)
    lane = world.lanes[1]
    assert 2 < len(lane.pending_work()) == lane.at_once(OPEN_READS_MAX)
    world.lanes[1].thaw()
    for consumer in consumers:
        assert await take(consumer, 2) == [b"first", b"second"]
    await asyncio.sleep(0.1)
    assert world.broker.reader.is_idle()


@played()
async def test_on_a_slow_disk_few_reads_are_on_the_lane(world: World) -> None:
    """Sixteen were, of up to 512 reads of the index each: whoever came waited for them."""
    lane = world.lanes[1]
    lane.latency_ns_min = lane.latency_ns_max = 40 * NS_PER_MS
    lane.submit(lambda: None, lambda *_: None)
    await asyncio.sleep(0.1)
    consumers = await readers_of_small_topics(world, OPEN_READS_MAX)
    assert len(lane.pending_work()) == COUNT_MIN
    lane.thaw()
    for consumer in consumers:
        assert await take(consumer, 2) == [b"first", b"second"]


@played(ledger=LedgerSettings(extent_bytes=512))
async def test_thousands_of_reads_of_one_tenant_keep_no_other_one_waiting(world: World) -> None:
    topic = await create_tenant(world, "globex")
    await store(world, b"first", b"second", topic=topic)
    await readers_of_small_topics(world, 5 * OPEN_READS_MAX)
    consumer = await (await world.connect()).subscribe(topic, "s")
    world.lanes[1].thaw()
    reads_before = reads_count(world)
    assert await take(consumer, 2) == [b"first", b"second"]
    assert reads_count(world) - reads_before <= 2 * OPEN_READS_MAX


@played()
async def test_long_reads_of_one_tenant_keep_no_other_one_waiting(world: World) -> None:
    """Each of them was decoded a little at a time, so the first of 16 ended when nearly all had."""
    topic = await create_tenant(world, "globex")
    await store(world, b"first", b"second", topic=topic)
    entries_count = 2 * OPEN_READS_MAX * READ_ENTRIES_MAX
    for start in range(0, entries_count, 1_000):
        await store(world, *[b"%d" % at for at in range(start, min(start + 1_000, entries_count))])
    client = await world.connect()
    ids = world.broker.engine.topics[TOPIC].log
    readers = [
        await client.subscribe(
            TOPIC, f"r{at}", durable=False, start=ids.position(at), queue_size=0, earliest=False
        )
        for at in range(0, entries_count, READ_ENTRIES_MAX)
    ]
    consumer = await (await world.connect()).subscribe(topic, "s", queue_size=0)
    world.lanes[1].freeze()
    for reader in readers:
        reader.flow(READ_ENTRIES_MAX)
    await asyncio.sleep(0.1)
    consumer.flow(2)
    await asyncio.sleep(0.1)
    world.lanes[1].thaw()
    assert await take(consumer, 2) == [b"first", b"second"]
    assert world.broker.engine.topics[TOPIC].entries_read < 4 * READ_ENTRIES_MAX
    await asyncio.sleep(60)
    assert world.broker.reader.is_idle()
    assert not world.broker.reader._in_hand


@played()
async def test_a_damaged_entry_is_named_once(world: World) -> None:
    named: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: named.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("headgate.reads")
    logger.addHandler(handler)
    await store(world, *[b"entry number %03d" % index for index in range(10)])
    damage(world, b"entry number 004")
    client = await world.connect()
    for name in ("one", "two"):
        assert len(await take(await client.subscribe(TOPIC, name), 4)) == 4
    await asyncio.sleep(1)
    logger.removeHandler(handler)
    assert len(named) == 1
    assert "entry 4 of topic" in named[0]


@played()
async def test_what_is_trimmed_while_it_is_read_is_no_damage(world: World) -> None:
    """Its place in the file may have been given back to the file system meanwhile."""
    await store(world, b"first", b"second")
    world.lanes[1].freeze()
    client = await world.connect()
    reader = await client.reader(TOPIC, EARLIEST)
    await asyncio.sleep(0.1)
    topic, log = world.broker.engine.topics[TOPIC], world.broker.log
    of_topic = log.topic(topic.log.number)
    segment = of_topic.live_runs()[0].segment
    log.roll_ledger(of_topic, 0)
    log.stage_trim(of_topic, 2)
    await world.broker.when_durable()
    file = world.fs.open(f"{DIRECTORY}/{segment_name(segment)}", writable=True)
    file.write_at(64, [bytes(file.size() - 64)])
    world.lanes[1].thaw()
    await asyncio.sleep(1)
    assert not [*world.broker.reader.damaged_entries(of_topic.number)]
    await (await client.producer(TOPIC)).send(b"third")
    assert (await reader.receive()).payload == b"third"
