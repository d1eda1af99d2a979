"""Which subscriptions are deleted because they have no consumer."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.metadata.rows import Kind
from headgate.metadata.state import Change
from headgate.testing import SimClient, World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def set_time(world: World, minutes: int | None) -> None:
    plan = world.broker.catalog.plan_namespace_policies
    await world.ask(
        world.broker.commit(plan(NAME.namespace, subscription_expiration_time_minutes=minutes))
    )


def names(world: World) -> set[str]:
    return set(world.broker.engine.topics[TOPIC].subscriptions)


@played()
async def test_a_subscription_without_a_consumer_goes_after_its_time(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await client.subscribe(TOPIC, "used")
    await (await client.subscribe(TOPIC, "left")).close()
    await set_time(world, 20)
    await asyncio.sleep(19 * 60)
    assert names(world) == {"used", "left"}
    await asyncio.sleep(6 * 60)
    assert names(world) == {"used"}


@played(limit_s=10_000)
async def test_a_consumer_that_returns_keeps_it(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await set_time(world, 30)
    for _ in range(5):
        consumer = await client.subscribe(TOPIC, "s")
        await asyncio.sleep(60)
        await consumer.close()
        await asyncio.sleep(20 * 60)
    assert names(world) == {"s"}


@played(limit_s=10_000)
async def test_restarts_do_not_make_it_look_used(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await (await client.subscribe(TOPIC, "s")).close()
    await client.subscribe(TOPIC, "other")
    await set_time(world, 60)
    for _ in range(3):
        await asyncio.sleep(16 * 60)
        world.crash()
        await world.start()
    assert names(world) == {"s", "other"}
    await asyncio.sleep(20 * 60)
    assert names(world) == {"other"}
    assert list(world.broker.catalog.idle_subscriptions(TOPIC).since_ms) == ["other"]


@played(limit_s=10_000)
async def test_crowds_of_used_ones_are_stored_together(world: World) -> None:
    """Each use was a change of its own, which wrote the times of all: megabytes for thousands."""
    client = await world.connect()
    await client.producer(TOPIC)
    crowd = [f"s{number}" for number in range(60)]
    for name in crowd:
        await (await client.subscribe(TOPIC, name)).close()
    await set_time(world, 60)
    await asyncio.sleep(11 * 60)
    assert set(world.broker.catalog.idle_subscriptions(TOPIC).since_ms) == set(crowd)
    writer = world.broker.writer
    own_commit, count = writer.commit, 0

    async def commit(change: Change) -> None:
        nonlocal count
        count += any(row.kind is Kind.IDLE_SUBSCRIPTIONS for row in change.rows)
        await own_commit(change)

    writer.commit = commit  # type: ignore[method-assign]
    await asyncio.gather(*(client.subscribe(TOPIC, name) for name in crowd))
    assert 1 <= count <= 3
    assert not world.broker.catalog.idle_subscriptions(TOPIC).since_ms
    world.crash()
    await world.start()
    assert not world.broker.catalog.idle_subscriptions(TOPIC).since_ms


@played()
async def test_the_use_by_a_client_that_goes_before_its_turn_is_stored_with_the_next(
    world: World,
) -> None:
    """It stayed in memory until the topic's next use, for ever if the topic was deleted."""
    client = await world.connect()
    await client.producer(TOPIC)
    for name in ("first", "second"):
        await (await client.subscribe(TOPIC, name)).close()
    await set_time(world, 60)
    await asyncio.sleep(11 * 60)
    registry = world.broker.registry
    first = asyncio.create_task(registry.note_use(NAME, "first"))
    for _ in range(2):
        await asyncio.sleep(0)  # the change of the first one is on its way to the disk
    second = asyncio.create_task(registry.note_use(NAME, "second"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([first, second])
    assert second.cancelled()
    assert not world.broker.catalog.idle_subscriptions(TOPIC).since_ms


@played(limit_s=10_000)
async def test_one_that_was_used_just_before_a_crash_counts_as_used(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    for name in ("used", "again", "admin", "idle"):
        await (await client.subscribe(TOPIC, name)).close()
    await set_time(world, 60)
    await asyncio.sleep(56 * 60)
    facade = AdminFacade(world.broker, world.observer)
    for name in ("again", "admin"):
        await facade.delete_subscription(NAME, name, force=False)
    await asyncio.gather(client.subscribe(TOPIC, "used"), client.subscribe(TOPIC, "again"))
    await facade.create_subscription(NAME, "admin", AtPosition(EARLIEST), {})
    world.crash()
    await world.start()
    await asyncio.sleep(11 * 60)
    assert names(world) == {"used", "again", "admin"}


@played()
async def test_a_use_that_cannot_be_stored_refuses_no_consumer(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await (await client.subscribe(TOPIC, "s")).close()
    await set_time(world, 30)
    await asyncio.sleep(11 * 60)
    world.store.fail_next(StorageError("hiccup", retryable=True))
    await client.subscribe(TOPIC, "s")
    assert world.broker.catalog.idle_subscriptions(TOPIC).since_ms


@played()
async def test_without_a_policy_nothing_is_stored(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await (await client.subscribe(TOPIC, "s")).close()
    await set_time(world, 30)
    await asyncio.sleep(11 * 60)
    assert world.broker.catalog.idle_subscriptions(TOPIC).since_ms
    await set_time(world, 0)
    await asyncio.sleep(6 * 60)
    assert not world.broker.catalog.idle_subscriptions(TOPIC).since_ms
    await asyncio.sleep(30 * 60)
    assert names(world) == {"s"}


@played()
async def test_a_failed_store_is_tried_again(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await (await client.subscribe(TOPIC, "s")).close()
    await set_time(world, 30)
    world.store.fail_next(StorageError("hiccup", retryable=True))
    await asyncio.sleep(11 * 60)
    assert world.broker.catalog.idle_subscriptions(TOPIC).since_ms
    await asyncio.sleep(30 * 60)
    assert names(world) == set()


@played()
async def test_the_row_goes_with_its_topic(world: World) -> None:
    client = await world.connect()
    await (await client.subscribe(TOPIC, "s")).close()
    await set_time(world, 30)
    await asyncio.sleep(6 * 60)
    assert world.broker.catalog.idle_subscriptions(TOPIC).since_ms
    await world.ask(world.broker.registry.delete(NAME, force=True))
    assert not world.broker.catalog.idle_subscriptions(TOPIC).since_ms


async def leave_idle(world: World, *topics: str) -> SimClient:
    """A subscription of each topic without a consumer, and a consumer that keeps the topic."""
    client = await world.connect()
    for topic in topics:
        await (await client.subscribe(topic, "s")).close()
        await client.subscribe(topic, "stays")
    return client


@played(limit_s=10_000)
async def test_a_consumer_that_joins_while_the_sweep_stores_is_a_use(world: World) -> None:
    client = await leave_idle(world, TOPIC)
    await set_time(world, 600)
    metadata = world.lanes[2]
    metadata.freeze()
    sweep = asyncio.ensure_future(world.broker.endings.subscriptions.expire())
    await asyncio.sleep(0.1)
    joining = asyncio.ensure_future(client.subscribe(TOPIC, "s"))
    await asyncio.sleep(0.1)
    assert not sweep.done()
    metadata.thaw()
    await sweep
    await joining
    world.crash()
    await world.start()
    assert not world.broker.catalog.idle_subscriptions(TOPIC).since_ms


@pytest.mark.parametrize("leaves_again", [False, True])
def test_a_consumer_that_joins_before_the_sweep_stores_is_a_use(*, leaves_again: bool) -> None:
    @played(limit_s=10_000)
    async def story(world: World) -> None:
        client = await leave_idle(world, TOPIC, f"{TOPIC}-2")
        await set_time(world, 600)
        await asyncio.sleep(6 * 60)
        assert world.broker.catalog.idle_subscriptions(TOPIC).since_ms
        await (await client.subscribe(TOPIC, "s")).close()
        await asyncio.sleep(10)
        engine = world.broker.engine
        other = engine.topics[f"{TOPIC}-2"].subscriptions["s"]
        other.idle_since_ms = engine.log_ms - 601 * 60_000
        world.lanes[0].freeze()  # the deletion of the second topic's subscription waits
        sweep = asyncio.ensure_future(world.broker.endings.subscriptions.expire())
        await asyncio.sleep(0.1)
        consumer = await client.subscribe(TOPIC, "s")
        if leaves_again:
            await consumer.close()
        joined_ms = engine.log_ms
        await asyncio.sleep(0.1)
        assert not sweep.done()
        world.lanes[0].thaw()
        await sweep
        world.crash()
        await world.start()
        found = world.broker.catalog.idle_subscriptions(TOPIC).since_ms
        assert found.get("s", joined_ms) >= joined_ms

    story()
