"""Each event that releases entries frees disk within a minute, without a walk of all topics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import KIB
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import OlderThan
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import BacklogQuota, Retention
from headgate.testing import SimClient, SimConsumer, World
from tests.unit.broker.playing import TOPIC, played

SEGMENT = 256 * KIB
"""An idle log has two of them, and the file of a deleted one for the next."""
BODY = b"x" * 10_000
ENTRIES = 200
NAME = parse_topic(TOPIC)
NO_WALK = {"retentionCheckIntervalInSeconds": "1000000"}
FOR_EVER = Retention(-1, -1)


def topic_of(world: World) -> Topic:
    return world.broker.engine.topics[TOPIC]


async def publish(client: SimClient, count: int = ENTRIES, body: bytes = BODY) -> None:
    producer = await client.producer(TOPIC)
    for _ in range(count):
        await producer.send(body)
    await producer.close()


async def take(consumer: SimConsumer, count: int = ENTRIES) -> None:
    """Receive and acknowledge."""
    for _ in range(count):
        await consumer.ack((await consumer.receive()).position)


async def keep_for(world: World, retention: Retention | None) -> None:
    """Set the retention of the namespace."""
    catalog = world.broker.catalog
    change = catalog.plan_namespace_policies(NAME.namespace, retention=retention)
    await world.broker.writer.commit(change)


async def is_freed_within_a_minute(world: World) -> None:
    assert world.fs.used_bytes() >= ENTRIES * len(BODY)
    await asyncio.sleep(60)
    log = topic_of(world).log
    assert (log.first, log.end) == (ENTRIES, ENTRIES)
    assert world.fs.used_bytes() <= 4 * SEGMENT


# -- events --------------------------------------------------------------------------------------


async def remove_the_subscription(world: World, admin: AdminFacade) -> None:
    await admin.delete_subscription(NAME, "slow", force=True)


async def clear(_: World, admin: AdminFacade) -> None:
    await admin.clear_backlog(NAME, "slow")


async def skip(_: World, admin: AdminFacade) -> None:
    await admin.skip_messages(NAME, "slow", ENTRIES)


async def expire(world: World, admin: AdminFacade) -> None:
    await asyncio.sleep(10)
    await admin.expire_messages(NAME, "slow", OlderThan(5))


async def seek(world: World, _: AdminFacade) -> None:
    broker = world.broker
    await broker.subscriptions.seek(topic_of(world).subscriptions["slow"], ENTRIES)


async def expire_by_itself(world: World, _: AdminFacade) -> None:
    broker = world.broker
    await broker.writer.commit(broker.catalog.plan_topic_policies(NAME, message_ttl_in_seconds=1))


async def evict(world: World, _: AdminFacade) -> None:
    quota = BacklogQuota(QuotaPolicy.EVICTION.value, limit_size=0)
    quotas = {"destination_storage": quota}
    broker = world.broker
    await broker.writer.commit(broker.catalog.plan_topic_policies(NAME, backlog_quotas=quotas))


EVENTS = [remove_the_subscription, clear, skip, expire, expire_by_itself, evict, seek]


@pytest.mark.parametrize("event", EVENTS)
def test_a_subscription_that_needs_nothing_any_more(
    event: Callable[[World, AdminFacade], Awaitable[None]],
) -> None:
    @played(settings=NO_WALK)
    async def story(world: World) -> None:
        client = await world.connect()
        fast = await client.subscribe(TOPIC, "fast")
        slow = await client.subscribe(TOPIC, "slow", queue_size=0)
        await slow.close()
        await publish(client)
        await take(fast)
        await asyncio.sleep(120)
        assert topic_of(world).log.first == 0
        await event(world, AdminFacade(world.broker, world.observer))
        await is_freed_within_a_minute(world)

    story()


async def of_the_namespace(world: World) -> None:
    await keep_for(world, Retention())


async def of_the_topic(world: World) -> None:
    broker = world.broker
    await broker.writer.commit(broker.catalog.plan_topic_policies(NAME, retention=Retention()))


@pytest.mark.parametrize("change", [of_the_namespace, of_the_topic])
def test_a_shorter_retention(change: Callable[[World], Awaitable[None]]) -> None:
    @played(settings=NO_WALK)
    async def story(world: World) -> None:
        await keep_for(world, FOR_EVER)
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s")
        await publish(client)
        await take(consumer)
        await asyncio.sleep(120)
        assert topic_of(world).log.first == 0
        await change(world)
        await is_freed_within_a_minute(world)

    story()


@played(settings=NO_WALK)
async def test_an_unload(world: World) -> None:
    """The broker unloads a topic before it looks at what was acknowledged."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, 20)
    await take(consumer, 20)
    await asyncio.sleep(5)
    await AdminFacade(world.broker, world.observer).unload_topic(NAME)
    await world.broker.registry.get_or_create(NAME, create=False)
    assert topic_of(world).log.first == 0
    await asyncio.sleep(60)
    assert topic_of(world).log.first == 20


@played(settings=NO_WALK)
async def test_a_deleted_topic(world: World) -> None:
    client = await world.connect()
    await publish(client)
    await AdminFacade(world.broker, world.observer).delete_topic(NAME, force=True)
    await asyncio.sleep(60)
    assert world.fs.used_bytes() <= 4 * SEGMENT


@played(settings=NO_WALK)
async def test_a_reader_that_catches_up_or_leaves(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    reader = await client.subscribe(TOPIC, "r", durable=False, queue_size=0)
    await publish(client)
    await take(consumer)
    await asyncio.sleep(600)
    assert topic_of(world).log.first == 0
    await reader.close()
    await is_freed_within_a_minute(world)


SMALL_LEDGERS = LedgerSettings(segment_bytes=SEGMENT, ledger_entries_max=20, ledger_age_ms_min=0)


@played(settings=NO_WALK, ledger=SMALL_LEDGERS)
async def test_full_ledgers_without_a_subscription(world: World) -> None:
    client = await world.connect()
    await publish(client, ENTRIES + 1)
    await asyncio.sleep(60)
    assert topic_of(world).log.first == ENTRIES
    assert world.fs.used_bytes() <= 4 * SEGMENT


@played(settings=NO_WALK, ledger=SMALL_LEDGERS)
async def test_a_size_bound_that_a_backlog_exceeds(world: World) -> None:
    """What one subscription acknowledged is over the size because of what it did not."""
    await keep_for(world, Retention(-1, 2))
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    await publish(client, 150)
    consumer.flow(150)
    await take(consumer, 150)
    await asyncio.sleep(120)
    assert topic_of(world).log.first == 0
    producer = await client.producer(TOPIC)
    for _ in range(100):  # in the same ledger period: nothing is acknowledged
        await producer.send(BODY)
    await asyncio.sleep(90)
    assert topic_of(world).log.first == 40  # 250 entries of 10 kB are 40 too many


# -- the net -------------------------------------------------------------------------------------

OFTEN = {
    "retentionCheckIntervalInSeconds": "7",
    "managedLedgerInactiveLedgerRolloverTimeSeconds": "300",
    "brokerDeleteInactiveTopicsEnabled": "false",
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"ledger": SMALL_LEDGERS},
    {
        "ledger": LedgerSettings(
            segment_bytes=SEGMENT, ledger_age_ms_min=0, ledger_age_ms_max=30_000
        )
    },
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_walk_finds_nothing(options: dict[str, Any]) -> None:
    """Whatever is kept and for how long, events and due times announce what a walk trims."""

    settings = {
        "retentionCheckIntervalInSeconds": "7",
        "brokerDeleteInactiveTopicsEnabled": "false",
    }

    @played(settings=settings, limit_s=30_000, **options)
    async def story(world: World) -> None:
        policies = (Retention(), Retention(1, -1), Retention(-1, 1), Retention(2, 1), None)
        for retention in policies:
            await keep_for(world, retention)
            client = await world.connect()
            await publish(client, 30)
            await asyncio.sleep(100)
            consumer = await client.subscribe(TOPIC, "s")
            await publish(client, 30)
            await take(consumer, 30)
            await asyncio.sleep(200)
            await publish(client, 120)
            await asyncio.sleep(100)
            await take(consumer, 120)
            await consumer.close()
            admin = AdminFacade(world.broker, world.observer)
            await asyncio.sleep(50)
            await publish(client, 20)
            await admin.delete_subscription(NAME, "s", force=True)
            await publish(client, 5)
            await asyncio.sleep(400)
        assert topic_of(world).log.first > 0
        assert world.broker.trimming.found_by_walk == 0

    story()
