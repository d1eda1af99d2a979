"""Which messages expire by a TTL, when, and that their room comes back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST
from headgate.base.units import KIB
from headgate.engine.observer import NoObserver
from headgate.engine.subscription import Subscription
from headgate.flow.expiry import MessageTtl
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import TopicPolicies
from headgate.testing import SimClient, World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)
SMALL_LEDGERS = LedgerSettings(segment_bytes=64 * 1024, ledger_entries_max=10, ledger_age_ms_min=0)
BODY = b"x" * 10_000
SEGMENT = 256 * KIB


async def set_ttl(world: World, seconds: int | None) -> None:
    plan = world.broker.catalog.plan_topic_policies
    await world.ask(world.broker.commit(plan(NAME, message_ttl_in_seconds=seconds)))


async def publish(client: SimClient, count: int, topic: str = TOPIC, body: bytes = b"x") -> None:
    producer = await client.producer(topic)
    for _ in range(count):
        await producer.send(body)
    await producer.close()


def subscription(world: World, name: str = "s", topic: str = TOPIC) -> Subscription:
    return world.broker.engine.topics[topic].subscriptions[name]


async def leave_backlog(world: World, count: int = 10, name: str = "s") -> SimClient:
    """Have messages that no consumer of a subscription acknowledges."""
    client = await world.connect()
    await (await client.subscribe(TOPIC, name)).close()
    await publish(client, count)
    return client


@played()
async def test_messages_expire_when_they_reach_their_age(world: World) -> None:
    client = await leave_backlog(world)
    await set_ttl(world, 100)
    await asyncio.sleep(60)
    await publish(client, 5)
    await asyncio.sleep(38)
    assert subscription(world).backlog_messages == 15
    await asyncio.sleep(4)
    assert (subscription(world).backlog_messages, subscription(world).expired_messages) == (5, 10)
    await asyncio.sleep(60)
    assert (subscription(world).backlog_messages, subscription(world).expired_messages) == (0, 15)
    assert subscription(world).skipped_messages == 0
    assert subscription(world).last_expire_ms > 0
    expired_by = subscription(world).expired_by
    assert expired_by is not None
    assert (expired_by.ttl_s, expired_by.source) == (100, "topic policy")


@played(settings={"ttlDurationDefaultInSeconds": "60"})
async def test_policies_come_before_the_setting(world: World) -> None:
    """The most specific one counts, and 0 is none."""
    await leave_backlog(world)
    await (await world.connect()).producer(f"{TOPIC}-other")
    catalog = world.broker.catalog
    await world.broker.commit(
        catalog.plan_namespace_policies(NAME.namespace, message_ttl_in_seconds=0)
    )
    await asyncio.sleep(120)
    assert subscription(world).backlog_messages == 10
    await set_ttl(world, 200)
    await asyncio.sleep(60)
    assert subscription(world).backlog_messages == 10
    await asyncio.sleep(60)
    assert subscription(world).backlog_messages == 0
    await set_ttl(world, None)
    await publish(await world.connect(), 1)
    await asyncio.sleep(300)
    assert subscription(world).backlog_messages == 1
    await world.broker.commit(
        catalog.plan_namespace_policies(NAME.namespace, message_ttl_in_seconds=None)
    )
    await asyncio.sleep(3)
    assert subscription(world).backlog_messages == 0
    assert subscription(world).expired_by is not None
    assert catalog.topic_policies(NAME) == TopicPolicies()


@played()
async def test_messages_with_consumers_expire_and_readers_keep_theirs(world: World) -> None:
    client = await leave_backlog(world)
    consumer = await client.subscribe(TOPIC, "s", queue_size=4)
    held = [await consumer.receive() for _ in range(4)]
    reader = await client.subscribe(TOPIC, "r", durable=False, earliest=False, queue_size=0)
    await publish(client, 1)
    await set_ttl(world, 30)
    await asyncio.sleep(40)
    assert subscription(world).backlog_messages == 0
    assert subscription(world).dispatcher.in_flight_messages() == 0
    assert subscription(world, "r").backlog_messages == 1
    consumer.ack_nowait(*(message.position for message in held))  # too late, and harmless
    reader.flow(1)
    assert (await reader.receive()).payload == b"x"
    await asyncio.sleep(1)
    assert (subscription(world).acked_messages, subscription(world).expired_messages) == (0, 11)


@played()
async def test_each_subscription_loses_its_own(world: World) -> None:
    """Acknowledged messages do not expire, also those that were acknowledged one by one."""
    client = await leave_backlog(world)
    await (await client.subscribe(TOPIC, "later", earliest=False)).close()
    await publish(client, 3)
    consumer = await client.subscribe(TOPIC, "s")
    for number in range(13):
        message = await consumer.receive()
        if number % 2:
            await consumer.ack(message.position)
    await set_ttl(world, 60)
    await asyncio.sleep(70)
    assert subscription(world).expired_messages == 7
    assert subscription(world, "later").expired_messages == 3


@played()
async def test_a_caught_up_topic_expires_what_comes_later(world: World) -> None:
    """A publish announces nothing: the look after a whole TTL finds it."""
    client = await leave_backlog(world, 0)
    await set_ttl(world, 50)
    await asyncio.sleep(170)
    await publish(client, 1)
    await asyncio.sleep(48)
    assert subscription(world).backlog_messages == 1
    await asyncio.sleep(5)
    assert subscription(world).backlog_messages == 0


@played(settings={"messageExpiryCheckIntervalInMinutes": "1"})
async def test_what_a_seek_brings_back_expires_within_the_interval(world: World) -> None:
    client = await leave_backlog(world)
    await set_ttl(world, 1_000)
    reader = await client.reader(TOPIC, EARLIEST, queue_size=0)  # it keeps the messages
    consumer = await client.subscribe(TOPIC, "s")
    for _ in range(10):
        await consumer.ack((await consumer.receive()).position)
    await asyncio.sleep(1_100)
    await world.broker.subscriptions.seek(subscription(world), 0)
    await asyncio.sleep(1)
    assert subscription(world).backlog_messages > 0
    await asyncio.sleep(62)
    assert subscription(world).backlog_messages == 0
    await reader.close()


@played(ledger=SMALL_LEDGERS)
async def test_what_expired_frees_its_room_and_stays_expired(world: World) -> None:
    client = await world.connect()
    await (await client.subscribe(TOPIC, "s")).close()
    await publish(client, 200, body=BODY)
    assert world.fs.used_bytes() > 7 * SEGMENT
    await set_ttl(world, 60)
    await asyncio.sleep(300)
    assert subscription(world).expired_messages == 200
    assert world.broker.engine.topics[TOPIC].storage_bytes() == 0
    assert world.fs.used_bytes() <= 3 * SEGMENT
    world.crash()
    await world.start()
    assert subscription(world).backlog_messages == 0


@played()
async def test_many_subscriptions_of_a_topic_expire_in_turn(world: World) -> None:
    client = await world.connect()
    for number in range(40):
        await (await client.subscribe(TOPIC, f"s{number}")).close()
    await publish(client, 3)
    await set_ttl(world, 10)
    await asyncio.sleep(15)
    expired = {
        each.expired_messages for each in world.broker.engine.topics[TOPIC].subscriptions.values()
    }
    assert expired == {3}


@played()
async def test_subscriptions_that_move_back_as_fast_as_they_expire_hold_up_no_other_topic(
    world: World,
) -> None:
    """The look at a topic ended when no subscription had old messages, and may never have: clients
    move theirs back, or add some. Nothing of any topic expired for as long."""
    client = await leave_backlog(world)
    for number in range(40):
        await (await client.subscribe(TOPIC, f"s{number}")).close()
    await publish(client, 3)
    expire_to, expired_at = Subscription.expire_to, list[int]()

    def moved_back(one: Subscription, ordinal: int, ttl: MessageTtl | None) -> int:
        expired_at.append(world.broker.engine.now_ms)
        assert len(expired_at) < 1_000, "it goes on and on"
        expired = expire_to(one, ordinal, ttl)
        one.reset(0)
        return expired

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Subscription, "expire_to", moved_back)
        await set_ttl(world, 10)
        await asyncio.sleep(12)
    assert max(Counter(expired_at).values()) == 41
    await asyncio.sleep(600)
    assert subscription(world).backlog_messages == 0


@played()
async def test_a_topic_that_is_deleted_or_unloaded_is_forgotten(world: World) -> None:
    await leave_backlog(world)
    await set_ttl(world, 20)
    await world.ask(world.broker.registry.unload(NAME))
    await asyncio.sleep(30)
    topic = world.broker.registry.get(NAME)
    assert topic is not None
    await asyncio.sleep(3)
    assert topic.subscriptions["s"].backlog_messages == 0
    await world.ask(world.broker.registry.delete(NAME, force=True))
    await asyncio.sleep(30)
    assert world.broker.internal_errors() == []


@played()
async def test_a_topic_that_is_trimmed_while_its_oldest_message_is_looked_up(world: World) -> None:
    """The sweep failed with an internal error while the index of that message was read."""
    await leave_backlog(world, 300)
    topic = world.broker.engine.topics[TOPIC]
    index = world.broker.logs.of(topic).index
    look_up, looked_up = index.look_up, []

    async def slow(action: Callable[[], Any], *, is_upkeep: bool = False) -> Any:
        if not looked_up:
            subscription(world).skip_to(topic.log.end)
            log = world.broker.log.topic(topic.log.number)
            world.broker.log.stage_trim(log, log.end)
            await world.broker.when_durable()
        looked_up.append(await look_up(action, is_upkeep=is_upkeep))
        return looked_up[-1]

    index.look_up = slow  # type: ignore[method-assign]
    await set_ttl(world, 1)
    await asyncio.sleep(90)
    assert looked_up
    assert not any(looked_up)


@played()
async def test_the_observer_learns_what_a_ttl_took_and_not_what_a_request_did(
    world: World,
) -> None:
    await leave_backlog(world)
    told: list[tuple[str, str, int]] = []

    class Told(NoObserver):
        def expired(self, of: Subscription, ttl: MessageTtl, messages: int, /) -> None:
            told.append((of.name, ttl.source, messages))

    world.broker.engine.observer = Told()
    subscription(world).expire_to(4, None)
    await set_ttl(world, 20)
    await asyncio.sleep(25)
    assert told == [("s", "topic policy", 6)]


@played()
async def test_explain_says_who_lost_what_and_where_the_ttl_is_set(world: World) -> None:
    client = await leave_backlog(world)
    await set_ttl(world, 10)
    producer = await client.producer(TOPIC)
    for _ in range(60):
        await producer.send(b"x")
        await asyncio.sleep(1)
    report = await world.observer.explain_topic(NAME, per_partition=False)
    (lost,) = report["subscriptions"]
    assert lost["verdict"] == "NO_CONSUMER"
    assert "; the message TTL of 10 s (topic policy) expired " in lost["sentence"]
    assert lost["sentence"].endswith(" messages before they were acknowledged.")
    hour = lost["hour"]
    assert hour["expired"] == hour["backlogStart"] + hour["appended"] - hour["backlogEnd"]
    assert (hour["acked"], hour["skipped"]) == (0, 0)
