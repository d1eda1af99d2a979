"""What a whole broker answers about what changed before a backlog grew."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from headgate.admin.app import AdminApp
from headgate.base.identity import SCOPE_KEY, Identity
from headgate.base.names import parse_topic
from headgate.base.sliced import at_once
from headgate.explain.change_log import HOUR_MS, REPORTED_MAX
from headgate.explain.changes import LEVELS, PlainChange
from headgate.facade.admin_facade import AdminFacade
from headgate.observe.changes.change_history import TopicChanges
from headgate.testing import SimClient, SimConsumer, World
from headgate.testing.errors import ConnectionLostError
from headgate.wire.codes import SubscriptionType
from tests.unit.admin.client import ask_async, encode
from tests.unit.broker.playing import TOPIC, played
from tests.unit.engine.harness import Rig

BASE = "/admin/v2/persistent/public/default/orders"
EXPLAIN = "/admin/v2/headgate/explain/persistent/public/default/orders"
LIMIT = {"dispatchThrottlingRateInMsg": 5, "ratePeriodInSecond": 1}


class Story:
    """A broker with its admin API, and one topic with a steady producer."""

    def __init__(self, world: World) -> None:
        self.world = world
        broker = world.broker
        facade = AdminFacade(broker, world.observer)
        self._app = AdminApp(facade, world.clock, broker.audit)

    async def send(self, method: str, path: str, body: Any = None, role: str = "ops") -> Any:
        more = {SCOPE_KEY: Identity(role)}
        answer = await self.world.ask(ask_async(self._app, method, path, encode(body), more))
        assert answer.status < 300, answer.body
        return answer.json() if answer.body else None

    async def explain(self) -> Any:
        return await self.send("GET", f"{EXPLAIN}?timeline=true")

    async def begin(self, per_s: int = 20) -> tuple[SimClient, SimConsumer]:
        client = await self.world.connect()
        consumer = await client.subscribe(TOPIC, "billing", kind=SubscriptionType.SHARED, name="w1")
        self.world.loop.create_task(_read(consumer))
        self.world.loop.create_task(_publish(client, per_s))
        return client, consumer


async def _publish(client: SimClient, per_s: int) -> None:
    producer = await client.producer(TOPIC, name="shop")
    with suppress(ConnectionLostError):
        while True:
            producer.send_nowait(b"x" * 100)
            await asyncio.sleep(1 / per_s)


async def _read(consumer: SimConsumer) -> None:
    with suppress(ConnectionLostError):
        while True:
            message = await consumer.receive()
            consumer.ack_nowait(message.position)


def sentences(report: Any) -> list[str]:
    return [each["sentence"] for each in report["changes"]["changes"]]


@played()
async def test_a_limit_that_was_set_is_pointed_out(world: World) -> None:
    story = Story(world)
    await story.begin()
    await asyncio.sleep(120)
    (before,) = (await story.explain())["subscriptions"]
    assert before["beforeGrowth"] is None
    await story.send("POST", f"{BASE}/dispatchRate", LIMIT)
    await asyncio.sleep(60)
    report = await story.explain()
    assert sentences(report) == [
        "the broker was started", "a consumer of billing connected (w1)",
        "a producer connected (shop)",
        "the dispatch limit of the topic was set to 5 msg/s by ops",
    ]  # fmt: skip
    (found,) = report["subscriptions"]
    assert found["verdict"] == "THROTTLED_TOPIC"
    growth = found["beforeGrowth"]
    assert growth["kind"] == "policy"
    assert growth["changedAt"] == report["changes"]["changes"][-1]["at"]
    assert "the dispatch limit of the topic was set to 5 msg/s by ops" in growth["sentence"]
    (top,) = (await world.observer.explain_top(5))["subscriptions"]
    assert top["beforeGrowth"] == growth
    assert (await story.send("GET", EXPLAIN))["changes"] is None


@played()
async def test_who_may_not_see_roles_sees_none(world: World) -> None:
    story = Story(world)
    await story.begin()
    await story.send("POST", f"{BASE}/dispatchRate", LIMIT)
    await asyncio.sleep(60)
    name = world.broker.engine.topics[TOPIC].name
    report = await world.observer.explain_topic(name, timelines=True)
    assert "ops" not in str(report["changes"]) + str(report["subscriptions"])
    assert "was set to 5 msg/s" in str(report["changes"])


@played()
async def test_who_may_not_read_policies_reads_no_values(world: World) -> None:
    """But those that the report shows anyway: the limits in force."""
    story = Story(world)
    await story.begin()
    for path, value in (
        ("/admin/v2/namespaces/public/default/maxConsumersPerTopic", 77),
        ("/admin/v2/namespaces/public/default/messageTTL", 1234),
        (f"{BASE}/retention", {"retentionTimeInMinutes": 55, "retentionSizeInMB": 66}),
        (f"{BASE}/dispatchRate", LIMIT),
    ):
        await story.send("POST", path, value)
    setting = "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/4321"
    await story.send("POST", setting)
    whole = str(sentences(await story.explain()))
    for value in (" 77 ", "21 min", "55 min", "66 MiB", " 4321 ", "5 msg/s"):
        assert value in whole
    name = world.broker.engine.topics[TOPIC].name
    report = await world.observer.explain_topic(name, timelines=True)
    assert sentences(report)[-5:] == [
        "the policy maxConsumersPerTopic of each topic of namespace public/default was set",
        "the message TTL of each topic of namespace public/default was set",
        "the retention of the topic was set",
        "the dispatch limit of the topic was set to 5 msg/s",
        "the setting dispatchThrottlingRateInMsg was set",
    ]
    topic = await world.observer.explain_topic(name, timelines=True, roles_of=("topic",))
    assert "the retention of the topic was set to 55 min and 66 MiB by ops" in sentences(topic)
    assert "77" not in str(sentences(topic))


@played()
async def test_a_consumer_that_left_is_pointed_out_and_an_unload_is_kept(world: World) -> None:
    story = Story(world)
    _, consumer = await story.begin()
    await asyncio.sleep(120)
    await consumer.close()
    await asyncio.sleep(30)
    (found,) = (await story.explain())["subscriptions"]
    assert found["verdict"] == "NO_CONSUMER"
    assert "the last consumer of billing left (w1)" in found["beforeGrowth"]["sentence"]
    await story.send("PUT", f"{BASE}/unload")
    await asyncio.sleep(5)
    assert "the topic was unloaded by ops" in sentences(await story.explain())


@played()
async def test_messages_that_a_quota_evicts_are_a_change(world: World) -> None:
    story = Story(world)
    _, consumer = await story.begin()
    await consumer.close()
    await story.send(
        "POST", f"{BASE}/backlogQuota", {"limitSize": 20_000, "policy": "consumer_backlog_eviction"}
    )
    await asyncio.sleep(90)
    (evicted,) = [each for each in sentences(await story.explain()) if "evicted" in each]
    assert evicted.startswith("a backlog quota evicted ")


@played()
async def test_a_quota_that_stops_producers_is_a_change(world: World) -> None:
    story = Story(world)
    _, consumer = await story.begin()
    await consumer.close()
    await story.send(
        "POST", f"{BASE}/backlogQuota", {"limitSize": 20_000, "policy": "producer_request_hold"}
    )
    await asyncio.sleep(120)
    found = sentences(await story.explain())
    assert found.count("a backlog quota was reached and stopped producers") == 1


@played()
async def test_a_partitioned_topic_counts_each_client_once(world: World) -> None:
    story = Story(world)
    await story.send("PUT", f"{BASE}/partitions", 3)
    client = await world.connect()
    for part in range(3):
        await client.subscribe(f"{TOPIC}-partition-{part}", "billing", name="w1")
    await asyncio.sleep(2)
    await story.send("POST", f"{BASE}/dispatchRate", LIMIT)
    report = await story.explain()
    assert sentences(report)[-2:] == [
        "a consumer of billing connected (w1)",
        "the dispatch limit of the topic was set to 5 msg/s by ops",
    ]


@played()
async def test_changes_of_the_namespace_and_of_the_broker_concern_the_topic(world: World) -> None:
    story = Story(world)
    await story.begin()
    await story.send("POST", "/admin/v2/namespaces/public/default/dispatchRate", LIMIT)
    await story.send("POST", "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/9")
    assert sentences(await story.explain())[-2:] == [
        "the dispatch limit of each topic of namespace public/default was set to 5 msg/s by ops",
        "the setting dispatchThrottlingRateInMsg was set to 9 by ops",
    ]


@played(limit_s=3 * 3_600)
async def test_an_hour_later_it_is_forgotten(world: World) -> None:
    story = Story(world)
    await story.send("PUT", BASE)
    await story.send("PUT", f"{BASE}/subscription/billing", "earliest")
    await story.send("POST", f"{BASE}/dispatchRate", LIMIT)
    assert sentences(await story.explain()) == [
        "the broker was started", "the topic was created by ops",
        "subscription billing was created by ops",
        "the dispatch limit of the topic was set to 5 msg/s by ops",
    ]  # fmt: skip
    await asyncio.sleep(HOUR_MS / 1000 + 1)
    assert sentences(await story.explain()) == []


@played()
async def test_the_next_tenant_of_a_name_learns_nothing_of_the_earlier_one(world: World) -> None:
    """Who works with a tenant that was given up, and made anew for other people, must not see who
    its administrators, clients and subscriptions were."""
    story = Story(world)
    topic, base = "lent/n/orders", "/admin/v2/persistent/lent/n/orders"
    tenant = {"adminRoles": ["theirs"], "allowedClusters": ["standalone"]}
    await story.send("POST", "/admin/v2/brokers/configuration/forceDeleteNamespaceAllowed/true")
    await story.send("POST", "/admin/v2/brokers/configuration/forceDeleteTenantAllowed/true")
    await story.send("PUT", "/admin/v2/tenants/lent", tenant)
    await story.send("PUT", "/admin/v2/namespaces/lent/n", {}, role="theirs")
    await story.send("PUT", base, role="theirs")
    await story.send("POST", f"{base}/dispatchRate", LIMIT, role="theirs")
    client = await world.connect()
    await client.subscribe(f"persistent://{topic}", "theirs", name="theirs")
    await client.producer(f"persistent://{topic}", name="theirs")
    explain = f"/admin/v2/headgate/explain/persistent/{topic}?timeline=true"
    assert str(await story.send("GET", explain)).count("theirs") > 4
    await story.send("DELETE", "/admin/v2/tenants/lent?force=true")
    await story.send("PUT", "/admin/v2/tenants/lent", tenant | {"adminRoles": ["ours"]})
    await story.send("PUT", "/admin/v2/namespaces/lent/n", {}, role="ours")
    await story.send("PUT", base, role="ours")
    report = await story.send("GET", explain)
    assert "the topic was created by ours" in sentences(report)
    assert "theirs" not in str(report)


def test_a_report_is_bounded_and_says_since_when_it_is_complete() -> None:
    made = [PlainChange(1_000 * at, "topic", "topic", f"{at}") for at in range(1, 2 * REPORTED_MAX)]
    found = TopicChanges(Rig().engine, [*made], 0, ()).report()
    assert len(found.changes) == REPORTED_MAX
    assert found.changes[-1].sentence == f"{2 * REPORTED_MAX - 1}"
    assert found.complete_since == found.changes[0].at


@played()
async def test_a_topic_of_which_nothing_is_known_has_the_start_of_the_broker(world: World) -> None:
    assert world.broker.engine.client_observer is world.observer.changes.clients
    work = world.observer.changes.of_topic(parse_topic(TOPIC), [], LEVELS)
    assert [each.sentence for each in at_once(work).report().changes] == ["the broker was started"]
