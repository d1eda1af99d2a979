"""Topics are created, unloaded and deleted while other clients do the same and publish."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.base.names import TopicName, parse_topic
from headgate.base.work_units import (
    CLIENT_CLOSED,
    SLICE_UNITS,
    SUBSCRIPTION_REMOVED,
    TOPIC_DROPPED,
    TOPIC_LOADED,
)
from headgate.broker.registry import TopicNotFoundError
from headgate.engine.topic import Topic
from headgate.flow.account.account import Cell
from headgate.ledger import CursorState
from headgate.metadata.errors import RefusalError
from headgate.storage.metadata_writer import OutcomeUnknownError
from headgate.testing import RefusedError, SimProducer, World
from headgate.wire.codes import ServerError, SubscriptionType
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def create_partitioned(world: World, count: int) -> None:
    catalog, writer = world.broker.catalog, world.broker.writer
    await writer.commit(catalog.plan_create_partitioned(NAME, count, now_ms=world.wall_ms()))


def soon(work: Awaitable[None]) -> asyncio.Future[None]:
    return asyncio.ensure_future(work)


def is_served(world: World, producer: SimProducer) -> bool:
    """Whether a producer that its client takes for open is one of a live topic."""
    topic = world.broker.engine.topics.get(TOPIC)
    return topic is not None and producer.name in topic.producers


@played()
async def test_several_that_use_a_new_topic_at_once_get_the_same(world: World) -> None:
    registry = world.broker.registry
    topics = await asyncio.gather(*[registry.get_or_create(NAME, create=True) for _ in range(5)])
    assert len(set(topics)) == 1
    assert world.broker.catalog.in_flight_count == 0


@played()
async def test_a_client_that_waited_for_a_failed_creation_creates_the_topic(world: World) -> None:
    registry = world.broker.registry
    world.store.fail_next(StorageError("hiccup", retryable=True))
    first, second = await asyncio.gather(
        registry.get_or_create(NAME, create=True),
        registry.get_or_create(NAME, create=True),
        return_exceptions=True,
    )
    assert isinstance(first, StorageError)
    assert second is registry.get(NAME) is not None


@played()
async def test_a_topic_that_becomes_partitioned_meanwhile(world: World) -> None:
    partitioned = soon(create_partitioned(world, 2))
    await asyncio.sleep(0)
    with pytest.raises(RefusalError) as refusal:
        await world.broker.registry.get_or_create(NAME, create=True)
    assert refusal.value.status == 405
    await partitioned


@played()
async def test_unknown_topics_are_found_only_where_they_may_be_made(world: World) -> None:
    registry = world.broker.registry
    with pytest.raises(TopicNotFoundError):
        await registry.get_or_create(NAME, create=False)
    await world.broker.writer.commit(
        world.broker.catalog.plan_setting("allowAutoTopicCreation", "false")
    )
    with pytest.raises(TopicNotFoundError):
        await registry.get_or_create(NAME, create=True)
    assert (registry.exists(NAME), registry.get(NAME)) == (False, None)


@played(settings={"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": "3"})
async def test_partitions_on_demand_are_made_once(world: World) -> None:
    registry = world.broker.registry
    counts = await asyncio.gather(*[registry.create_partitions_on_demand(NAME) for _ in range(3)])
    assert counts == [3, 3, 3]
    assert len(world.broker.catalog.topics(NAME.namespace)) == 3
    world.store.fail_next(StorageError("hiccup", retryable=True))
    with pytest.raises(StorageError):
        await registry.create_partitions_on_demand(parse_topic("other"))
    assert await registry.create_partitions_on_demand(parse_topic("other")) == 3


@played()
async def test_two_deletions_at_once(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    registry = world.broker.registry
    results = await asyncio.gather(
        registry.delete(NAME, force=True),
        registry.delete(NAME, force=True),
        return_exceptions=True,
    )
    assert results[0] is None
    assert isinstance(results[1], RefusalError)
    assert results[1].status == 404
    producer = await client.producer(TOPIC)
    assert (await producer.send(b"x")).entry_id == 0


@played()
async def test_nobody_comes_back_to_a_topic_that_is_being_deleted(world: World) -> None:
    """Neither by a second deletion that is refused nor by an unload in between."""
    client = await world.connect()
    await client.producer(TOPIC)
    registry = world.broker.registry
    world.lanes[2].freeze()
    deleting = [soon(registry.delete(NAME, force=True)) for _ in range(2)]
    unloading = soon(registry.unload(NAME))
    await asyncio.sleep(1)
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC)
    assert refusal.value.code == ServerError.SERVICE_NOT_READY
    world.lanes[2].thaw()
    await asyncio.gather(*deleting, unloading, return_exceptions=True)
    producer = await client.producer(TOPIC)
    await producer.send(b"x")
    assert is_served(world, producer)


@played()
async def test_concurrent_unloads_spare_clients_that_reconnected(world: World) -> None:
    client = await world.connect()
    registry = world.broker.registry
    await client.producer(TOPIC)
    world.lanes[0].freeze()
    unloading = [soon(registry.unload(NAME)) for _ in range(3)]
    await asyncio.sleep(0.1)
    world.lanes[0].thaw()
    for _ in range(20):
        try:
            producer = await client.producer(TOPIC)
        except RefusedError:
            await asyncio.sleep(0.0005)
    await asyncio.gather(*unloading)
    await asyncio.sleep(0.1)
    assert not producer.is_open or is_served(world, producer)
    assert (await (await client.producer(TOPIC)).send(b"x")).entry_id == 0


@played()
async def test_an_unload_keeps_what_is_under_way(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    world.lanes[0].freeze()
    for index in range(20):
        producer.send_nowait(b"%d" % index)
    await asyncio.sleep(0.1)
    unloading = soon(world.broker.registry.unload(NAME))
    await asyncio.sleep(0.1)
    assert not producer.is_open
    assert not consumer.is_open
    world.lanes[0].thaw()
    await unloading
    consumer = await client.subscribe(TOPIC, "s")
    got = [(await consumer.receive()).payload for _ in range(20)]
    assert got == [b"%d" % index for index in range(20)]


@played()
async def test_a_deletion_is_completed_although_its_caller_is_gone(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await producer.send(b"of the first life")
    asked = soon(world.broker.registry.delete(NAME, force=True))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.sleep(1)
    assert world.broker.catalog.topic(TOPIC) is None
    assert TOPIC not in world.broker.engine.topics
    await (await client.producer(TOPIC)).send(b"of the second")
    world.crash()
    await world.start()
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    assert (await consumer.receive()).payload == b"of the second"


@played()
async def test_a_deletion_that_is_not_stored_did_not_happen(world: World) -> None:
    client = await world.connect()
    position = await (await client.producer(TOPIC)).send(b"kept")
    world.store.fail_next(StorageError("hiccup", retryable=True))
    with pytest.raises(StorageError):
        await world.broker.registry.delete(NAME, force=True)
    consumer = await client.subscribe(TOPIC, "s")
    assert (await consumer.receive()).position == position


@played()
async def test_a_topic_with_connected_clients_is_not_deleted(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await client.subscribe(TOPIC, "s")
    with pytest.raises(RefusalError, match="2 connected") as refusal:
        await world.broker.registry.delete(NAME, force=False)
    assert refusal.value.status == 412
    assert await producer.send(b"x")


@played()
async def test_a_partitioned_topic_goes_as_a_whole(world: World) -> None:
    await create_partitioned(world, 3)
    client = await world.connect()
    await (await client.producer(f"{TOPIC}-partition-2")).send(b"x")
    await world.broker.registry.delete(NAME, force=True)
    assert not world.broker.registry.exists(NAME)
    assert not world.broker.catalog.topics(NAME.namespace)
    assert not [name for name in world.broker.engine.topics if name.startswith(TOPIC)]


class Unwalked(dict[int, CursorState]):
    """Cursors that may be looked up, but of which there are too many to look at each."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("a walk over all cursors of the broker")

    keys = values = items = __iter__  # type: ignore[assignment]


@played()
async def test_no_topic_is_loaded_or_dropped_by_a_walk_over_all_cursors(world: World) -> None:
    """Each creation on demand would hold the loop for as long as 100 000 of them take."""
    client = await world.connect()
    topics = [f"{TOPIC}-{index}" for index in range(3)]
    for topic in topics:
        await client.subscribe(topic, "s")
        await client.subscribe(topic, "t")
        await world.broker.registry.unload(parse_topic(topic))
    state = world.broker.log._state
    state.cursors = Unwalked(state.cursors)
    registry, loaded = world.broker.registry, world.broker.engine.topics
    assert registry.get(parse_topic(topics[0])) is loaded[topics[0]]
    before = loaded[topics[0]]
    registry.load_all()
    assert loaded[topics[0]] is before
    assert {topic: set(loaded[topic].subscriptions) for topic in topics} == {
        topic: {"s", "t"} for topic in topics
    }
    await registry.create(NAME)
    await registry.delete(parse_topic(topics[0]), force=True)
    assert len(state.cursors) == 4


@played()
async def test_deleting_amid_publishes_answers_everybody(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    neighbour = await client.producer(f"{TOPIC}-other")
    sent = [producer.send_nowait(b"x" * 100) for _ in range(50)]
    theirs = [neighbour.send_nowait(b"y" * 100) for _ in range(50)]
    await asyncio.sleep(0.002)
    await world.broker.registry.delete(NAME, force=True)
    await asyncio.sleep(0.1)
    assert all(future.done() for future in sent)
    assert [position.entry_id for position in await asyncio.gather(*theirs)] == list(range(50))


@played()
async def test_an_unload_that_the_disk_refuses_leaves_the_topic_serving(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.lanes[0].fail_next(StorageError("hiccup", retryable=True))
    producer.send_nowait(b"lost")
    await asyncio.sleep(0.0015)
    with pytest.raises(StorageError):
        await world.broker.registry.unload(NAME)
    assert (await (await client.producer(TOPIC)).send(b"x")).entry_id >= 0


@played()
async def test_a_topic_whose_deletion_a_restart_may_find_gives_no_receipts(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await producer.send(b"x")
    world.store.crash_at(world.store.commits, keep=True)
    with pytest.raises(OutcomeUnknownError):
        await world.broker.registry.delete(NAME, force=True)
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC)
    assert refusal.value.code == ServerError.SERVICE_NOT_READY
    with pytest.raises(StorageError, match="until a restart"):
        await world.broker.registry.create(parse_topic(f"{TOPIC}-2"))
    world.crash()
    await world.start()
    assert not world.broker.registry.exists(NAME)
    await (await (await world.connect()).producer(TOPIC)).send(b"of the next topic of that name")


@played(settings={"headgateTelemetryTopic": "persistent://public/default/telemetry"})
async def test_telemetry_owns_its_topic_and_not_the_namespace(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError, match="belongs to the broker"):
        await client.producer("persistent://public/default/telemetry")
    producer = await client.producer(TOPIC)
    await producer.send(b"x")
    broker = world.broker
    assert not broker.engine.topics[TOPIC].is_system
    change = broker.catalog.plan_setting("dispatchThrottlingRatePerTopicInMsg", "5")
    await broker.writer.commit(change)
    limit = broker.engine.topics[TOPIC].limit
    assert limit is not None
    assert limit.messages == 5
    assert await client.topics("public/default") == [TOPIC]


@played()
async def test_a_topic_with_many_subscriptions_is_deleted_in_slices(world: World) -> None:
    broker = world.broker
    topic = await broker.registry.create(parse_topic(TOPIC))
    count = 10 * SLICE_UNITS // SUBSCRIPTION_REMOVED
    for number in range(count):
        topic.add_subscription(f"s{number}", AckSet(-1), cursor_id=1_000 + number)
    client = await world.connect()
    for number in range(count):
        await client.subscribe(TOPIC, f"s{number}")
    last = [count, count]
    most, begin_turn = [0, 0], broker.begin_turn

    def begun() -> None:
        now = [
            len(topic.subscriptions),
            sum(len(s.consumers) for s in topic.subscriptions.values()),
        ]
        for index, (before, after) in enumerate(zip(last, now, strict=True)):
            most[index] = max(most[index], before - after)
        last[:] = now
        begin_turn()

    broker.begin_turn = begun  # type: ignore[method-assign]
    broker.work._begin_turn = begun
    await broker.registry.delete(topic.name, force=True)
    begun()
    assert last == [0, 0]
    assert not topic.is_live
    assert most[0] <= SLICE_UNITS // SUBSCRIPTION_REMOVED + 1
    assert most[1] <= SLICE_UNITS // CLIENT_CLOSED + 1
    again = await broker.registry.create(topic.name)
    assert again is not topic
    assert not again.subscriptions


@played()
async def test_many_partitions_are_deleted_in_slices(world: World) -> None:
    """4,096 held the loop for 0.3 s: they were loaded at once, and dropped at once."""
    broker, count = world.broker, 20 * SLICE_UNITS // TOPIC_DROPPED
    await create_partitioned(world, count)
    live, begin_turn = broker.engine.by_number, broker.begin_turn
    last, loaded_most, dropped_most = len(live), 0, 0

    def begun() -> None:
        nonlocal last, loaded_most, dropped_most
        loaded_most = max(loaded_most, len(live) - last)
        dropped_most = max(dropped_most, last - len(live))
        last = len(live)
        begin_turn()

    broker.begin_turn = begun  # type: ignore[method-assign]
    broker.work._begin_turn = begun
    before = last
    await broker.registry.delete(NAME, force=False)
    begun()
    assert last == before
    assert 0 < loaded_most <= SLICE_UNITS // TOPIC_LOADED + 1
    assert 0 < dropped_most <= SLICE_UNITS // TOPIC_DROPPED + 1
    assert not broker.registry.exists(NAME)


@played()
async def test_a_topic_with_many_subscriptions_is_unloaded_in_slices(world: World) -> None:
    broker = world.broker
    topic = await broker.registry.create(parse_topic(TOPIC))
    count = 10 * SLICE_UNITS // SUBSCRIPTION_REMOVED
    for number in range(count):
        topic.add_subscription(f"s{number}", AckSet(-1), cursor_id=1_000 + number)
    subscriptions = list(topic.subscriptions.values())
    last, most, begin_turn = count, 0, broker.begin_turn

    def begun() -> None:
        nonlocal last, most
        left = sum(not subscription.removed for subscription in subscriptions)
        assert not left or len(topic.subscriptions) == count  # they hold back what they retain
        most, last = max(most, last - left), left
        begin_turn()

    broker.begin_turn = begun  # type: ignore[method-assign]
    broker.work._begin_turn = begun
    ended_count = broker.engine.ended_count
    await broker.registry.unload(topic.name)
    begun()
    assert (last, broker.engine.ended_count) == (0, ended_count + count + 1)
    assert 0 < most <= SLICE_UNITS // SUBSCRIPTION_REMOVED + 1
    again = broker.registry.get(topic.name)
    assert again is not topic


@played()
async def test_what_a_consumer_gives_back_at_an_unload_is_not_sent_to_the_next_one(
    world: World,
) -> None:
    """The consumers of the topic are disconnected in slices, and each is the last but a few."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(4 * SLICE_UNITS // CLIENT_CLOSED):
        await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    for _ in range(1_000):
        producer.send_nowait(b"x")
    await asyncio.sleep(1)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    assert subscription.messages_sent == 1_000
    await world.broker.registry.unload(NAME)
    assert subscription.messages_sent == 1_000
    assert subscription.account.cell is Cell.NO_CONSUMER
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    assert (await consumer.receive()).payload == b"x"


@played()
async def test_deletions_of_topics_with_many_partitions_look_at_them_in_turn(world: World) -> None:
    """Each took 30 ms of one iteration for 4,096 partitions, also one that was refused."""
    registry, count = world.broker.registry, 2 * SLICE_UNITS
    bases = [parse_topic(f"persistent://public/default/wide{number}") for number in range(4)]
    catalog, client = world.broker.catalog, await world.connect()
    for base in bases:
        plan = catalog.plan_create_partitioned(base, count, now_ms=world.wall_ms())
        await world.broker.commit(plan)
        await client.producer(base.partition_name(0).full)
    found, own_get = [0], registry.get

    def get(name: TopicName) -> Topic | None:
        if not found[-1]:
            world.loop.call_soon(found.append, 0)
        found[-1] += 1
        return own_get(name)

    registry.get = get  # type: ignore[method-assign]
    for _ in range(2):  # the first round loads them
        del found[:-1]
        deletions = [registry.delete(base, force=False) for base in bases]
        ended = await asyncio.gather(*deletions, return_exceptions=True)
        assert [getattr(each, "status", 0) for each in ended] == [412] * len(bases)
    assert sum(found) == 2 * count * len(bases)
    assert max(found) <= count + SLICE_UNITS
