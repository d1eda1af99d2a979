"""Changed settings and policies: each acts on live topics at once, and lasts."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.flow.limits.rate_limit import RateLimit
from headgate.metadata.policies import BacklogQuota, DispatchRate, NamespacePolicies
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)
RELATIVE = "dispatchThrottlingRateRelativeToPublishRate"


async def set_dynamic(world: World, name: str, value: str | None) -> None:
    await world.broker.writer.commit(world.broker.catalog.plan_setting(name, value))


async def publish_for(world: World, per_s: int, seconds: float, *, batch: int = 20) -> None:
    """Publish steadily, in batches."""
    producer = await (await world.connect()).producer(TOPIC)
    for _ in range(round(seconds * per_s / batch)):
        producer.send_nowait(b"x", batch=[b"x"] * batch)
        await asyncio.sleep(batch / per_s)


async def consume(world: World) -> None:
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=0)
    consumer.flow(1_000_000)


def in_force(world: World, level: str) -> list[int]:
    topic = world.broker.engine.topics[TOPIC]
    gates = {
        "broker": world.broker.engine.gate,
        "topic": topic.gate,
        "subscription": topic.subscriptions["s"].gate,
    }
    return [budget.limit for budget in gates[level].budgets]


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("dispatchThrottlingRateInMsg", "broker"),
        ("dispatchThrottlingRatePerTopicInMsg", "topic"),
        ("dispatchThrottlingRatePerSubscriptionInMsg", "subscription"),
    ],
)
def test_the_brokers_rates_are_relative_where_it_says_so(name: str, level: str) -> None:
    """Rule 1.7: in Pulsar the key does nothing."""

    async def story(world: World) -> None:
        await set_dynamic(world, RELATIVE, "true")
        await set_dynamic(world, name, "200")
        await consume(world)
        await publish_for(world, 1_000, 3)
        assert in_force(world, level) == [pytest.approx(1_200, abs=40)]
        await set_dynamic(world, RELATIVE, "false")
        assert in_force(world, level) == [200]

    played()(story)()


@played()
async def test_a_relative_policy_lasts_over_unload_and_restart(world: World) -> None:
    """Rule 1.7; the publish rate itself is measured anew after a restart."""
    rate = DispatchRate(dispatch_throttling_rate_in_msg=200, relative_to_publish_rate=True)
    await consume(world)
    await world.broker.writer.commit(
        world.broker.catalog.plan_topic_policies(NAME, dispatch_rate=rate)
    )
    await publish_for(world, 1_000, 2)
    assert in_force(world, "topic") == [pytest.approx(1_200, abs=40)]
    await world.broker.registry.unload(NAME)
    assert world.broker.registry.get(NAME) is not None
    assert in_force(world, "topic") == [pytest.approx(1_200, abs=40)]
    await world.stop()
    await world.start()
    assert in_force(world, "topic") == [200]
    await publish_for(world, 1_000, 2)
    assert in_force(world, "topic") == [pytest.approx(1_200, abs=40)]


@played(settings={"dispatchThrottlingRatePerTopicInMsg": "5"})
async def test_unlimited_is_no_limit_and_lasts(world: World) -> None:
    """Rule 1.8."""
    await consume(world)
    assert in_force(world, "topic") == [5]
    catalog = world.broker.catalog
    unlimited = DispatchRate(unlimited=True)
    await world.broker.writer.commit(catalog.plan_topic_policies(NAME, dispatch_rate=unlimited))
    assert in_force(world, "topic") == []
    assert world.broker.policies.dispatch_limits.of_topic(NAME).source == "topic policy"
    world.crash()
    await world.start()
    assert in_force(world, "topic") == []
    assert world.broker.catalog.topic_policies(NAME).dispatch_rate == unlimited


@played(settings={"dispatchThrottlingOnBatchMessageEnabled": "true", RELATIVE: "true"})
async def test_flags_of_the_start_are_in_force(world: World) -> None:
    """Rule 1.9: not only when they are changed."""
    assert world.broker.engine.throttle_counts_entries
    await set_dynamic(world, "dispatchThrottlingRateInMsg", "9")
    assert world.broker.engine.broker_limit == RateLimit(9, None, relative=True)


@played(settings={"dispatchThrottlingRatePerSubscriptionInMsg": "10"})
async def test_a_subscription_that_is_caught_up_may_be_spared(world: World) -> None:
    """Rule 1.9: dispatchThrottlingOnNonBacklogConsumerEnabled, live."""
    name = "dispatchThrottlingOnNonBacklogConsumerEnabled"
    await consume(world)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    await publish_for(world, 100, 2, batch=1)
    assert subscription.messages_sent <= 20
    await set_dynamic(world, name, "false")
    assert not subscription.gate.exempt
    await asyncio.sleep(30)
    assert subscription.messages_sent == 200
    await publish_for(world, 100, 2, batch=1)
    await asyncio.sleep(0.1)
    assert subscription.messages_sent == 400
    await set_dynamic(world, name, None)
    await publish_for(world, 100, 2, batch=1)
    assert subscription.messages_sent <= 420


@played(settings={"dispatchThrottlingOnNonBacklogConsumerEnabled": "false"})
async def test_sparing_may_be_set_at_the_start(world: World) -> None:
    assert world.broker.engine.throttle_spares_caught_up
    assert world.broker.engine.limits.backlogged_entries_min == 1_000


@played(settings={"dispatchThrottlingRatePerTopicInMsg": "10"})
async def test_what_was_counted_survives_a_reconnect_and_no_restart(world: World) -> None:
    """Rule 2.4."""

    def counted() -> tuple[int, int]:
        subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
        subscription.count_throttling()
        events = subscription.gate.throttled_events[1][0]
        return events, subscription.throttled_dispatch.counts[1][0]

    await consume(world)
    await publish_for(world, 1_000, 0.1, batch=1)
    await asyncio.sleep(2)
    events, held_back = counted()
    assert events >= 2
    assert held_back >= 90
    for client in world.clients:
        client.close()
    await asyncio.sleep(0.5)
    assert counted() == (events, held_back)
    await world.stop()
    await world.start()
    assert counted() == (0, 0)


def own_limit(world: World, name: str) -> list[int]:
    return [budget.limit for budget in world.broker.engine.topics[name].gate.budgets]


async def limit(world: World, name: str, messages: int) -> None:
    plan = world.broker.catalog.plan_topic_policies
    await world.broker.writer.commit(plan(parse_topic(name), dispatch_rate=DispatchRate(messages)))


@played()
async def test_a_topic_that_is_only_named_like_a_partition_has_policies_of_its_own(
    world: World,
) -> None:
    """They took effect at the next load alone."""
    like, client = f"{TOPIC}-partition-7", await world.connect()
    await client.subscribe(like, "s")
    await client.subscribe(TOPIC, "s")
    await limit(world, like, 40)
    assert (own_limit(world, like), own_limit(world, TOPIC)) == ([40], [])
    await limit(world, TOPIC, 50)
    assert (own_limit(world, like), own_limit(world, TOPIC)) == ([40], [50])


@played()
async def test_a_topic_that_becomes_a_partition_has_its_policies_at_once(world: World) -> None:
    """And its own again, or none, when it is one no more."""
    client, catalog = await world.connect(), world.broker.catalog
    parts = [f"{TOPIC}-partition-{index}" for index in (0, 7)]
    for name in parts:
        await client.subscribe(name, "s")
        await limit(world, name, 40)
    assert [own_limit(world, name) for name in parts] == [[40], [40]]
    await world.broker.writer.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=1))
    assert [own_limit(world, name) for name in parts] == [[], []]
    await limit(world, TOPIC, 50)
    assert [own_limit(world, name) for name in parts] == [[50], [50]]
    await world.broker.registry.delete(NAME, force=True)
    assert own_limit(world, parts[1]) == [40]


@played()
async def test_a_rate_per_hour_that_becomes_one_per_second_is_in_force(world: World) -> None:
    """What was delivered minutes apart did not fit into the log of the shorter period, and that
    ended the broker."""
    client, plan = await world.connect(), world.broker.catalog.plan_topic_policies
    producer, consumer = await client.producer(TOPIC), await client.subscribe(TOPIC, "s")
    for seconds in (3_600, 1):
        rate = DispatchRate(10, rate_period_in_second=seconds)
        await world.broker.writer.commit(plan(NAME, dispatch_rate=rate))
        for _ in range(3):
            await producer.send(b"x")
            await consumer.receive()
            await asyncio.sleep(60)
    assert in_force(world, "topic") == [10]


@played()
async def test_namespaces_that_come_and_go_leave_no_counts_of_evictions(world: World) -> None:
    """Each left its name behind for good, and /metrics went through all of them in one turn."""
    broker, client = world.broker, await world.connect()
    quotas = broker.engine.quotas
    evicting = BacklogQuota("consumer_backlog_eviction", limit_size=100)
    policies = NamespacePolicies(backlog_quotas={"destination_storage": evicting})
    for number in range(3):
        name = NamespaceName("public", f"n{number}")
        create = broker.catalog.plan_create_namespace(name, policies=policies)
        await broker.writer.commit(create)
        topic = parse_topic(f"persistent://{name}/t")
        await (await client.subscribe(topic.full, "s")).close()
        producer = await client.producer(topic.full)
        for _ in range(4):
            await producer.send(b"x" * 90)
        assert quotas.evictions_by_namespace.keys() == {str(name)}
        assert quotas.evictions_by_namespace[str(name)][0] > 0
        await broker.registry.delete(topic, force=True)
        await broker.commit(broker.catalog.plan_delete_namespace(name))
        assert not quotas.evictions_by_namespace
