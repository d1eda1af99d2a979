"""What goes of a topic, and that its room comes back: idle, after a restart, on a full disk."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import HeadgateError
from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, LATEST
from headgate.base.sliced import at_once
from headgate.base.units import KIB, MIB, NS_PER_S
from headgate.broker.sweeps.trimming import FULL_ROUNDS
from headgate.engine import dispatch_shared
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import Retention
from headgate.observe.stats.internal import internal_stats
from headgate.testing import NetworkProfile, SimClient, SimConsumer, World
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.playing import TOPIC, played

OTHER = f"{TOPIC}-other"
SMALL_LEDGERS = LedgerSettings(segment_bytes=64 * 1024, ledger_entries_max=10, ledger_age_ms_min=0)
BODY = b"x" * 10_000
SEGMENT = 256 * KIB
"""An idle log has two of them, and the file of a deleted one for the next."""
SOON = {"retentionCheckIntervalInSeconds": "10"}


def topic_of(world: World, name: str = TOPIC) -> Topic:
    return world.broker.engine.topics[name]


def used(world: World) -> int:
    """Bytes that the files of the log take."""
    return world.fs.used_bytes()


async def publish(client: SimClient, count: int, topic: str = TOPIC) -> None:
    producer = await client.producer(topic)
    for _ in range(count):
        await producer.send(BODY)
    await producer.close()


async def take(consumer: SimConsumer, count: int) -> None:
    """Receive and acknowledge."""
    for _ in range(count):
        await consumer.ack((await consumer.receive()).position)


# -- when the broker trims ----------------------------------------------------------------------


@played(ledger=SMALL_LEDGERS, settings={"retentionCheckIntervalInSeconds": "1000000"})
async def test_a_topic_that_nobody_reads_is_freed_when_its_ledger_is_full(world: World) -> None:
    """No entry follows that would open the next ledger."""
    client = await world.connect()
    await publish(client, 9)
    await asyncio.sleep(60)
    assert topic_of(world).log.first == 0
    await publish(client, 1)
    await asyncio.sleep(60)
    assert topic_of(world).log.first == 10


@played(settings={"retentionCheckIntervalInSeconds": "1000000"})
async def test_much_that_is_published_is_given_up_without_waiting_for_a_check(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    for _ in range(30):
        await publish(client, 30)
        await take(consumer, 30)
        await asyncio.sleep(1)
    assert used(world) < 20 * SEGMENT  # of 34 that were written


@played(settings={"retentionCheckIntervalInSeconds": "1000000"})
async def test_acknowledgements_that_a_look_found_unstored_do_not_need_a_walk(world: World) -> None:
    """Only the first one since a commit asked for a look."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, 20)
    await take(consumer, 17)
    rest = [(await consumer.receive()).position for _ in range(3)]
    world.lanes[0].freeze()
    for position in rest[:2]:
        consumer.ack_nowait(position)
        await asyncio.sleep(1)
    assert topic_of(world).subscriptions["s"].acks_dirty
    await asyncio.sleep(40)
    assert topic_of(world).log.first == 0
    consumer.ack_nowait(rest[2])
    world.lanes[0].thaw()
    await asyncio.sleep(40)
    assert topic_of(world).log.first == 20
    assert world.broker.trimming.found_by_walk == 0


@played(settings={"retentionCheckIntervalInSeconds": "1000000"})
async def test_acknowledged_messages_go_within_a_minute_without_a_walk(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, 20)
    await take(consumer, 20)
    await asyncio.sleep(25)
    assert topic_of(world).log.first == 0  # a subscription may still seek back a little
    await asyncio.sleep(10)
    assert topic_of(world).log.first == 20
    assert world.broker.log.space_use().live_bytes == 0
    assert world.broker.trimming.found_by_walk == 0


@played(settings={"retentionCheckIntervalInSeconds": "1000000"})
async def test_what_came_before_the_first_subscription_goes_without_a_walk(world: World) -> None:
    """It was kept because nobody had subscribed; the subscription begins behind it."""
    client = await world.connect()
    await publish(client, 5)
    await client.subscribe(TOPIC, "s", start=LATEST)
    await asyncio.sleep(35)
    assert topic_of(world).log.first == 5


@played(settings={"retentionCheckIntervalInSeconds": "1000000"}, limit_s=10_000)
async def test_retention_by_time_frees_in_the_minute_in_which_it_is_due(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    broker = world.broker
    await publish(client, 20)
    policy = Retention(retention_time_in_minutes=20, retention_size_in_mb=-1)
    await broker.writer.commit(
        broker.catalog.plan_namespace_policies(parse_topic(TOPIC).namespace, retention=policy)
    )
    await take(consumer, 20)
    await asyncio.sleep(1_180)
    assert topic_of(world).log.first == 0
    await asyncio.sleep(60)
    assert topic_of(world).log.first == 20


@played(settings={"managedLedgerInactiveLedgerRolloverTimeSeconds": "0"}, limit_s=8_000)
async def test_without_an_idle_time_a_ledger_stays_open(world: World) -> None:
    client = await world.connect()
    await (await client.producer(TOPIC)).send(BODY)
    await asyncio.sleep(7_000)
    assert topic_of(world).log.first == 0


@played(limit_s=8_000)
async def test_100_topics_that_got_nothing_for_an_hour_pin_nothing(world: World) -> None:
    """Each in a segment of the one log; half of them have no subscription."""
    client = await world.connect()
    idle = [f"{TOPIC}-{at}" for at in range(100)]
    busy = await client.subscribe(TOPIC, "s")
    producers = []
    for at, name in enumerate(idle):
        if at % 2:
            reader = await client.subscribe(name, "s")
        producers.append(producer := await client.producer(name))
        await producer.send(b"tick")
        if at % 2:
            await reader.ack((await reader.receive()).position)
        await publish(client, 25)
        await take(busy, 25)
    await asyncio.sleep(3_700)
    assert used(world) <= 4 * SEGMENT
    use = world.broker.log.space_use()
    assert (use.live_bytes, use.pinned_bytes) == (0, 0)


# -- by whole ledgers --------------------------------------------------------------------------


async def publish_some(world: World, count: int, size: int = 10) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(count):
        await producer.send(b"x" * size)
    client.close()


def held(world: World) -> tuple[int, int]:
    log = world.broker.engine.topics[TOPIC].log
    return log.first, log.end


@played(ledger=SMALL_LEDGERS)
async def test_acknowledged_ledgers_go(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish_some(world, 35)
    await asyncio.sleep(130)
    assert held(world) == (0, 35)
    messages = [await consumer.receive() for _ in range(35)]
    await consumer.ack_through(messages[24].position)
    await asyncio.sleep(130)
    assert held(world) == (20, 35)
    world.crash()
    await world.start()
    assert held(world) == (20, 35)


@played(ledger=SMALL_LEDGERS)
async def test_a_reader_holds_nothing_back(world: World) -> None:
    client = await world.connect()
    reader = await client.subscribe(TOPIC, "r", durable=False, queue_size=0)
    await publish_some(world, 35)
    await world.broker.trimming.trim()
    await asyncio.sleep(0.1)
    assert held(world) == (30, 35)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["r"]
    assert subscription.backlog_messages == 5
    reader.flow(10)
    await asyncio.sleep(0.1)
    assert len(reader.queue) == 5


@played(ledger=SMALL_LEDGERS)
async def test_what_a_cursor_passed_stays_until_its_consumers_have_forgotten_it(
    world: World,
) -> None:
    """They look its messages up, perhaps on the disk: trimmed entries have none."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    await publish_some(world, 35)
    await asyncio.sleep(0.1)
    assert len(consumer.queue) == 35
    subscription = topic_of(world).subscriptions["s"]
    dispatcher = subscription.dispatcher
    assert isinstance(dispatcher, SharedDispatcher)
    dispatcher._awaits_index = True  # as if a disk took its time
    dispatcher._moved = dispatcher._passed()
    subscription.finish_through(24)
    await world.broker.trimming.trim()
    await asyncio.sleep(1)
    assert held(world) == (0, 35)
    dispatcher._index_read(subscription)
    await asyncio.sleep(60)
    assert held(world) == (20, 35)
    assert dispatcher.in_flight_messages() == subscription.backlog_messages == 10


@played(ledger=SMALL_LEDGERS)
async def test_who_comes_while_entries_go_gets_what_is_left(world: World) -> None:
    """What a Shared subscription gets of the others would be given back when their index is gone:
    that ended the broker."""
    client = await world.connect()
    await publish_some(world, 35)
    log = topic_of(world).log
    commits = world.lanes[0]
    commits.freeze()
    await world.broker.trimming.trim()
    reader = await client.subscribe(
        TOPIC, "r", durable=False, start=EARLIEST, kind=SubscriptionType.SHARED
    )
    await asyncio.sleep(1)
    assert (log.first, log.trim_end) == (0, 30)  # staged, and not durable
    assert len(reader.queue) == 5
    commits.thaw()
    await asyncio.sleep(5)
    assert held(world) == (30, 35)
    subscription = topic_of(world).subscriptions["r"]
    assert subscription.dispatcher.in_flight_messages() == subscription.backlog_messages == 5


@played(ledger=SMALL_LEDGERS)
async def test_nothing_goes_while_a_reader_forgets_very_many_entries(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "r", durable=False, kind=SubscriptionType.SHARED)
    await publish_some(world, 35)
    await asyncio.sleep(0.1)
    subscription = topic_of(world).subscriptions["r"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch_shared, "MOVED_PER_UNIT", 1)
        patch.setattr(dispatch_shared, "JOB_STEP_UNITS_MAX", 1)
        await world.broker.trimming.trim_now(topic_of(world))
        assert subscription.dispatcher.needs_passed
        assert topic_of(world).log.trim_end == 0
        await asyncio.sleep(1)
    await asyncio.sleep(60)
    assert held(world) == (30, 35)
    assert subscription.dispatcher.in_flight_messages() == subscription.backlog_messages == 5


@played(ledger=SMALL_LEDGERS)
async def test_nothing_goes_that_has_no_receipt_yet(world: World) -> None:
    """The commit with such a trim waits for these receipts, and all other tenants for it. What is
    answered goes: on a busy broker some receipt of a busy topic may always wait."""
    await publish_some(world, 35)
    topic = topic_of(world)
    topic.publishing.visible = 25  # as while the receipts of a large commit are sent
    await world.broker.trimming.trim_now(topic)
    assert topic.log.trim_end == 20
    topic.publishing.visible = 35
    await asyncio.sleep(60)
    assert held(world) == (30, 35)


@played(
    network=NetworkProfile(0, 0, piece_bytes_max=MIB, window_bytes=16 * MIB),
    settings={"maxPendingPublishRequestsPerConnection": "100000"},
)
async def test_a_truncation_begins_when_all_is_answered(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    lane = world.lanes[0]
    lane.latency_ns_min = lane.latency_ns_max = 1
    lane.freeze()
    sent = [producer.send_nowait(b"goes alone")]
    await asyncio.sleep(0.1)
    sent += [producer.send_nowait(b"x") for _ in range(20_000)]
    await asyncio.sleep(0.5)
    topic = topic_of(world)

    async def truncate() -> int:
        await world.broker.trimming.begin_truncation(topic)
        return topic.publishing.pending_count

    truncating: list[asyncio.Task[int]] = []
    sent[1].add_done_callback(lambda _: truncating.append(world.loop.create_task(truncate())))
    lane.thaw()
    await asyncio.gather(*sent)
    assert await truncating[0] == 0


@played(ledger=SMALL_LEDGERS)
async def test_a_truncation_takes_nothing_that_found_no_room(world: World) -> None:
    """What is stored in its place is published later."""
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"stored")
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x") for _ in range(5)]
    await asyncio.sleep(0.1)
    truncating = world.loop.create_task(world.broker.trimming.begin_truncation(topic_of(world)))
    await asyncio.sleep(0.1)
    writes = iter([0])
    world.disk.plan = lambda operation: next(writes, None) if operation.kind == "write" else None
    world.lanes[0].thaw()
    assert await truncating == topic_of(world).log.end == 1
    await asyncio.gather(*sent)
    assert topic_of(world).log.end == 6


@pytest.mark.parametrize(
    ("minutes", "megabytes", "first"),
    [
        pytest.param(10, -1, 10, id="by age"),
        pytest.param(-1, 1, 20, id="by size"),
        pytest.param(10, 1, 20, id="whichever comes first"),
        pytest.param(-1, -1, 0, id="for ever"),
        pytest.param(0, 0, 30, id="not at all"),
    ],
)
def test_retention_keeps_what_it_says(minutes: int, megabytes: int, first: int) -> None:
    """Ten entries an hour old, then 25 of a tenth of a megabyte."""

    async def story(world: World) -> None:
        await publish_some(world, 10)
        world.clock.advance(3_600 * NS_PER_S)
        await publish_some(world, 25, size=105_000)
        broker = world.broker
        policy = Retention(retention_time_in_minutes=minutes, retention_size_in_mb=megabytes)
        await broker.writer.commit(
            broker.catalog.plan_namespace_policies(parse_topic(TOPIC).namespace, retention=policy)
        )
        await broker.trimming.trim()
        await asyncio.sleep(0.1)
        assert held(world) == (first, 35)

    ledger = LedgerSettings(segment_bytes=256 * 1024, ledger_entries_max=10, ledger_age_ms_min=0)
    keep = {"defaultRetentionTimeInMinutes": "-1", "defaultRetentionSizeInMB": "-1"}
    played(ledger=ledger, settings=keep, limit_s=4_000)(story)()


# -- room comes back ---------------------------------------------------------------------------


@played(settings=SOON)
async def test_an_idle_topic_gives_its_room_back(world: World) -> None:
    """Nothing is published any more: the last ledger goes all the same."""
    client = await world.connect()
    before = used(world)
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, 200)
    assert used(world) - before > 5 * SEGMENT
    await take(consumer, 200)
    await asyncio.sleep(30)
    assert used(world) <= 3 * SEGMENT + 16 * KIB
    assert world.broker.log.statistics().segments <= 2


@played(settings=SOON)
async def test_small_topics_that_go_on_pin_nothing(world: World) -> None:
    """Each of their ledgers is closed as soon as something of it is done with."""
    client = await world.connect()
    before = used(world)
    consumer = await client.subscribe(TOPIC, "s")
    small = await client.subscribe(OTHER, "s")
    producer = await client.producer(OTHER)
    for _ in range(20):
        await publish(client, 20)
        await producer.send(b"tick")
        await take(consumer, 20)
        # One is always owed, so that there is never nothing owed when a sweep comes.
        if len(small.queue) > 1:
            await small.ack((await small.receive()).position)
        await asyncio.sleep(2)
    await asyncio.sleep(30)
    assert used(world) <= before + 2 * SEGMENT


@played(settings=SOON)
async def test_ids_and_places_stay_what_clients_saw(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, 3)
    topic = topic_of(world)
    last = topic.log.position(2)
    await take(consumer, 3)
    await asyncio.sleep(30)

    def look() -> None:
        log = topic_of(world).log
        assert (log.first, log.end) == (3, 3)
        stats = at_once(internal_stats(topic_of(world), metadata=False))
        assert stats.last_confirmed_entry == str(last)
        assert stats.cursors["s"].mark_delete_position == str(last)
        assert (stats.number_of_entries, stats.current_ledger_entries) == (0, 0)
        assert [ledger.entries for ledger in stats.ledgers] == [0]
        assert stats.ledgers[0].ledger_id > last.ledger_id
        # Whoever comes back with an id that it saw goes on behind it.
        for position in (EARLIEST, last, last._replace(entry_id=last.entry_id + 1)):
            assert log.ordinal_at_or_after(*position) == 3
        assert log.position(3).ledger_id == stats.ledgers[0].ledger_id

    look()
    client.close()
    for end in (world.stop, None):
        if end is None:
            world.crash()
        else:
            await end()
        await world.start()
        look()
    client = await world.connect()
    seen = topic_of(world).log.position(3)
    await publish(client, 1)
    log = topic_of(world).log
    assert log.position(3) >= seen
    assert log.position(3).entry_id == 0
    assert log.ordinal_at_or_after(*last) == 3
    consumer = await client.subscribe(TOPIC, "s")
    assert (await consumer.receive()).position == log.position(3)


@played(settings=SOON)
async def test_a_ledger_that_was_closed_while_idle_is_used_by_the_next_entry(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, 1)
    await take(consumer, 1)
    await asyncio.sleep(30)
    promised = topic_of(world).log.position(1)
    await publish(client, 1)
    assert topic_of(world).log.position(1) == promised


@played(settings=SOON)
async def test_what_was_never_subscribed_to_stays_until_its_ledger_is_old(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await producer.send(BODY)
    await asyncio.sleep(3_000)
    assert topic_of(world).log.first == 0
    late = await client.subscribe(TOPIC, "late")
    assert (await late.receive()).payload == BODY


@played(settings=SOON, limit_s=20_000)
async def test_an_idle_ledger_goes_when_it_is_old(world: World) -> None:
    client = await world.connect()
    await (await client.producer(TOPIC)).send(BODY)
    await asyncio.sleep(3_700)
    assert topic_of(world).log.first == 1


@played(settings=SOON)
async def test_a_reader_that_lags_keeps_the_last_ledger(world: World) -> None:
    """As in Pulsar: only what is closed by age or size goes past a reader."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    reader = await client.reader(TOPIC, EARLIEST, queue_size=0)
    await publish(client, 5)
    await take(consumer, 5)
    await asyncio.sleep(30)
    assert topic_of(world).log.first == 0
    reader.flow(5)
    await take(reader, 5)
    await asyncio.sleep(30)
    assert topic_of(world).log.first == 5


@played(settings={"retentionCheckIntervalInSeconds": "1000000"}, capacity_bytes=6 * SEGMENT)
async def test_a_full_disk_is_free_as_soon_as_its_messages_are_acknowledged(world: World) -> None:
    await fill_and_drain(world)


@played(
    settings={"retentionCheckIntervalInSeconds": "1000000"},
    capacity_bytes=6 * SEGMENT,
    ledger=LedgerSettings(segment_bytes=SEGMENT, checkpoint_records=1 << 30),
)
async def test_a_full_disk_is_free_when_only_a_checkpoint_frees_it(world: World) -> None:
    await fill_and_drain(world)


@played(settings={"retentionCheckIntervalInSeconds": "1000000"}, capacity_bytes=6 * SEGMENT)
async def test_a_disk_without_a_single_byte_left_is_freed_too(world: World) -> None:
    """Something else on the disk takes what the log leaves."""
    await fill_and_drain(world, squeeze=True)


def test_a_look_at_a_topic_passes_only_the_cursors_that_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed: Counter[str] = Counter()
    trimmed = Subscription.trimmed

    def counted_trimmed(subscription: Subscription) -> None:
        passed["trimmed"] += 1
        trimmed(subscription)

    def is_durable(subscription: Subscription) -> bool:
        passed["looked at"] += 1
        return subscription.cursor_id is not None

    @played(settings={"retentionCheckIntervalInSeconds": "1000000"})
    async def story(world: World) -> None:
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s")
        await publish(client, 20)
        await take(consumer, 20)
        topic = topic_of(world)
        for number in range(2_000):
            topic.add_subscription(f"reader-{number}", AckSet(19), cursor_id=None)
        await asyncio.sleep(1)
        with monkeypatch.context() as patch:
            patch.setattr(Subscription, "trimmed", counted_trimmed)
            patch.setattr(Subscription, "is_durable", property(is_durable))
            await asyncio.sleep(40)
        assert topic.log.first == 20

    story()
    assert passed["trimmed"] == 0, "no cursor was before what was trimmed"
    assert passed["looked at"] < 200


@played(settings={"retentionCheckIntervalInSeconds": "1000000"}, capacity_bytes=6 * SEGMENT)
async def test_a_full_disk_is_freed_after_a_restart(world: World) -> None:
    await fill_and_drain(world, restart=True)


@played(settings={"retentionCheckIntervalInSeconds": "1000000"}, capacity_bytes=6 * SEGMENT)
async def test_what_nobody_subscribed_to_goes_on_a_disk_that_stays_full(world: World) -> None:
    """Not within the first seconds; what waits is stored then."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    sent = []
    while not world.broker.log.full:
        sent.append(producer.send_nowait(BODY))
        await asyncio.sleep(0.01)
    await asyncio.sleep(FULL_ROUNDS - 2)
    assert world.broker.log.full
    assert topic_of(world).log.first == 0
    await asyncio.sleep(4)
    assert not world.broker.log.full
    assert topic_of(world).log.first > 50
    assert len(await asyncio.gather(*sent)) == len(sent)


async def fill_and_drain(world: World, *, squeeze: bool = False, restart: bool = False) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    for _ in range(3):
        sent = await fill(world, client)
        assert sent > 50
        if squeeze:
            world.fs.capacity_bytes = used(world)
        if restart:
            world.crash()
            await world.start()
            client = await world.connect()
            consumer = await client.subscribe(TOPIC, "s", queue_size=0)
        consumer.flow(sent)
        await take(consumer, sent)
        await asyncio.sleep(5)
        world.fs.capacity_bytes = 6 * SEGMENT
        await asyncio.sleep(2)
        assert not world.broker.log.full
        assert used(world) <= 4 * SEGMENT


async def fill(world: World, client: SimClient) -> int:
    """Publish until the disk takes no more; returns how many entries it took."""
    count = 0
    while not world.broker.log.full:
        producer = await client.producer(TOPIC)
        try:
            while not world.broker.log.full:
                await producer.send(BODY)
                count += 1
        except HeadgateError:
            pass
    return count
