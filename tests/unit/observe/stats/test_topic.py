"""Statistics of a topic on a whole broker: what was done is what is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest

from headgate.base.instants import iso_time
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.base.units import NS_PER_HOUR
from headgate.base.work_units import PIECE_UNITS, SLICE_UNITS
from headgate.broker.slices import SLICE_YIELDS
from headgate.engine.consumer import Consumer
from headgate.engine.topic import Topic
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import RateLimit
from headgate.metadata.policies import DispatchRate
from headgate.observe.stats import topic as module
from headgate.observe.stats.fields import ConsumerStats, StatsOptions, TopicStats
from headgate.observe.stats.topic import CLIENTS_PER_YIELD, consumer_stats, limits_view
from headgate.testing import SimProducer, World
from headgate.wire.codes import ProducerAccessMode, SubscriptionType

T = "persistent://public/default/t"
NAME = parse_topic(T)
ALL = StatsOptions(earliest_time=True)
TURN_YIELDS = SLICE_YIELDS * SLICE_UNITS // PIECE_UNITS
"""Of one turn that has the whole slice."""


@pytest.fixture
def world() -> Iterator[World]:
    with World() as made:
        made.run(made.start())
        yield made


def shown(world: World, options: StatsOptions = ALL) -> TopicStats:
    broker = world.broker
    broker.begin_turn()
    topic = broker.registry.get(NAME)
    assert topic is not None
    return world.run(world.observer.topic_stats(topic, options))


async def limit_topic(world: World, messages: int) -> None:
    catalog = world.broker.catalog
    rate = DispatchRate(dispatch_throttling_rate_in_msg=messages)
    await world.broker.writer.commit(catalog.plan_topic_policies(NAME, dispatch_rate=rate))


def test_an_unused_topic_shows_nothing(world: World) -> None:
    world.run(world.broker.registry.create(NAME))
    stats = shown(world)
    assert stats.msg_in_counter == stats.storage_size == stats.backlog_size == 0
    assert stats.oldest_backlog_message_age_seconds == -1
    assert stats.oldest_backlog_message_subscription_name is msgspec.UNSET
    assert stats.earliest_msg_publish_time_in_backlogs == 0
    assert stats.owner_broker == "127.0.0.1:8080"
    assert stats.last_publish_time_stamp == 0
    assert 0 <= world.wall_ms() - stats.topic_creation_time_stamp < 100
    assert stats.headgate["oldestAgeSeconds"] is None


def test_counters_backlog_and_ages(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s", name="c", properties={"team": "blue"})
        producer = await client.producer(T, name="p")
        for _ in range(4):
            await producer.send(b"", batch=[b"x" * 10] * 5)
        await consumer.ack((await consumer.receive()).position)

    world.run(play())
    sent_ms = world.wall_ms()
    world.advance(8)
    stats = shown(world)
    assert (stats.msg_in_counter, stats.msg_out_counter) == (20, 20)
    assert stats.bytes_in_counter == stats.storage_size == stats.bytes_out_counter > 200
    assert stats.backlog_size == stats.storage_size * 3 // 4
    assert stats.oldest_backlog_message_age_seconds == 8
    assert stats.oldest_backlog_message_subscription_name == "s"
    assert abs(stats.earliest_msg_publish_time_in_backlogs - sent_ms) < 100
    assert abs(stats.last_publish_time_stamp - sent_ms) < 100
    subscription = stats.subscriptions["s"]
    assert subscription.oldest_backlog_message_age_seconds == 8
    assert (subscription.msg_backlog, subscription.msg_backlog_no_delayed) == (3, 3)
    assert subscription.backlog_size == stats.backlog_size
    assert (subscription.type, subscription.active_consumer_name) == ("Exclusive", "c")
    assert subscription.subscription_properties == {"team": "blue"}
    assert subscription.unacked_messages == 0
    (consumer,) = subscription.consumers
    assert (consumer.consumer_name, consumer.msg_out_counter) == ("c", 20)
    assert (consumer.avg_messages_per_entry, consumer.available_permits) == (5, 980)
    assert abs(consumer.last_consumed_timestamp - sent_ms) < 100
    assert consumer.last_acked_timestamp >= consumer.last_consumed_timestamp
    assert consumer.last_acked_time == iso_time(consumer.last_acked_timestamp)
    (publisher,) = stats.publishers
    assert (publisher.producer_name, publisher.access_mode) == ("p", "Shared")
    account = subscription.headgate
    assert account["state"] == "awaiting_ack"
    assert account["backlogMessages"] == account["unackedMessages"] == 15
    assert account["oldestAgeSeconds"] == pytest.approx(8, abs=0.1)
    assert 7.5 < account["stateSeconds"]["awaiting_ack"] < 8.5


def test_exclusive_access_and_termination_are_shown(world: World) -> None:
    mode = ProducerAccessMode

    async def story() -> list[asyncio.Task[SimProducer]]:
        client = await world.connect()
        await client.producer(T, access_mode=mode.EXCLUSIVE_WITH_FENCING)
        waiting = [
            asyncio.create_task(client.producer(T, access_mode=mode.WAIT_FOR_EXCLUSIVE))
            for _ in range(2)
        ]
        await asyncio.sleep(1)
        return waiting

    waiting = world.run(story())
    stats = shown(world)
    assert (stats.waiting_publishers, stats.topic_epoch) == (2, 0)
    (publisher,) = stats.publishers
    assert publisher.access_mode == "ExclusiveWithFencing"
    assert not publisher.supports_partial_producer
    assert stats.headgate["terminated"] is False
    for task in waiting:
        task.cancel()
    world.broker.engine.topics[T].terminated = True
    assert shown(world).headgate["terminated"] is True


def test_batches_of_which_a_part_is_acknowledged(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", kind=SubscriptionType.SHARED)
        batch = [await producer.send(b"", batch=[b"a", b"b", b"c"]) for _ in range(3)]
        await consumer.ack_part(batch[1], 0b110)
        await consumer.ack(batch[2])

    world.run(play())
    subscription = shown(world).subscriptions["s"]
    assert (subscription.msg_backlog, subscription.unacked_messages) == (2, 5)
    assert subscription.consumers[0].unacked_messages == 5
    account = subscription.headgate
    assert account["backlogMessages"] == account["unackedMessages"] == 5
    assert account["partlyAcknowledgedBatches"] == 1


def test_the_last_publish_is_known_although_nothing_is_left(world: World) -> None:
    """Forgotten topics are found by it, also after a restart."""

    async def play() -> None:
        client = await world.connect()
        await client.subscribe(T, "s")
        producer = await client.producer(T)
        await producer.send(b"x")
        await producer.close()
        topic = world.broker.engine.topics[T]
        topic.subscriptions["s"].skip_to(1)
        await world.broker.trimming.trim_now(topic)
        await world.broker.when_durable(topic)

    world.run(play())
    sent_ms = world.wall_ms()
    world.advance(3_600)
    before = shown(world)
    assert (before.storage_size, before.subscriptions["s"].msg_backlog) == (0, 0)
    assert before.subscriptions["s"].oldest_backlog_message_age_seconds == -1
    assert abs(before.last_publish_time_stamp - sent_ms) < 100
    world.crash()
    world.run(world.start())
    after = shown(world)
    assert after.last_publish_time_stamp == before.last_publish_time_stamp
    assert after.topic_creation_time_stamp == before.topic_creation_time_stamp


def test_rates_cover_the_last_seconds(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        producer = await client.producer(T)
        for _ in range(6):
            for _ in range(10):
                await producer.send(b"x" * 100)
                await consumer.ack((await consumer.receive()).position)
            await asyncio.sleep(1)

    world.run(play())
    stats = shown(world)
    assert stats.msg_rate_in == pytest.approx(10, rel=0.5)
    assert stats.msg_rate_out == pytest.approx(10, rel=0.5)
    assert stats.average_msg_size == pytest.approx(stats.storage_size / 60, rel=0.01)
    assert stats.subscriptions["s"].message_ack_rate == pytest.approx(10, rel=0.5)
    world.advance(15)
    assert shown(world).msg_rate_in == 0


def test_the_earliest_publish_time_is_wall_clock_time_for_topic_and_subscription(
    world: World,
) -> None:
    async def play() -> None:
        client = await world.connect()
        await client.subscribe(T, "s")
        await (await client.producer(T)).send(b"x")

    world.clock.step_wall(NS_PER_HOUR)
    world.advance(5)  # the broker measures the step
    world.run(play())
    sent_ms = world.wall_ms()
    stats = shown(world)
    assert abs(stats.earliest_msg_publish_time_in_backlogs - sent_ms) < 100
    subscription = stats.subscriptions["s"]
    assert subscription.earliest_msg_publish_time_in_backlog == (
        stats.earliest_msg_publish_time_in_backlogs
    )


def test_options_leave_things_out(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        await client.subscribe(T, "s")
        await (await client.producer(T)).send(b"x")

    world.run(play())
    stats = shown(
        world, StatsOptions(backlog_size=False, exclude_publishers=True, exclude_consumers=True)
    )
    subscription = stats.subscriptions["s"]
    assert (stats.publishers, subscription.consumers, subscription.backlog_size) == ([], [], -1)
    assert subscription.earliest_msg_publish_time_in_backlog == 0
    assert stats.earliest_msg_publish_time_in_backlogs == 0


def test_a_shared_subscription_shows_what_its_consumers_hold(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s", kind=SubscriptionType.SHARED)
        producer = await client.producer(T)
        for _ in range(3):
            await producer.send(b"x")
        await consumer.receive()
        await consumer.ack((await consumer.receive()).position)

    world.run(play())
    subscription = shown(world).subscriptions["s"]
    assert (subscription.type, subscription.unacked_messages) == ("Shared", 2)
    assert subscription.active_consumer_name is msgspec.UNSET
    assert next(iter(subscription.consumers)).unacked_messages == 2
    assert subscription.non_contiguous_deleted_messages_ranges == 1


def test_a_reader_is_not_durable_and_counts_in_no_backlog_of_the_topic(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        await (await client.producer(T)).send(b"x")
        start = Position(-1, -1)
        await client.subscribe(T, "r", durable=False, start=start, queue_size=0)

    world.run(play())
    stats = shown(world)
    reader = stats.subscriptions["r"]
    assert not reader.is_durable
    assert not reader.durable
    assert (reader.msg_backlog, stats.backlog_size) == (1, 0)
    assert stats.oldest_backlog_message_age_seconds == -1


def test_throttled_events_and_the_limit_that_throttles(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        producer = await client.producer(T)
        await limit_topic(world, 10)
        for _ in range(60):
            producer.send_nowait(b"x")
        await consumer.receive()

    world.run(play())
    world.advance(3)
    stats = shown(world)
    subscription = stats.subscriptions["s"]
    assert subscription.dispatch_throttled_msg_events_by_topic_limit >= 2
    assert subscription.dispatch_throttled_bytes_events_by_topic_limit == 0
    assert subscription.dispatch_throttled_msg_events_by_subscription_limit == 0
    assert subscription.dispatch_throttled_msg_events_by_broker_limit == 0
    assert subscription.dispatch_throttled_msgs == 50
    assert subscription.dispatch_throttled_bytes == 0
    account = subscription.headgate
    assert account["state"] == "throttled_topic"
    assert (account["dimension"], account["consumer"]) == ("messages", "hungry")
    limit = {"messages": 10, "bytes": None, "periodSeconds": 1.0, "source": "topic policy"}
    assert account["limits"] == stats.headgate["limits"] == {"topic": limit}
    (throttled,) = account["throttledSeconds"]
    assert throttled["seconds"] == account["stateSeconds"]["throttled_topic"] > 2
    elapsed_ns = world.clock.monotonic_ns() - _opened_ns(world)
    assert sum(account["stateSeconds"].values()) == pytest.approx(elapsed_ns / 1e9)


def _opened_ns(world: World) -> int:
    return world.broker.engine.topics[T].subscriptions["s"].account.opened_ns


def test_a_failed_read_is_said(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        await client.subscribe(T, "s")
        world.broker.engine.topics[T].subscriptions["s"].read_failed = "bad sector"

    world.run(play())
    assert shown(world).subscriptions["s"].headgate["readFailed"] == "bad sector"


def test_a_subscription_without_consumers_since_the_load_has_no_type(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        await (await client.producer(T)).send(b"x")
        await consumer.close()
        await world.broker.registry.unload(NAME)

    world.run(play())
    subscription = shown(world).subscriptions["s"]
    assert subscription.type == "None"
    assert subscription.headgate["state"] == "no_consumer"


def test_a_level_without_limit_is_left_out() -> None:
    limits = {
        "topic": EffectiveLimit(None, ""),
        "broker": EffectiveLimit(RateLimit(None, 5, 2_000_000_000), "somewhere"),
    }
    assert limits_view(limits) == {
        "broker": {"messages": None, "bytes": 5, "periodSeconds": 2.0, "source": "somewhere"}
    }


def test_the_limits_above_are_asked_for_once_however_many_subscriptions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative limit counts the topic's subscriptions: once for each would be their square."""

    async def play() -> None:
        client = await world.connect()
        for number in range(5):
            await client.subscribe(T, f"s{number}")
        catalog = world.broker.catalog
        rate = DispatchRate(7, relative_to_publish_rate=True)
        await world.broker.writer.commit(catalog.plan_topic_policies(NAME, dispatch_rate=rate))

    world.run(play())
    relative = world.broker.engine.relative
    asked: list[Topic] = []

    def followers(topic: Topic) -> int:
        asked.append(topic)
        return 5

    monkeypatch.setattr(relative, "followers", followers)
    stats = shown(world)
    assert len(asked) == 1
    limits = [each.headgate["limits"] for each in stats.subscriptions.values()]
    assert limits == [{"topic": stats.headgate["limits"]["topic"]}] * 5


def test_everything_can_be_written_as_json(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        await client.subscribe(T, "s")
        await (await client.producer(T)).send(b"x")

    world.run(play())
    text = json.loads(msgspec.json.encode(shown(world)))
    assert text["subscriptions"]["s"]["headgate"]["state"] == "awaiting_ack"


def test_what_a_topic_keeps_on_the_disk(world: World) -> None:
    async def story() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        producer = await client.producer(T)
        for _ in range(4):
            await producer.send(bytes(1_000))
        await consumer.ack((await consumer.receive()).position)

    world.run(story())
    storage = shown(world).headgate["storage"]
    assert storage["heldBytes"] == storage["waitingBytes"] + storage["acknowledgedBytes"]
    assert 4 * storage["acknowledgedBytes"] == storage["heldBytes"] > 4 * 1_000


def test_a_topic_with_many_subscriptions_is_read_in_pieces(world: World) -> None:
    async def story() -> int:
        topic = await world.broker.registry.create(NAME)
        for number in range(100):
            await world.broker.subscriptions.create(
                topic, f"s{number}", at_ordinal=0, properties={}
            )
        turns = 0
        begin = world.broker.engine.begin_turn

        def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
            nonlocal turns
            turns += 1
            begin(now_ns, now_ms, log_ms)

        world.broker.engine.begin_turn = begun  # type: ignore[method-assign]
        stats = await world.observer.topic_stats(topic, ALL)
        assert len(stats.subscriptions) == 100
        return turns

    assert world.run(story()) >= 100 // TURN_YIELDS


def test_a_subscription_with_many_consumers_is_read_in_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No turn looks at more consumers than a slice has."""

    async def story() -> int:
        client = await world.connect()
        for _ in range(200):
            await client.subscribe(NAME.full, "s", kind=SubscriptionType.SHARED)
        looked, turns = 0, [0]
        begin = world.broker.engine.begin_turn

        def counted(consumer: Consumer, now_ns: int) -> ConsumerStats:
            nonlocal looked
            looked += 1
            return consumer_stats(consumer, now_ns)

        def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
            turns.append(looked)
            begin(now_ns, now_ms, log_ms)

        monkeypatch.setattr(module, "consumer_stats", counted)
        monkeypatch.setattr(world.broker.engine, "begin_turn", begun)
        topic = world.broker.registry.get(NAME)
        assert topic is not None
        stats = await world.observer.topic_stats(topic, ALL)
        assert len(stats.subscriptions["s"].consumers) == looked == 200
        return max(after - before for before, after in pairwise([*turns, looked]))

    assert world.run(story()) <= TURN_YIELDS * CLIENTS_PER_YIELD < 200


def test_a_consumer_says_whether_it_takes_messages_and_how_old_the_oldest_is_that_it_holds(
    world: World,
) -> None:
    async def play() -> None:
        client = await world.connect()
        producer = await client.producer(T, name="p")
        kind = SubscriptionType.SHARED
        busy = await client.subscribe(T, "s", name="busy", kind=kind, queue_size=2)
        await producer.send(b"x")
        second = await producer.send(b"x")
        await asyncio.sleep(30)
        await client.subscribe(T, "s", name="hungry", kind=kind, queue_size=9)
        await client.subscribe(T, "f", name="active", kind=SubscriptionType.FAILOVER)
        await client.subscribe(T, "f", name="reserve", kind=SubscriptionType.FAILOVER)
        await busy.ack(second)

    world.run(play())
    subscriptions = shown(world).subscriptions
    busy, hungry = (each.headgate for each in subscriptions["s"].consumers)
    assert busy["takesMessages"] is False
    assert busy["oldestUnackedAgeSeconds"] == pytest.approx(30, abs=0.5)
    assert (hungry["takesMessages"], hungry["oldestUnackedAgeSeconds"]) == (True, None)
    assert [each.headgate["isInReserve"] for each in subscriptions["f"].consumers] == [False, True]
    # The second message is acknowledged, and the first is not.
    assert subscriptions["s"].headgate["acknowledgedOutOfOrder"] == 1
    assert subscriptions["s"].headgate["acknowledgedSpan"] == 2
    assert subscriptions["f"].headgate["acknowledgedOutOfOrder"] == 0
    assert subscriptions["f"].headgate["acknowledgedSpan"] == 0
