"""Subscriptions are created, deleted and moved durably, although callers go away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from headgate.base.errors import InputError, StorageError
from headgate.base.names import InvalidNameError, parse_topic
from headgate.base.positions import EARLIEST, Position
from headgate.base.text_memory import properties_bytes
from headgate.base.units import KIB, NS_PER_S
from headgate.base.work_units import CLIENT_CLOSED, CONSUMER_RANKED, SLICE_UNITS
from headgate.broker import subscription_properties
from headgate.broker.expected_readers import RETURN_NS
from headgate.engine.errors import (
    DamagedError,
    NotAllowedError,
    SubscriptionBusyError,
    TooManySubscriptionsError,
    TopicFencedError,
)
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType as EngineType
from headgate.ledger import Batch, LedgerSettings
from headgate.testing import ConnectionLostError, World
from headgate.testing.errors import RefusedError
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.playing import TOPIC, played

T = "persistent://public/default/t"


@pytest.fixture
def world() -> Iterator[World]:
    with World() as made:
        made.run(made.start())
        yield made


async def topic_with(world: World, entries: int) -> Topic:
    """The topic ``T`` with so many entries."""
    client = await world.connect()
    producer = await client.producer(T)
    for index in range(entries):
        await producer.send(b"%d" % index)
    topic = world.broker.registry.get(parse_topic(T))
    assert topic is not None
    return topic


async def create(world: World, topic: Topic, name: str, at: int = 0) -> Subscription:
    return await world.broker.subscriptions.create(
        topic, name, at_ordinal=at, properties={"k": "v"}
    )


def fail_next_commit(world: World) -> None:
    """Let the next batch fail before it is written, in a way that may pass."""
    log = world.broker.log
    own_write = log.write_batch

    def write(batch: Batch) -> None:
        log.write_batch = own_write  # type: ignore[method-assign]
        raise StorageError("the disk had a bad moment", retryable=True)

    log.write_batch = write  # type: ignore[method-assign]


def test_a_created_subscription_survives_a_power_cut(world: World) -> None:
    topic = world.run(topic_with(world, 3))
    made = world.run(create(world, topic, "s", at=1))
    assert (made.name, made.backlog_entries, made.is_durable) == ("s", 2, True)
    world.crash()
    world.run(world.start())
    again = world.broker.registry.get(parse_topic(T)).subscriptions["s"]  # type: ignore[union-attr]
    assert (again.backlog_entries, again.properties) == (2, {"k": "v"})


def test_the_place_is_kept_within_what_is_stored(world: World) -> None:
    topic = world.run(topic_with(world, 3))
    assert world.run(create(world, topic, "low", at=-5)).backlog_entries == 3
    assert world.run(create(world, topic, "high", at=99)).backlog_entries == 0


def test_several_creations_at_once_make_one(world: World) -> None:
    topic = world.run(topic_with(world, 1))

    async def all_at_once() -> list[Subscription]:
        return await asyncio.gather(*(create(world, topic, "s", at=i) for i in range(3)))

    made = world.run(all_at_once())
    assert made[0] is made[1] is made[2]
    assert len(world.broker.log.cursors_of(topic.log.number)) == 1


def test_a_creation_goes_on_when_its_client_goes_away(world: World) -> None:
    topic = world.run(topic_with(world, 1))

    async def cancelled() -> None:
        task = world.loop.create_task(create(world, topic, "s"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await world.broker.subscriptions.when_idle(topic, "s")

    world.run(cancelled())
    assert "s" in topic.subscriptions


def test_a_creation_on_a_closing_topic_is_refused(world: World) -> None:
    topic = world.run(topic_with(world, 1))
    world.run(world.broker.registry.unload(topic.name))
    with pytest.raises(TopicFencedError):
        world.run(create(world, topic, "s"))


def test_a_creation_that_meets_an_unload_is_found_afterwards(world: World) -> None:
    topic = world.run(topic_with(world, 1))

    async def both() -> object:
        task = world.loop.create_task(create(world, topic, "s"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await world.broker.registry.unload(topic.name)
        return (await asyncio.gather(task, return_exceptions=True))[0]

    assert isinstance(world.run(both()), TopicFencedError)
    loaded = world.broker.registry.get(topic.name)
    assert loaded is not None
    assert "s" in loaded.subscriptions


def test_a_failed_creation_is_given_up(world: World) -> None:
    topic = world.run(topic_with(world, 1))
    fail_next_commit(world)
    with pytest.raises(StorageError):
        world.run(create(world, topic, "s"))
    assert not topic.subscriptions
    assert not world.broker.log.cursors_of(topic.log.number)
    world.advance(1)
    assert world.run(create(world, topic, "s")).name == "s"


def test_a_deletion_survives_a_power_cut(world: World) -> None:
    topic = world.run(topic_with(world, 2))
    made = world.run(create(world, topic, "s"))
    world.run(world.broker.subscriptions.delete(made))
    world.run(world.broker.subscriptions.delete(made))
    assert not topic.subscriptions
    world.crash()
    world.run(world.start())
    assert not world.broker.registry.get(parse_topic(T)).subscriptions  # type: ignore[union-attr]


def test_consumers_forbid_a_deletion_unless_forced(world: World) -> None:
    topic = world.run(topic_with(world, 2))

    async def consume() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        subscription = topic.subscriptions["s"]
        with pytest.raises(SubscriptionBusyError):
            await world.broker.subscriptions.delete(subscription)
        assert not subscription.fenced
        await consumer.receive()
        await world.broker.subscriptions.delete(subscription, force=True)
        await consumer.receive()
        with pytest.raises(ConnectionLostError):
            await consumer.receive()

    world.run(consume())
    assert not topic.subscriptions


def test_a_deletion_holds_in_memory_though_it_could_not_be_stored(world: World) -> None:
    topic = world.run(topic_with(world, 1))
    made = world.run(create(world, topic, "s"))
    fail_next_commit(world)
    with pytest.raises(StorageError, match="ended, which is not stored yet: the disk had a bad"):
        world.run(world.broker.subscriptions.delete(made))
    assert not topic.subscriptions
    world.run(world.broker.when_durable())
    world.crash()
    world.run(world.start())
    assert not world.broker.registry.get(parse_topic(T)).subscriptions  # type: ignore[union-attr]


def test_creation_waits_for_the_deletion_of_the_same_name(world: World) -> None:
    topic = world.run(topic_with(world, 2))
    made = world.run(create(world, topic, "s"))

    async def both() -> Subscription:
        task = world.loop.create_task(world.broker.subscriptions.delete(made))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        again = await create(world, topic, "s", at=2)
        await task
        return again

    again = world.run(both())
    assert again is not made
    assert topic.subscriptions["s"] is again
    assert again.backlog_entries == 0


def test_a_seek_is_durable_and_its_consumer_comes_back_to_it(world: World) -> None:
    topic = world.run(topic_with(world, 4))

    async def move() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        for _ in range(4):
            await consumer.ack((await consumer.receive()).position)
        subscription = topic.subscriptions["s"]
        assert subscription.backlog_entries == 0
        await world.broker.subscriptions.seek(subscription, 1)
        assert not subscription.fenced
        assert not subscription.consumers
        assert subscription.backlog_entries == 3
        again = await client.subscribe(T, "s")
        assert (await again.receive()).payload == b"1"

    world.run(move())
    world.crash()
    world.run(world.start())
    moved = world.broker.registry.get(parse_topic(T)).subscriptions["s"]  # type: ignore[union-attr]
    assert moved.backlog_entries == 3


def test_a_seek_of_what_is_gone_is_refused(world: World) -> None:
    topic = world.run(topic_with(world, 1))
    made = world.run(create(world, topic, "s"))
    world.run(world.broker.subscriptions.delete(made))
    with pytest.raises(TopicFencedError):
        world.run(world.broker.subscriptions.seek(made, 0))


def test_a_reader_finds_its_cursor_after_its_seek_but_only_for_a_while(world: World) -> None:
    topic = world.run(topic_with(world, 3))

    async def read() -> Subscription:
        client = await world.connect()
        await client.subscribe(T, "reader", durable=False)
        subscription = topic.subscriptions["reader"]
        await world.broker.subscriptions.seek(subscription, 2)
        assert topic.subscriptions["reader"] is subscription
        assert subscription.backlog_entries == 1
        return subscription

    subscription = world.run(read())
    world.advance(RETURN_NS / 1e9 + 1)
    assert subscription.removed
    assert not topic.subscriptions


def test_a_seek_holds_in_memory_though_it_could_not_be_stored(world: World) -> None:
    topic = world.run(topic_with(world, 5))
    made = world.run(create(world, topic, "s"))
    fail_next_commit(world)
    with pytest.raises(StorageError, match="moved, which is not stored yet: the disk had a bad"):
        world.run(world.broker.subscriptions.seek(made, 3))
    assert made.backlog_messages == 2
    world.run(world.broker.when_durable())
    world.crash()
    world.run(world.start())
    loaded = world.broker.registry.get(parse_topic(T))
    assert loaded is not None
    assert loaded.subscriptions["s"].backlog_messages == 2


def test_a_seek_and_a_deletion_disconnect_very_many_consumers_in_slices(world: World) -> None:
    async def story(act: str) -> list[int]:
        """How many consumers there are at the beginning of each turn."""
        topic, client = await topic_with(world, 1), await world.connect()
        for number in range(5 * SLICE_UNITS // CLIENT_CLOSED):
            await client.subscribe(T, act, name=f"c{number}", kind=SubscriptionType.SHARED)
        subscription, engine = topic.subscriptions[act], world.broker.engine
        turns, begin = [len(subscription.consumers)], engine.begin_turn

        def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
            turns.append(len(subscription.consumers))
            begin(now_ns, now_ms, log_ms)

        engine.begin_turn = begun  # type: ignore[method-assign]
        if act == "seek":
            await world.broker.subscriptions.seek(subscription, 0)
        else:
            await world.broker.subscriptions.delete(subscription, force=True)
        engine.begin_turn = begin  # type: ignore[method-assign]
        return turns

    for act in ("seek", "delete"):
        turns = world.run(story(act))
        assert turns[-1] == 0
        assert max(b - a for b, a in pairwise(turns)) <= SLICE_UNITS // CLIENT_CLOSED + 1


def test_properties_are_replaced_and_survive_a_crash(world: World) -> None:
    async def replaced() -> None:
        topic = await topic_with(world, 3)
        made = await create(world, topic, "s")
        await world.broker.subscriptions.set_properties(made, {"a": "b", "c": ""})
        assert made.properties == {"a": "b", "c": ""}

    world.run(replaced())
    world.crash()
    world.run(world.start())
    topic = world.broker.registry.get(parse_topic(T))
    assert topic is not None
    assert topic.subscriptions["s"].properties == {"a": "b", "c": ""}


def test_properties_that_cannot_be_kept_are_refused(world: World) -> None:
    async def story() -> None:
        topic = await topic_with(world, 1)
        made = await create(world, topic, "s")
        change = world.broker.subscriptions.set_properties
        with pytest.raises(InputError, match="65536 are allowed"):
            await change(made, {"k": "v" * 65_536})
        with pytest.raises(InputError, match="65536 are allowed"):
            await world.broker.subscriptions.create(
                topic, "t", at_ordinal=0, properties={"k": "v" * 65_536}
            )
        assert "t" not in topic.subscriptions
        made.damage = "segment 1"
        with pytest.raises(DamagedError):
            await change(made, {})
        made.damage = ""
        client = await world.connect()
        await client.reader(T, Position(-1, -1))
        with pytest.raises(NotAllowedError, match="non-durable"):
            await change(topic.subscriptions["reader"], {})
        await world.broker.subscriptions.delete(made)
        with pytest.raises(TopicFencedError, match="was closed"):
            await change(made, {})
        assert made.properties == {"k": "v"}

    world.run(story())


def test_properties_that_are_not_stored_yet_hold_and_are_stored_later(world: World) -> None:
    async def story() -> Topic:
        topic = await topic_with(world, 1)
        made = await create(world, topic, "s")
        fail_next_commit(world)
        with pytest.raises(StorageError, match="the properties have changed"):
            await world.broker.subscriptions.set_properties(made, {"a": "b"})
        assert made.properties == {"a": "b"}
        await world.broker.when_durable(topic)
        return topic

    world.run(story())
    world.crash()
    world.run(world.start())
    topic = world.broker.registry.get(parse_topic(T))
    assert topic is not None
    assert topic.subscriptions["s"].properties == {"a": "b"}


def test_a_subscription_without_properties_takes_those_of_a_consumer(world: World) -> None:
    async def story() -> None:
        topic = await topic_with(world, 1)
        client = await world.connect()
        for properties, held in (({}, {}), ({"a": "b"}, {"a": "b"}), ({"c": "d"}, {"a": "b"})):
            consumer = await client.subscribe(T, "s", properties=properties)
            assert topic.subscriptions["s"].properties == held
            await consumer.close()

    world.run(story())


def test_a_consumer_that_brings_too_many_properties_is_refused(world: World) -> None:
    async def story() -> None:
        topic = await topic_with(world, 1)
        client = await world.connect()
        await (await client.subscribe(T, "present")).close()
        crowd = {f"{number}": "" for number in range(300)}
        for name in ("present", "new"):
            with pytest.raises(RefusedError, match="65536 are allowed"):
                await client.subscribe(T, name, properties=crowd)
        assert topic.subscriptions["present"].properties == {}
        assert "new" not in topic.subscriptions
        await client.subscribe(T, "present")

    world.run(story())


@pytest.mark.parametrize("name", [".", "..", "a/../.."])
def test_a_name_that_a_url_resolves_is_not_created(world: World, name: str) -> None:
    """Who may consume could otherwise name one so that its deletion, by a browser or through a
    proxy, is the deletion of the topic."""

    async def story() -> None:
        topic = await topic_with(world, 1)
        with pytest.raises(InvalidNameError, match="in a URL it would stand for something else"):
            await create(world, topic, name)
        client = await world.connect()
        for is_durable in (True, False):
            with pytest.raises(RefusedError, match="in a URL"):
                await client.subscribe(T, name, durable=is_durable)
        assert not topic.subscriptions
        await create(world, topic, "..x")

    world.run(story())


def test_crowds_of_failover_consumers_are_ranked_a_few_at_once(world: World) -> None:
    """678 of them, which had waited for their topic, were ranked in one iteration: 0.1 s."""

    async def story() -> None:
        topic = await topic_with(world, 0)
        client = await world.connect()
        subscriptions = world.broker.subscriptions
        may_rank, asked = subscriptions.when_rankable, list[str]()

        async def noted(subscription: Subscription, kind: EngineType) -> None:
            asked.append(kind.label)
            await may_rank(subscription, kind)

        subscriptions.when_rankable = noted  # type: ignore[method-assign]
        for name in "first", "second":
            await client.subscribe(T, "s", kind=SubscriptionType.FAILOVER, name=name)
        assert asked == ["Failover", "Failover"]
        subscription = topic.subscriptions["s"]
        crowd = [
            asyncio.ensure_future(may_rank(subscription, EngineType.FAILOVER)) for _ in range(60)
        ]
        seen = [0]
        while seen[-1] < len(crowd):
            await asyncio.sleep(0)
            seen.append(sum(map(asyncio.Future.done, crowd)))
        assert max(now - before for before, now in pairwise(seen)) <= SLICE_UNITS // CONSUMER_RANKED

    world.run(story())


def test_properties_of_a_tenants_subscriptions_have_a_bound_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests at once do not pass it together, and what is deleted or replaced is given back
    exactly. What is unloaded counts: else unloads again and again would pass it, too."""
    topic, size = world.run(topic_with(world, 1)), properties_bytes({"k": "v"})
    monkeypatch.setattr(subscription_properties, "TENANT_BYTES_MAX", 3 * size)
    by_tenant = world.broker.engine.properties.by_tenant

    async def story() -> None:
        asked = [create(world, topic, f"s{number}") for number in range(5)]
        made = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(each, InputError) for each in made] == 3 * [False] + 2 * [True]
        assert by_tenant == {"public": 3 * size}
        subscriptions = world.broker.subscriptions
        first = topic.subscriptions["s0"]
        await subscriptions.set_properties(first, {"k": "w"})  # as long as before
        with pytest.raises(InputError, match="are allowed"):
            await subscriptions.set_properties(first, {"k": "longer"})
        assert first.properties == {"k": "w"}
        await world.broker.registry.unload(parse_topic(T))
        assert by_tenant == {"public": 3 * size}  # the log has them
        again = world.broker.registry.get(parse_topic(T))
        assert again is not None
        assert by_tenant == {"public": 3 * size}
        await subscriptions.set_properties(again.subscriptions["s0"], {})
        await subscriptions.delete(again.subscriptions["s1"])
        assert by_tenant == {"public": size}
        await world.broker.registry.delete(parse_topic(T), force=True)
        assert not by_tenant

    world.run(story())
    world.crash()
    world.run(world.start())
    assert not world.broker.engine.properties.by_tenant


COLD_INDEX = LedgerSettings(segment_bytes=64 * KIB, index_cache_bytes=0)


async def cold_topic(world: World) -> Topic:
    """A topic with the index of its entry 150 on the disk alone."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(300):
        await producer.send(b"x")
    other = await client.producer(f"{TOPIC}-other")
    for _ in range(30):
        await other.send(b"x" * 10_000)
    await asyncio.sleep(5)
    topic = world.broker.engine.topics[TOPIC]
    assert not topic.log.is_indexed(150)
    return topic


@played(ledger=COLD_INDEX)
async def test_a_reader_that_leaves_before_it_is_connected_leaves_no_subscription(
    world: World,
) -> None:
    client, topic = await world.connect(), await cold_topic(world)
    reads = world.lanes[1]
    reads.freeze()
    asked = asyncio.ensure_future(client.reader(TOPIC, topic.log.position(150)))
    await asyncio.sleep(0.1)
    client.abort()
    with pytest.raises(ConnectionLostError):
        await asked
    reads.thaw()
    await asyncio.sleep(1)
    assert not topic.subscriptions


@played(ledger=COLD_INDEX, settings={"maxSubscriptionsPerTopic": "2"})
async def test_what_clients_that_left_began_to_create_has_the_bounds_of_what_is_there(
    world: World,
) -> None:
    """Their subscriptions were counted when their index was there, and readers went on alone."""
    topic = await cold_topic(world)
    reads = world.lanes[1]
    reads.freeze()
    create = partial(world.broker.subscriptions.create, topic, at_ordinal=150, properties={})
    refused = 0
    for number in range(5):
        client = await world.connect()
        made = asyncio.ensure_future(create(f"s{number}"))
        read = asyncio.ensure_future(client.reader(TOPIC, topic.log.position(150)))
        await asyncio.sleep(0.1)
        made.cancel()
        client.abort()
        ends = await asyncio.gather(made, read, return_exceptions=True)
        refused += isinstance(ends[0], TooManySubscriptionsError)
    assert refused == 3
    await asyncio.sleep(0.1)
    assert world.broker.subscriptions.running_count == 2
    reads.thaw()
    await asyncio.sleep(1)
    assert list(topic.subscriptions) == ["s0", "s1"]
    assert world.broker.subscriptions.running_count == 0


@played()
async def test_a_reader_that_leaves_as_it_is_connected_is_expected_for_a_while(
    world: World,
) -> None:
    topic = await topic_with(world, 3)
    asked = asyncio.ensure_future(world.broker.subscriptions.add_reader(topic, "r", 0))
    while "r" not in topic.subscriptions:
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await asyncio.sleep(RETURN_NS / NS_PER_S - 1)
    assert list(topic.subscriptions) == ["r"]
    await asyncio.sleep(2)
    assert not topic.subscriptions


@played(ledger=COLD_INDEX)
async def test_a_reader_and_a_durable_subscription_of_one_name_at_once(world: World) -> None:
    """Both were made: then the end of a connection failed amid its work, or took the other one."""
    one, two = await world.connect(), await world.connect()
    topic = await cold_topic(world)
    commits, reads = world.lanes[:2]
    commits.freeze()
    reads.freeze()
    reader = asyncio.ensure_future(two.reader(TOPIC, topic.log.position(150), name="s"))
    await asyncio.sleep(0.1)
    durable = asyncio.ensure_future(one.subscribe(TOPIC, "s", earliest=False))
    await asyncio.sleep(0.1)
    reads.thaw()
    await asyncio.sleep(0.1)
    commits.thaw()
    assert (await reader).is_open
    with pytest.raises(RefusedError, match="Subscription s exists and is non-durable"):
        await durable
    two.abort()
    await asyncio.sleep(0.1)
    assert not topic.subscriptions
    await one.subscribe(TOPIC, "s")
    with pytest.raises(RefusedError, match="Subscription s exists and is durable"):
        await one.reader(TOPIC, EARLIEST, name="s")
    with pytest.raises(NotAllowedError, match="Subscription s exists and is durable"):
        await world.broker.subscriptions.add_reader(topic, "s", 0)
