"""What policies let a client's use create, and which use they refuse."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.metadata.policies import AutoSubscriptionCreation, AutoTopicCreation
from headgate.testing import RefusedError, SimClient, World
from headgate.wire.codes import ServerError, SubscriptionType
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def on_namespace(world: World, **policies: object) -> None:
    catalog = world.broker.catalog
    change = catalog.plan_namespace_policies(NAME.namespace, **policies)
    await world.ask(world.broker.commit(change))


async def on_topic(world: World, **policies: object) -> None:
    change = world.broker.catalog.plan_topic_policies(NAME, **policies)
    await world.ask(world.broker.commit(change))


async def refused(client: SimClient, code: ServerError, text: str, **options: object) -> None:
    with pytest.raises(RefusedError) as refusal:
        await client.subscribe(TOPIC, "s", **options)  # type: ignore[arg-type]
    assert (refusal.value.code, text in str(refusal.value)) == (code, True)


@played(settings={"allowAutoTopicCreation": "false"})
async def test_a_namespace_lets_use_create_topics(world: World) -> None:
    client = await world.connect()
    await refused(client, ServerError.TOPIC_NOT_FOUND, "not found")
    await on_namespace(world, auto_topic_creation=AutoTopicCreation(True, "partitioned", 3))
    assert await client.partitions(TOPIC) == 3
    await on_namespace(world, auto_topic_creation=AutoTopicCreation(True, "non-partitioned"))
    assert await client.partitions(f"{TOPIC}-plain") == 0
    await client.producer(f"{TOPIC}-plain")


@played()
async def test_a_namespace_forbids_it(world: World) -> None:
    client = await world.connect()
    await on_namespace(world, auto_topic_creation=AutoTopicCreation(False))
    await refused(client, ServerError.TOPIC_NOT_FOUND, "not found")
    with pytest.raises(RefusedError):
        await client.partitions(TOPIC)
    assert world.broker.catalog.topic(TOPIC) is None


@played(settings={"allowAutoSubscriptionCreation": "false"})
async def test_consumers_create_no_subscription_where_that_is_not_allowed(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await refused(client, ServerError.SUBSCRIPTION_NOT_FOUND, "Subscription does not exist")
    await client.subscribe(TOPIC, "reader", durable=False)
    topic = world.broker.engine.topics[TOPIC]
    await world.broker.subscriptions.create(topic, "s", at_ordinal=0, properties={})
    await (await client.subscribe(TOPIC, "s")).close()
    await on_topic(world, auto_subscription_creation=AutoSubscriptionCreation(True))
    await client.subscribe(TOPIC, "other")


@played()
async def test_types_of_subscriptions_that_are_not_enabled_are_refused(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await on_namespace(world, subscription_types_enabled=("Failover",))
    text = f"Topic[{{{TOPIC}}}] doesn't support Shared sub type!"
    await refused(client, ServerError.NOT_ALLOWED_ERROR, text, kind=SubscriptionType.SHARED)
    await refused(client, ServerError.NOT_ALLOWED_ERROR, "doesn't support Exclusive")
    await (await client.subscribe(TOPIC, "s", kind=SubscriptionType.FAILOVER)).close()
    await on_topic(world, subscription_types_enabled=("Exclusive", "Shared"))
    await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)


@played()
async def test_a_changed_limit_on_unacknowledged_messages_acts_at_once(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await on_topic(world, max_unacked_messages_per_consumer=3)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    for _ in range(12):
        await producer.send(b"x")
    held = world.broker.engine.topics[TOPIC].subscriptions["s"].dispatcher
    assert held.in_flight_messages() == 3
    await on_topic(world, max_unacked_messages_per_consumer=5)
    for _ in range(5):
        await consumer.receive()
    assert held.in_flight_messages() == 5
    await on_namespace(world, max_unacked_messages_per_subscription=7)
    await on_topic(world, max_unacked_messages_per_consumer=0)
    for _ in range(2):
        await consumer.receive()
    assert held.in_flight_messages() == 7
    await on_namespace(world, max_unacked_messages_per_subscription=None)
    for _ in range(5):
        await consumer.receive()
