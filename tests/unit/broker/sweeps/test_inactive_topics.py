"""Which topics the broker deletes because nobody uses them."""

from __future__ import annotations

import asyncio

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import InactiveTopicPolicies, Retention
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)
OTHER = f"{TOPIC}-other"
SMALL_LEDGERS = LedgerSettings(segment_bytes=64 * 1024, ledger_entries_max=10, ledger_age_ms_min=0)


async def abandon(world: World, *topics: str) -> None:
    """Make topics that hold a message and are used by nobody any more."""
    client = await world.connect()
    for topic in topics:
        producer = await client.producer(topic)
        await producer.send(b"x")
        await producer.close()
    client.close()


async def set_dynamic(world: World, name: str, value: str | None) -> None:
    await world.broker.writer.commit(world.broker.catalog.plan_setting(name, value))


def exists(world: World, topic: str) -> bool:
    return world.broker.catalog.topic(topic) is not None


@played()
async def test_a_topic_that_nobody_used_for_a_whole_period_goes(world: World) -> None:
    await abandon(world, TOPIC)
    await asyncio.sleep(55)
    assert exists(world, TOPIC)
    await asyncio.sleep(70)
    assert not exists(world, TOPIC)
    assert TOPIC not in world.broker.engine.topics


@played()
async def test_what_keeps_a_topic(world: World) -> None:
    catalog, writer = world.broker.catalog, world.broker.writer
    kept = [f"{TOPIC}-{why}" for why in ("producer", "subscription", "reader", "retention")]
    await abandon(world, *kept)
    client = await world.connect()
    await client.producer(kept[0])
    await (await client.subscribe(kept[1], "s")).close()
    await client.subscribe(kept[2], "r", durable=False)
    await writer.commit(
        catalog.plan_topic_policies(
            parse_topic(kept[3]),
            retention=Retention(retention_time_in_minutes=10, retention_size_in_mb=10),
        )
    )
    await writer.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=world.wall_ms()))
    world.broker.registry.load_all()
    await asyncio.sleep(300)
    assert all(exists(world, topic) for topic in kept)
    assert exists(world, f"{TOPIC}-partition-0")


@played()
async def test_a_topic_that_is_used_again_at_the_last_moment_stays(world: World) -> None:
    """It was found inactive, but another one's deletion took its time."""
    await abandon(world, TOPIC, OTHER)
    world.clock.advance(200 * NS_PER_S)
    world.lanes[2].freeze()
    sweep = asyncio.ensure_future(world.broker.endings.topics.delete())
    await asyncio.sleep(0.1)
    client = await world.connect()
    consumer = await client.subscribe(OTHER, "s")
    await (await client.producer(OTHER)).send(b"must not go")
    client.abort()
    await asyncio.sleep(0.1)
    world.lanes[2].thaw()
    await sweep
    assert not exists(world, TOPIC)
    consumer = await (await world.connect()).subscribe(OTHER, "s")
    assert [(await consumer.receive()).payload for _ in range(2)] == [b"x", b"must not go"]


@played()
async def test_a_deletion_that_fails_leaves_the_others_theirs(world: World) -> None:
    await abandon(world, TOPIC, OTHER)
    world.clock.advance(200 * NS_PER_S)
    world.store.fail_next(StorageError("hiccup", retryable=True))
    await world.broker.endings.topics.delete()
    assert [exists(world, topic) for topic in (TOPIC, OTHER)] == [True, False]
    await world.broker.endings.topics.delete()
    assert not exists(world, TOPIC)


@played()
async def test_its_settings_count_at_once(world: World) -> None:
    await set_dynamic(world, "brokerDeleteInactiveTopicsFrequencySeconds", "3600")
    await abandon(world, TOPIC)
    await asyncio.sleep(200)
    assert exists(world, TOPIC)
    await set_dynamic(world, "brokerDeleteInactiveTopicsEnabled", "false")
    await set_dynamic(world, "brokerDeleteInactiveTopicsFrequencySeconds", "5")
    await asyncio.sleep(60)
    assert exists(world, TOPIC)
    await set_dynamic(world, "brokerDeleteInactiveTopicsEnabled", None)
    await asyncio.sleep(7)
    assert not exists(world, TOPIC)


CAUGHT_UP = InactiveTopicPolicies("delete_when_subscriptions_caught_up", 120, True)


async def set_policies(world: World, **policies: object) -> None:
    await world.broker.commit(world.broker.catalog.plan_topic_policies(NAME, **policies))


@played()
async def test_a_topic_whose_subscriptions_are_caught_up_goes_with_them(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    producer = await client.producer(TOPIC)
    await set_policies(world, inactive_topic_policies=CAUGHT_UP)
    await producer.send(b"x")
    await producer.close()
    await asyncio.sleep(300)
    assert exists(world, TOPIC)  # it has a consumer
    await consumer.close()
    await asyncio.sleep(300)
    assert exists(world, TOPIC)  # it has a backlog
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.ack((await consumer.receive()).position)
    await consumer.close()
    await asyncio.sleep(110)
    assert exists(world, TOPIC)
    await asyncio.sleep(75)
    assert not exists(world, TOPIC)


@played()
async def test_a_topic_whose_backlog_expired_is_idle_since_then(world: World) -> None:
    await (await (await world.connect()).subscribe(TOPIC, "s")).close()
    await abandon(world, TOPIC)
    await set_policies(world, inactive_topic_policies=CAUGHT_UP, message_ttl_in_seconds=200)
    await asyncio.sleep(300)
    assert exists(world, TOPIC)
    await asyncio.sleep(120)
    assert not exists(world, TOPIC)


@played()
async def test_policies_of_topic_and_namespace_decide(world: World) -> None:
    await abandon(world, TOPIC, OTHER)
    never = InactiveTopicPolicies("delete_when_no_subscriptions", 1, delete_while_inactive=False)
    plan = world.broker.catalog.plan_namespace_policies
    await world.broker.commit(plan(NAME.namespace, inactive_topic_policies=never))
    slow = InactiveTopicPolicies("delete_when_no_subscriptions", 600, delete_while_inactive=True)
    await set_policies(world, inactive_topic_policies=slow)
    await asyncio.sleep(500)
    assert exists(world, TOPIC)
    await asyncio.sleep(200)
    assert [exists(world, topic) for topic in (TOPIC, OTHER)] == [False, True]


@played()
async def test_retention_keeps_a_topic_for_its_time(world: World) -> None:
    await abandon(world, TOPIC, OTHER)
    await set_policies(world, retention=Retention(10, -1))
    for_ever = Retention(-1, 1)
    plan = world.broker.catalog.plan_topic_policies
    await world.broker.commit(plan(parse_topic(OTHER), retention=for_ever))
    await asyncio.sleep(550)
    assert exists(world, TOPIC)
    await asyncio.sleep(120)
    assert [exists(world, topic) for topic in (TOPIC, OTHER)] == [False, True]


@played()
async def test_a_partitioned_topic_goes_as_a_whole_if_the_setting_allows_it(world: World) -> None:
    catalog = world.broker.catalog
    await world.broker.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=world.wall_ms()))
    world.broker.registry.load_all()
    await set_dynamic(world, "brokerDeleteInactivePartitionedTopicMetadataEnabled", "true")
    client = await world.connect()
    producer = await client.producer(f"{TOPIC}-partition-1")
    await asyncio.sleep(200)
    assert exists(world, f"{TOPIC}-partition-0")
    await producer.close()
    await asyncio.sleep(130)
    assert catalog.partitioned(TOPIC) is None
    assert not exists(world, f"{TOPIC}-partition-0")
    assert not exists(world, f"{TOPIC}-partition-1")
