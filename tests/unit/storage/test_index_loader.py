"""Clients of topics whose index is on the disk: no look-up of theirs reads on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.base.units import KIB, MS_PER_S, NS_PER_MS, NS_PER_US
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition, AtTime, OlderThan
from headgate.ledger import (
    BlockKey,
    BlockMissingError,
    FetchedBlock,
    LedgerSettings,
    TopicGoneError,
)
from headgate.ledger.format.records import segment_of_name
from headgate.ledger.index.footer import read_directory
from headgate.ledger.index.index_block import BLOCK_ENTRIES
from headgate.ledger.statistics import IndexUse
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import BacklogQuota, DispatchRate
from headgate.storage.fair_lane import IN_LANE_MAX
from headgate.storage.index_loader import TRIES_MAX
from headgate.testing import ManualClock, World
from headgate.testing.errors import RefusedError
from headgate.testing.world import DIRECTORY
from headgate.wire.codes import AckType
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)
COUNT = 4_000
LEDGER = LedgerSettings(segment_bytes=64 * KIB, checkpoint_bytes=64 * KIB, index_cache_bytes=60_000)
"""The cache holds eleven blocks, and the topic has more than 30."""
ON_DISK = played(ledger=LEDGER, settings={"managedLedgerCacheSizeMB": "1"})


async def store(
    world: World, count: int = COUNT, topic: str = TOPIC, messages: Sequence[bytes] = ()
) -> Topic:
    """Publish, batches of ``messages`` if there are any; the index of all but the newest entries is
    on the disk then."""
    client = await world.connect()
    producer = await client.producer(topic)
    for first in range(0, count, 500):
        batch = range(first, min(first + 500, count))
        await asyncio.gather(
            *[producer.send_nowait(b"%d" % index, batch=messages) for index in batch]
        )
        await asyncio.sleep(1)
    client.close()
    await asyncio.sleep(5)
    found = world.broker.engine.topics[topic]
    assert found.log.memory_first > count // 2
    return found


def use(world: World) -> IndexUse:
    return world.broker.log.index_use()


def check(world: World) -> None:
    """No look-up read at once, and the memory is bounded."""
    assert use(world).read_at_once == 0
    assert use(world).size_bytes <= LEDGER.index_cache_bytes


def forget(world: World) -> None:
    """Empty the cache, as reads of other topics do."""
    world.broker.log._state.blocks.clear()


def subscription(world: World, name: str = "s") -> Subscription:
    return world.broker.engine.topics[TOPIC].subscriptions[name]


def watched_reads(world: World, read_ns: int) -> list[list[BlockKey]]:
    """The blocks that each job of the lane reads from now on, on a disk that takes ``read_ns`` for
    each."""
    reads: list[list[BlockKey]] = []
    managed, clock = world.broker.logs.main, ManualClock()
    fetch_index = managed.log.fetch_index
    managed.index._clock = managed.reader._clock = clock

    def fetch(keys: Sequence[BlockKey], is_enough: Callable[[], bool]) -> list[FetchedBlock]:
        def counted() -> bool:
            clock.advance(read_ns)
            return is_enough()

        found = fetch_index(keys, counted)
        reads.append([each.key for each in found])
        return found

    managed.log.fetch_index = fetch
    return reads


def damage_blocks(world: World, *, records: bool = False) -> None:
    """Change a byte of each block of the index, and of each record if wanted."""
    for name in world.fs.list_directory(DIRECTORY):
        segment = segment_of_name(name)
        if segment is None:
            continue
        file = world.fs.open(f"{DIRECTORY}/{name}", writable=True)
        directory = read_directory(file, segment, file.size())
        for run in directory.runs if directory is not None else ():
            for block in range(run.blocks):
                file.write_at(run.place_of(block) + 40, [b"\xff\xff\xff"])
            for at in range(100, directory.data_end, 50) if records and directory else ():
                file.write_at(at, [b"\xff" * 4])


@ON_DISK
async def test_a_backlog_is_delivered_and_acknowledged(world: World) -> None:
    topic = await store(world)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=300)
    for index in range(COUNT):
        message = await consumer.receive()
        assert message.payload == b"%d" % index
        consumer.ack_nowait(message.position)
    await asyncio.sleep(1)
    assert subscription(world).acks.mark_delete == COUNT - 1
    assert subscription(world).backlog_messages == subscription(world).backlog_bytes == 0
    assert use(world).misses >= topic.log.memory_first // BLOCK_ENTRIES
    check(world)


@ON_DISK
async def test_acknowledgements_of_entries_whose_index_is_gone_wait_for_it(world: World) -> None:
    await store(world)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=3_000)
    positions = [(await consumer.receive()).position for _ in range(2_000)]
    forget(world)
    await consumer.ack(*positions[0:2_000:100])
    one = subscription(world)
    assert (one.done_entries, one.acks.mark_delete) == (20, 0)
    assert one.backlog_messages == COUNT - 20
    forget(world)
    await consumer.ack(*positions[1:500])
    assert one.acks.mark_delete == 500
    forget(world)
    assert one.oldest_age_ms() is not None  # known since the acknowledgement
    check(world)


@ON_DISK
async def test_acknowledgements_of_messages_of_batches_wait_as_well(world: World) -> None:
    await store(world, messages=[b"a", b"b", b"c"])
    client = await world.connect()
    shared = await client.subscribe(TOPIC, "s", queue_size=9_000)
    single = await client.subscribe(TOPIC, "e", kind=SubscriptionType.EXCLUSIVE, queue_size=9_000)
    positions = [(await shared.receive()).position for _ in range(2_000)]
    forget(world)
    await asyncio.gather(*[shared.ack_part(at, 0b010) for at in positions[:2_000:100]])
    one = subscription(world)
    assert (one.done_entries, one.done_messages) == (0, 40)
    forget(world)
    with pytest.raises(RefusedError, match="leaves message 3"):
        await shared.ack_part(positions[100], 0b1000)
    for position in positions[100:700:100]:
        forget(world)
        await shared.ack_part(position, 0b101)
    assert (one.done_entries, one.done_messages) == (6, 46)
    two = subscription(world, "e")
    forget(world)
    await single.ack_part(positions[0], 0b110, AckType.CUMULATIVE)
    forget(world)
    await single.ack_part(positions[1_500], 0b110, AckType.CUMULATIVE)
    assert (two.done_entries, two.done_messages) == (1_500, 4_501)
    forget(world)
    await single.seek(position=positions[700], left_mask=0b100)
    assert (two.done_entries, two.done_messages) == (700, 2_102)
    check(world)


@ON_DISK
async def test_a_cumulative_acknowledgement_waits_as_well(world: World) -> None:
    await store(world)
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.EXCLUSIVE, queue_size=3_000)
    positions = [(await consumer.receive()).position for _ in range(2_000)]
    forget(world)
    await consumer.ack_through(positions[1_500])
    assert subscription(world).done_messages == 1_501
    check(world)


@ON_DISK
async def test_an_acknowledgement_that_waits_is_void_after_a_seek(world: World) -> None:
    await store(world)
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=3_000)
    positions = [(await consumer.receive()).position for _ in range(1_000)]
    forget(world)
    world.lanes[1].freeze()
    consumer.ack_nowait(*positions[600:800])
    await asyncio.sleep(0.1)
    seek = asyncio.create_task(consumer.seek(position=positions[300]))
    await asyncio.sleep(0.1)
    world.lanes[1].thaw()
    await seek
    await asyncio.sleep(1)
    assert subscription(world).done_entries in (300, 500)
    check(world)


@ON_DISK
async def test_an_acknowledgement_that_waits_while_its_topic_goes_is_not_confirmed(
    world: World,
) -> None:
    await store(world)
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=3_000)
    positions = [(await consumer.receive()).position for _ in range(1_000)]
    forget(world)
    world.lanes[1].freeze()
    acks = [
        asyncio.create_task(consumer.ack(*positions[200:300])),
        asyncio.create_task(consumer.ack_through(positions[500])),
    ]
    await asyncio.sleep(0.1)
    topic = subscription(world).topic
    topic.fence()
    world.broker.engine.unload_topic(topic)
    world.broker.registry.get(NAME)
    world.lanes[1].thaw()
    for ack in acks:
        with pytest.raises(RefusedError):
            await ack
    assert subscription(world).done_entries == 0


@ON_DISK
async def test_a_report_on_the_disk_is_answered_while_one_of_its_topics_is_deleted(
    world: World,
) -> None:
    await store(world)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=1_000)
    await consumer.ack(*[(await consumer.receive()).position for _ in range(450)])
    await consumer.close()
    facade = AdminFacade(world.broker, world.observer)
    await asyncio.sleep(10)
    forget(world)
    world.lanes[1].freeze()
    report = asyncio.create_task(facade.explain_storage(5))
    await asyncio.sleep(0.1)
    assert not report.done()
    await facade.delete_topic(NAME, force=True)
    world.lanes[1].thaw()
    assert (await report)["topics"] == []
    check(world)


@played(
    ledger=replace(LEDGER, ledger_entries_max=110, ledger_age_ms_min=0),
    settings={"managedLedgerCacheSizeMB": "1"},
)
async def test_the_ledgers_of_a_topic_are_listed_with_one_look_up(world: World) -> None:
    """Each took one of its own, and a thousand of them were too many."""
    await (await world.connect()).subscribe(TOPIC, "s", queue_size=0)
    topic = await store(world)
    sizes = [ledger.size_bytes for ledger in topic.log.ledgers()]
    assert len(sizes) > 30
    await world.stop()
    await world.start()
    reads = watched_reads(world, 100 * NS_PER_US)
    facade = AdminFacade(world.broker, world.observer)
    await facade.internal_stats(NAME, metadata=False)
    blocks = [key for keys in reads for key in keys]
    assert len(blocks) == len(set(blocks)) > 30
    assert len(reads) <= 2  # on a busy loop each takes as long as an iteration
    found = world.broker.engine.topics[TOPIC].log.ledgers()
    assert [ledger.size_bytes for ledger in found] == sizes
    check(world)


@ON_DISK
async def test_what_a_limit_delays_is_counted_without_reads_at_once(world: World) -> None:
    """The amounts that wait leave out what is acknowledged between, which has its index on the
    disk as well."""
    await store(world)
    client = await world.connect()
    kind = SubscriptionType.SHARED
    consumer = await client.subscribe(TOPIC, "s", kind=kind, queue_size=1_800)
    positions = [(await consumer.receive()).position for _ in range(1_800)]
    await consumer.ack(*positions[150::200])
    await consumer.close()
    facade = AdminFacade(world.broker, world.observer)
    rate = DispatchRate(dispatch_throttling_rate_in_msg=10)
    await facade.commit(facade.catalog.plan_topic_policies(NAME, dispatch_rate=rate))
    forget(world)
    consumer = await client.subscribe(TOPIC, "s", kind=kind, queue_size=100)
    await asyncio.sleep(5)
    assert 20 < len(consumer.queue) <= 100
    found = subscription(world)
    assert found.throttled
    assert found.dispatcher.waiting()[0] == COUNT - 9 - len(consumer.queue)
    forget(world)
    await asyncio.sleep(1)
    check(world)


@ON_DISK
async def test_seeks_by_id_and_time_resets_skips_and_expiry(world: World) -> None:
    topic = await store(world)
    client = await world.connect()
    facade = AdminFacade(world.broker, world.observer)
    log = topic.log
    consumer = await client.subscribe(TOPIC, "s", queue_size=1)
    times = {
        ordinal: world.broker.log.look_up(partial(log.received_ms, ordinal))
        for ordinal in (log.memory_first, log.end - 1)
    }
    for ordinal in (1_501, 77):
        forget(world)
        await consumer.seek(position=log.position(ordinal))
        assert subscription(world).done_entries == ordinal
        assert subscription(world).done_messages == ordinal
        consumer = await client.subscribe(TOPIC, "s", queue_size=1)
        assert (await consumer.receive()).payload == b"%d" % ordinal
    client.close()
    await asyncio.sleep(1)
    forget(world)
    await facade.reset_cursor(NAME, "s", AtTime(times[log.memory_first]))
    found = subscription(world).done_entries
    assert 0 < found <= log.memory_first
    forget(world)
    await facade.reset_cursor(NAME, "s", AtPosition(log.position(900)))
    await facade.skip_messages(NAME, "s", 333)
    assert subscription(world).done_entries == 1_233
    forget(world)
    await asyncio.sleep(100)
    age_s = (topic.log_ms - times[log.memory_first]) // MS_PER_S
    assert await facade.expire_messages(NAME, "s", OlderThan(int(age_s)))
    forget(world)
    await facade.create_subscription(NAME, "late", AtPosition(log.position(700)), {})
    assert subscription(world, "late").backlog_entries == COUNT - 700
    forget(world)
    await facade.internal_stats(NAME, metadata=True)
    await facade.clear_backlog(NAME, "s")
    assert subscription(world).backlog_entries == 0
    check(world)


@ON_DISK
async def test_a_skip_that_waits_for_the_index_is_refused_if_its_subscription_goes(
    world: World,
) -> None:
    """It moved the cursor of an unloaded topic, which nobody stored, and said that it was done."""
    await store(world)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=0)
    await consumer.close()
    facade = AdminFacade(world.broker, world.observer)
    forget(world)
    found = subscription(world)
    skips = (
        facade.skip_messages(NAME, "s", 200),
        facade.clear_backlog(NAME, "s"),
        facade.expire_messages(NAME, "s", AtPosition(Position(1, 300))),
    )
    waiting = [asyncio.create_task(skip) for skip in skips]
    for _ in range(5):
        await asyncio.sleep(0)  # they wait for the read lane now
    world.broker.engine.unload_topic(found.topic)
    world.broker.registry.get(NAME)
    for each in waiting:
        with pytest.raises(RefusalError, match="was closed") as refused:
            await each
        assert refused.value.status == 503
    assert subscription(world).backlog_entries == COUNT


@ON_DISK
async def test_what_a_consumer_gives_back_waits_for_its_index(world: World) -> None:
    await store(world)
    client, other = await world.connect(), await world.connect()
    kind = SubscriptionType.SHARED
    consumer = await client.subscribe(TOPIC, "s", kind=kind, queue_size=1_500)
    positions = [(await consumer.receive()).position for _ in range(1_500)]
    second = await other.subscribe(TOPIC, "s", kind=kind, queue_size=0)
    await asyncio.sleep(1)  # it has all that it gave permits for
    consumer.queue.clear()
    forget(world)
    consumer.redeliver(positions[100:1_000:200])
    consumer.flow(5)
    await asyncio.sleep(1)
    again = [int(consumer.queue.popleft().payload) for _ in range(5)]
    assert again == [*range(100, 1_000, 200)]
    forget(world)
    client.close()
    await asyncio.sleep(1)
    held = subscription(world).dispatcher.to_redeliver().entries
    assert held > 2_000
    second.flow(held)
    for index in range(held):
        message = await second.receive()
        assert message.payload == b"%d" % index
    check(world)


@ON_DISK
async def test_what_is_given_back_from_across_the_index_needs_no_larger_cache(
    world: World,
) -> None:
    """The entries that are queued at once need more blocks than the cache holds."""
    topic = await store(world)
    client, other = await world.connect(), await world.connect()
    kind = SubscriptionType.SHARED
    cold = topic.log.memory_first
    consumer = await client.subscribe(TOPIC, "s", kind=kind, queue_size=cold)
    positions = [(await consumer.receive()).position for _ in range(cold)]
    for start in range(0, cold, 500):
        part = range(start, min(start + 500, cold))
        await consumer.ack(*[positions[at] for at in part if at % 60])
    second = await other.subscribe(TOPIC, "s", kind=kind, queue_size=0)
    forget(world)
    client.close()
    await asyncio.sleep(5)
    second.flow(len(range(0, cold, 60)))
    await asyncio.sleep(5)
    again = [int(message.payload) for message in second.queue]
    assert again == list(range(0, cold, 60))
    check(world)


@played(
    ledger=replace(LEDGER, ledger_entries_max=300, ledger_age_ms_min=0),
    settings={"managedLedgerCacheSizeMB": "1"},
)
async def test_trims_look_ahead(world: World) -> None:
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=0)
    topic = await store(world)
    consumer.flow(1_700)
    positions = [(await consumer.receive()).position for _ in range(1_700)]
    forget(world)
    await consumer.ack(*positions)
    forget(world)
    await asyncio.sleep(400)
    assert 0 < topic.log.first <= 1_700
    check(world)
    subscription(world).disconnect_consumers()
    held_bytes = topic.storage_bytes()
    assert held_bytes == topic.log.bytes_before(COUNT) - topic.log.bytes_before(topic.log.first)
    check(world)


@played(
    ledger=LEDGER,
    settings={
        "managedLedgerCacheSizeMB": "1",
        "backlogQuotaDefaultLimitBytes": "60000",
        "backlogQuotaDefaultRetentionPolicy": "consumer_backlog_eviction",
    },
)
async def test_an_eviction_waits_for_the_index(world: World) -> None:
    topic = await store(world)
    client = await world.connect()
    await client.subscribe(TOPIC, "s", queue_size=0)
    client.close()
    forget(world)
    facade = AdminFacade(world.broker, world.observer)
    await facade.reset_cursor(NAME, "s", AtPosition(topic.log.position(topic.log.first)))
    await asyncio.sleep(5)
    assert 0 < subscription(world).backlog_bytes <= 60_000
    assert subscription(world).evicted_messages > 500
    check(world)


@ON_DISK
async def test_an_eviction_of_subscriptions_across_the_index_ends_with_a_small_cache(
    world: World,
) -> None:
    """All of them together need more blocks than the cache holds. The eviction read the same ones
    for ever."""
    topic = await store(world)
    facade = AdminFacade(world.broker, world.observer)
    log = topic.log
    for index in range(40):
        at = AtPosition(log.position(index * log.memory_first // 40))
        await facade.create_subscription(NAME, f"s{index}", at, {})
    forget(world)
    jobs = world.lanes[1].jobs_count
    quota = BacklogQuota(limit_size=2_000, policy="consumer_backlog_eviction")
    quotas = {"destination_storage": quota}
    await facade.commit(facade.catalog.plan_topic_policies(NAME, backlog_quotas=quotas))
    await asyncio.sleep(5)
    assert world.lanes[1].jobs_count - jobs < 3 * 40
    for each in topic.subscriptions.values():
        assert 0 < each.backlog_bytes <= 2_000
        assert each.evicted_messages > 0
    check(world)


@ON_DISK
async def test_damaged_blocks_are_rebuilt_on_the_read_lane(world: World) -> None:
    await store(world)
    forget(world)
    damage_blocks(world)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=300)
    for index in range(COUNT):
        assert (await consumer.receive()).payload == b"%d" % index
    assert use(world).rebuilt > 10
    assert use(world).lost == use(world).read_at_once == 0


@ON_DISK
async def test_blocks_that_cannot_be_rebuilt_refuse_their_entries(world: World) -> None:
    topic = await store(world)
    forget(world)
    damage_blocks(world, records=True)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=300)
    await asyncio.sleep(5)
    assert not consumer.queue
    assert subscription(world).damaged_entry
    assert use(world).lost > 0
    assert use(world).read_at_once == 0
    assert topic.log.messages_before(topic.log.end) == COUNT


@ON_DISK
async def test_a_disk_that_fails_for_a_while_loses_nothing(world: World) -> None:
    await store(world)
    forget(world)

    def refuse_reads(operation: object) -> None:
        if getattr(operation, "kind", "") == "read":
            raise OSError(5, "input/output error")

    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=300)
    positions = [(await consumer.receive()).position for _ in range(200)]
    forget(world)
    plan, world.disk.plan = world.disk.plan, refuse_reads
    with pytest.raises(StorageError):
        await world.broker.logs.main.index.load(world.broker.engine.topics[TOPIC].log, (1_000,))
    with pytest.raises(Exception, match="input/output error"):
        await consumer.ack(positions[150])
    assert subscription(world).done_entries == 0
    while consumer.queue:
        await consumer.receive()
    await asyncio.sleep(3)
    world.disk.plan = plan
    await consumer.ack(positions[150])
    assert subscription(world).done_entries == 1
    await asyncio.sleep(3)
    for _ in range(500):
        await consumer.receive()
    assert (use(world).lost, use(world).rebuilt, use(world).read_at_once) == (0, 0, 0)


@ON_DISK
async def test_segments_that_go_while_their_index_is_read(world: World) -> None:
    """The topic is trimmed, and its segments are deleted, between the look-up and the read."""
    topic = await store(world)
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=10)
    await consumer.receive()
    forget(world)
    lane = world.lanes[1]
    lane.freeze()
    loader = world.broker.logs.main.index
    waiting = asyncio.create_task(loader.load(topic.log, (600,)))
    await asyncio.sleep(0.1)
    world.broker.log.stage_trim(topic.log, 2_000)
    world.broker.committer.commit_if_idle()
    await asyncio.sleep(30)
    assert topic.log.first == 2_000
    lane.thaw()
    assert await waiting == []  # nothing of it is retained any more
    assert use(world).lost == 0


@ON_DISK
async def test_a_thousand_slow_readers_share_a_cache_of_eleven_blocks(world: World) -> None:
    await store(world)
    client = await world.connect()
    consumers = []
    for index in range(1_000):
        position = world.broker.engine.topics[TOPIC].log.position(index * 3)
        reader = await client.reader(TOPIC, position, name=f"r{index}", queue_size=2)
        consumers.append((reader, index * 3))
    for step in range(3):
        for reader, first in consumers:
            assert (await reader.receive()).payload == b"%d" % (first + step)
    check(world)


@ON_DISK
async def test_a_look_up_that_never_gets_what_it_needs_ends(world: World) -> None:
    topic = await store(world, 2_000)
    loader = world.broker.logs.main.index
    keys = topic.log.missing_blocks(0, 1)  # type: ignore[attr-defined]
    calls = 0

    def never() -> None:
        nonlocal calls
        calls += 1
        raise BlockMissingError(keys)

    with pytest.raises(StorageError, match="changed again and again"):
        await loader.look_up(never)
    assert calls == TRIES_MAX


@ON_DISK
async def test_look_ups_that_lack_the_same_block_share_one_read(world: World) -> None:
    topic = await store(world, 2_000)
    loader, lane, log = world.broker.logs.main.index, world.lanes[1], topic.log
    forget(world)
    done: list[str] = []
    find = partial(log.index_of, (5,))
    before = lane.jobs_count
    for name in ("a", "b", "c"):
        assert not loader.is_looked_up(find, partial(done.append, name))
    await asyncio.sleep(1)
    assert done == ["a", "b", "c"]
    assert lane.jobs_count == before + 1
    assert loader.is_looked_up(find, partial(done.append, "d"))
    assert done == ["a", "b", "c"]


@ON_DISK
async def test_a_look_up_that_cannot_be_awaited_is_repeated_after_an_error(world: World) -> None:
    topic = await store(world, 2_000)
    loader = world.broker.logs.main.index
    forget(world)
    world.lanes[1].fail_next(StorageError("input/output error", retryable=True))
    done: list[int] = []
    assert not loader.is_looked_up(partial(topic.log.index_of, (5,)), partial(done.append, 1))
    await asyncio.sleep(0.5)
    assert done == []
    await asyncio.sleep(1)
    assert done == [1]


@ON_DISK
async def test_the_age_of_the_oldest_message_is_read_and_never_that_of_one_before(
    world: World,
) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    topic = await store(world)
    held = await world.broker.logs.main.index.load(topic.log, (0,))
    exact_ms = topic.log.received_ms(0)
    del held
    forget(world)
    assert topic.log.totals_near(1) == (topic.log.totals(0), False)
    assert topic.log.totals(0).received_ms == 0  # that of the message before the first one
    later_ms = subscription(world).oldest_unacked_ms()
    assert later_ms is not None
    assert exact_ms <= later_ms <= exact_ms + MS_PER_S
    await asyncio.sleep(1)
    assert subscription(world).oldest_unacked_ms() == exact_ms
    forget(world)
    assert subscription(world).oldest_unacked_ms() == exact_ms
    check(world)


@ON_DISK
async def test_look_ups_of_a_topic_that_is_deleted_meanwhile_end(world: World) -> None:
    """They were repeated without end, each with a read, and what the reads brought piled up."""
    topic = await store(world)
    forget(world)
    log, index = topic.log, world.broker.logs.of(topic).index
    reads = world.lanes[1]
    reads.freeze()
    ends: list[bool] = []
    assert not index.is_looked_up(lambda: log.bytes_before(10), lambda: ends.append(True))
    awaited = asyncio.ensure_future(index.look_up(lambda: log.bytes_before(10)))
    await asyncio.sleep(0)
    await world.broker.registry.delete(topic.name, force=True)
    jobs_count = reads.jobs_count
    reads.thaw()
    with pytest.raises(TopicGoneError, match="was deleted while its index was read"):
        await awaited
    await asyncio.sleep(5)
    assert ends == [True]
    assert reads.jobs_count <= jobs_count + 2


@ON_DISK
async def test_a_sweep_does_not_wait_for_the_many_look_ups_of_one_tenant(world: World) -> None:
    """A sweep looks at one topic after the other, so all tenants waited for them."""
    topic = await store(world)
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    await AdminFacade(world.broker, world.observer).skip_messages(NAME, "s", COUNT // 4 + 5)
    index, log = world.broker.logs.of(topic).index, topic.log
    forget(world)
    crowd = [
        asyncio.create_task(index.look_up(partial(log.bytes_before, 1 + 2 * number)))
        for number in range(COUNT // 5)
    ]
    await asyncio.sleep(0)
    forget(world)
    await world.broker.trimming.trim_now(topic)
    assert sum(each.done() for each in crowd) < len(crowd) // 2
    await asyncio.gather(*crowd)
    check(world)


@ON_DISK
async def test_look_ups_all_over_the_index_hold_up_no_other_one(world: World) -> None:
    """A job read all blocks that a look-up lacked: one for each of the 64 ids of an ACK. On a disk
    that takes 10 ms for a read, eight such jobs on the lane are five seconds."""
    topic = await store(world)
    index, log = world.broker.logs.of(topic).index, topic.log
    forget(world)
    reads = watched_reads(world, 10 * NS_PER_MS)
    ordinals = range(0, log.memory_first - BLOCK_ENTRIES, BLOCK_ENTRIES)
    crowd = [asyncio.create_task(index.load(log, ordinals)) for _ in range(2 * IN_LANE_MAX)]
    await asyncio.sleep(0)
    await index.look_up(partial(log.bytes_before, log.memory_first - 1), is_upkeep=True)
    assert sum(map(len, reads)) <= IN_LANE_MAX + 2
    assert not any(each.done() for each in crowd)
    await asyncio.gather(*crowd)


@ON_DISK
async def test_a_caller_that_cannot_await_has_its_blocks_in_pieces(world: World) -> None:
    topic = await store(world)
    index, log = world.broker.logs.of(topic).index, topic.log
    forget(world)
    reads = watched_reads(world, 2 * NS_PER_MS)
    ordinals = tuple(range(0, log.memory_first - BLOCK_ENTRIES, BLOCK_ENTRIES))
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        log.index_of(ordinals)

    ended = asyncio.Event()
    assert not index.is_looked_up(look, ended.set)
    await ended.wait()
    assert looks == 2  # not once for each piece
    assert max(map(len, reads)) == 3  # 5 ms, up to the end of a read
    assert sum(map(len, reads)) == len(ordinals)


@ON_DISK
async def test_a_topic_is_deleted_and_a_client_leaves_between_two_pieces(world: World) -> None:
    topic = await store(world)
    index, log = world.broker.logs.of(topic).index, topic.log
    forget(world)
    reads = watched_reads(world, 10 * NS_PER_MS)
    ordinals = tuple(range(0, log.memory_first - BLOCK_ENTRIES, BLOCK_ENTRIES))
    ends: list[bool] = []
    assert not index.is_looked_up(partial(log.index_of, ordinals), partial(ends.append, True))
    awaited = asyncio.ensure_future(index.load(log, ordinals))
    left = asyncio.ensure_future(index.load(log, ordinals))
    while len(reads) < 6:
        await asyncio.sleep(0.000_1)
    left.cancel()
    await world.broker.registry.delete(topic.name, force=True)
    with pytest.raises(TopicGoneError, match="was deleted while its index was read"):
        await awaited
    await asyncio.sleep(5)
    assert left.cancelled()
    assert ends == [True]
    assert len(reads) < len(ordinals)
    assert not index._waiting
    assert not index._lane._waiting
    assert not index._lane._running
