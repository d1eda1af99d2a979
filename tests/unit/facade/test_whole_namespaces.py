"""Requests about whole namespaces and the whole broker, over HTTP to a running one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from headgate.admin.app import AdminApp
from headgate.base.names import NamespaceName
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import World
from headgate.wire.codes import SubscriptionType
from tests.unit.admin.client import Answer, ask_async

N = "/admin/v2/namespaces/public/default"
TOPICS = [f"persistent://public/default/t{number}" for number in range(12)]

Ask = Callable[[str, str], Awaitable[Answer]]


@pytest.fixture
def world() -> Iterator[World]:
    with World() as made:
        made.run(made.start())
        yield made


async def furnish(world: World) -> Ask:
    """Twelve topics with two subscriptions each, and three messages."""
    client = await world.connect()
    for name in TOPICS:
        for subscription in ("s", "other"):
            consumer = await client.subscribe(name, subscription, kind=SubscriptionType.SHARED)
            await consumer.close()
        producer = await client.producer(name)
        for _ in range(3):
            await producer.send(b"x")
        await producer.close()
    app = AdminApp(AdminFacade(world.broker, world.observer), world.clock)

    async def ask(method: str, path: str) -> Answer:
        return await ask_async(app, method, path)

    return ask


def backlogs(world: World, subscription: str) -> set[int]:
    topics = [world.broker.engine.topics[name] for name in TOPICS]
    return {topic.subscriptions[subscription].backlog_entries for topic in topics}


def test_backlogs_of_a_namespace(world: World) -> None:
    async def story() -> None:
        ask = await furnish(world)
        assert (await ask("POST", f"{N}/clearBacklog/s")).status == 204
        assert (backlogs(world, "s"), backlogs(world, "other")) == ({0}, {3})
        assert (await ask("POST", f"{N}/unsubscribe/s")).status == 204
        for name in TOPICS:
            assert set(world.broker.engine.topics[name].subscriptions) == {"other"}

    world.run(story())
    world.crash()
    world.run(world.start())
    assert backlogs(world, "other") == {3}
    assert all("s" not in world.broker.engine.topics[name].subscriptions for name in TOPICS)


def test_clients_of_an_unloaded_namespace_reconnect(world: World) -> None:
    async def story() -> None:
        ask = await furnish(world)
        client = await world.connect()
        consumers = [await client.subscribe(name, "s") for name in TOPICS]
        before = {name: world.broker.engine.topics[name] for name in TOPICS}
        assert (await ask("PUT", f"{N}/unload")).status == 204
        await asyncio.sleep(1)
        assert not any(topic.is_live for topic in before.values())
        assert not any(consumer.is_open for consumer in consumers)
        assert backlogs(world, "s") == {3}
        consumer = await client.subscribe(TOPICS[0], "s")
        assert (await consumer.receive()).redelivery_count == 0

    world.run(story())


def test_topics_are_deleted_while_the_figures_of_all_are_sent(world: World) -> None:
    async def story() -> None:
        ask = await furnish(world)
        asking = asyncio.ensure_future(ask("GET", "/admin/v2/broker-stats/topics"))
        await asyncio.sleep(0)
        for name in TOPICS[::2]:
            await ask("DELETE", f"/admin/v2/{name.replace('://', '/')}?force=true")
        found = (await asking).json()
        shown = {
            name: topic
            for bundle in found["public/default"].values()
            for name, topic in bundle["persistent"].items()
        }
        assert set(TOPICS[1::2]) <= set(shown) <= set(TOPICS)
        topic = shown[TOPICS[1]]
        assert (topic["msgInCount"], topic["producerCount"]) == (3, 0)
        assert topic["subscriptions"]["s"]["msgBacklog"] == 3
        assert topic["subscriptions"]["s"]["numberOfEntriesSinceFirstNotAckedMessage"] >= 0
        assert world.broker.http_memory.held_bytes == 0
        report = (await ask("GET", "/admin/v2/broker-stats/load-report")).json()
        assert report["numTopics"] >= 6

    world.run(story())


def test_a_namespace_that_goes_meanwhile_ends_a_walk(world: World) -> None:
    async def story() -> None:
        ask = await furnish(world)
        catalog = world.broker.catalog
        name = NamespaceName("public", "gone")
        await world.broker.commit(catalog.plan_create_namespace(name))
        path = "/admin/v2/namespaces/public/gone"
        both = await asyncio.gather(ask("PUT", f"{path}/unload"), ask("DELETE", path))
        assert [answer.status for answer in both] == [204, 204]
        assert (await ask("PUT", f"{path}/unload")).status == 404

    world.run(story())
