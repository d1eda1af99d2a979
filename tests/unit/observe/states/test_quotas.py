"""Explain and stats about backlog quotas: how full, whose backlog, when it breaks (rule 4.6)."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.broker.service import Broker
from headgate.metadata.policies import BacklogQuota, QuotaKind, QuotaPolicyName
from headgate.observe.states.quotas import breaches_s
from headgate.observe.stats.fields import StatsOptions
from headgate.testing import SimConsumer, SimProducer, World

TOPIC = "persistent://public/default/t"
NAME = parse_topic(TOPIC)
NAMESPACE = NAME.namespace


async def set_quota(broker: Broker, kind: QuotaKind, quota: BacklogQuota) -> None:
    plan = broker.catalog.plan_namespace_policies(NAMESPACE, backlog_quotas={kind: quota})
    await broker.writer.commit(plan)


async def begin(world: World, *, size: int = -1, time: int = -1) -> SimProducer:
    """A broker, a topic with a subscription that takes nothing, and its producer."""
    broker = await world.start()
    client = await world.connect()
    await client.subscribe(TOPIC, "billing")
    if size >= 0:
        await set_quota(broker, "destination_storage", BacklogQuota("producer_request_hold", size))
    if time >= 0:
        quota = BacklogQuota("consumer_backlog_eviction", limit_time=time)
        await set_quota(broker, "message_age", quota)
    return await client.producer(TOPIC)


async def with_quota(
    world: World, policy: QuotaPolicyName, permits: int, limit_bytes: int = 10_000
) -> tuple[Broker, SimConsumer, SimProducer]:
    """A broker, and a topic with a size quota, a consumer and its producer."""
    broker = await world.start()
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "billing")
    consumer.flow(permits)
    await set_quota(broker, "destination_storage", BacklogQuota(policy, limit_bytes))
    return broker, consumer, await client.producer(TOPIC)


def test_a_topic_on_its_way_to_its_quota() -> None:
    async def scenario(world: World) -> None:
        producer = await begin(world, size=100_000)
        for _ in range(50):
            await producer.send(bytes(1_000))
            await asyncio.sleep(1)
        report = await world.observer.explain_topic(NAME)
        (quota,) = report["quotas"]
        assert quota["type"] == "size"
        assert quota["limit"] == 100_000
        assert 0.5 < quota["use"] < 0.6
        assert quota["subscription"] == "billing"
        assert not quota["exceeded"]
        assert 40 < quota["secondsToBreach"] < 50
        assert quota["sentence"].startswith("the topic is at 5")
        assert "of its 97.7 KiB quota (namespace policy public/default)" in quota["sentence"]
        assert "subscription billing holds the oldest message (50 s)" in quota["sentence"]
        assert quota["sentence"].endswith("then: producers held")
        top = await world.observer.explain_top(10)
        assert [near["topic"] for near in top["quotas"]] == [TOPIC]
        assert top["quotas"][0]["quota"] == (await world.observer.explain_topic(NAME))["quotas"][0]

    with World() as world:
        world.run(scenario(world))


def test_a_topic_that_is_over_it() -> None:
    async def scenario(world: World) -> None:
        producer = await begin(world, size=3_000)
        for _ in range(5):
            producer.send_nowait(bytes(1_000))
        await asyncio.sleep(2)
        report = await world.observer.explain_topic(NAME)
        (quota,) = report["quotas"]
        assert quota["exceeded"]
        assert quota["used"] >= 3_000
        assert "is over its 2.9 KiB quota" in quota["sentence"]
        assert "producers are held" in quota["sentence"]
        (parked,) = report["publishing"]["parked"]
        assert (parked["cause"], parked["producers"], parked["messages"]) == ("backlog_quota", 1, 2)
        assert parked["bytes"] > 2_000
        assert parked["seconds"] == pytest.approx(2, abs=0.1)

    with World() as world:
        world.run(scenario(world))


def test_a_topic_that_its_hold_keeps_just_below_its_quota_has_reached_it() -> None:
    """The consumer made room for the last of what waited: nobody is held at this instant."""

    async def scenario(world: World) -> None:
        _, consumer, producer = await with_quota(world, "producer_request_hold", 100)
        for _ in range(12):
            producer.send_nowait(bytes(900))
        await asyncio.sleep(3)
        for _ in range(2):
            consumer.ack_nowait((await consumer.receive()).position)
        await asyncio.sleep(2)
        (told,) = (await world.observer.explain_topic(NAME))["quotas"]
        assert not told["exceeded"]
        assert told["sentence"].startswith(
            "the topic reached its 9.8 KiB quota (namespace policy public/default) 2 s ago and is"
        )
        assert ": producers are held; subscription billing holds" in told["sentence"]
        assert len((await world.observer.explain_top(10))["quotas"]) == 1
        await asyncio.sleep(60)
        (told,) = (await world.observer.explain_topic(NAME))["quotas"]
        assert "reached" not in told["sentence"]

    with World() as world:
        world.run(scenario(world))


def test_what_a_quota_took_is_reported() -> None:
    async def scenario(world: World) -> None:
        producer = await begin(world, time=10)
        for _ in range(20):
            await producer.send(bytes(100))
            await asyncio.sleep(1)
        report = await world.observer.explain_topic(NAME)
        (quota,) = report["quotas"]
        assert quota["type"] == "time"
        assert quota["limit"] == 10
        assert quota["evictions"] >= 1
        backlog = world.broker.engine.topics[TOPIC].subscriptions["billing"].backlog_messages
        assert quota["evictedMessages"] == 20 - backlog
        assert quota["evictedBytes"] > 100 * quota["evictedMessages"]
        (billing,) = report["subscriptions"]
        assert billing["minute"]["evicted"] == quota["evictedMessages"]
        assert billing["minute"]["skipped"] == billing["minute"]["expired"] == 0

    with World() as world:
        world.run(scenario(world))


def test_a_consumer_whose_acknowledgements_come_after_the_eviction() -> None:
    """It takes all that comes, and acknowledges each message a second later: the quota has room for
    half a second. That none of these acknowledgements counts is no sign that it hangs."""

    async def scenario(world: World) -> None:
        _, consumer, producer = await with_quota(world, "consumer_backlog_eviction", 1_000)
        handed = []
        for _ in range(400):
            await producer.send(bytes(900))
            await asyncio.sleep(0.05)
            handed.append((await consumer.receive()).position)
            if len(handed) > 20:
                consumer.ack_nowait(handed.pop(0))
                consumer.flow(1)
        report = await world.observer.explain_topic(NAME)
        (billing,) = report["subscriptions"]
        evicted = billing["minute"]["evicted"]
        assert evicted > 300
        assert billing["minute"]["acked"] == 0
        assert billing["verdict"] == "CONSUMER"
        assert billing["confidence"] > 0.8
        assert billing["provenAckPerS"] is None
        assert billing["sentence"].startswith(
            f"CONSUMER: the size quota of 9.8 KiB (namespace policy public/default) evicted"
            f" {evicted} messages before the consumer acknowledged them; it was handed "
        )
        assert "and acknowledged nothing in time" in billing["sentence"]
        assert "let it acknowledge earlier, or raise the quota" in billing["sentence"]
        (told,) = report["quotas"]
        assert (
            "the topic reached its 9.8 KiB quota (namespace policy public/default) "
            in (told["sentence"])
        )
        (near,) = (await world.observer.explain_top(10))["quotas"]
        assert near["quota"]["sentence"] == told["sentence"]
        # What is a minute ago is over.
        await asyncio.sleep(61)
        (told,) = (await world.observer.explain_topic(NAME))["quotas"]
        assert "reached" not in told["sentence"]

    with World() as world:
        world.run(scenario(world))


def test_a_backlog_fills_its_quota_or_empties_and_not_both() -> None:
    """Over the minute it shrank, and for twenty seconds it has grown."""

    async def scenario(world: World) -> None:
        broker, consumer, producer = await with_quota(
            world, "producer_request_hold", 300, limit_bytes=400_000
        )
        prompt = await (await world.connect()).subscribe(TOPIC, "prompt")
        prompt.flow(1_000)
        for _ in range(400):
            await producer.send(bytes(900))
            prompt.ack_nowait((await prompt.receive()).position)
        for _ in range(150):
            consumer.ack_nowait((await consumer.receive()).position)
            await asyncio.sleep(0.1)
        billing, _ = (await world.observer.explain_topic(NAME))["subscriptions"]
        assert billing["drainsInS"] == pytest.approx(35, abs=5)
        assert billing["breaksInS"] is billing["breaksQuota"] is None
        for _ in range(80):
            await producer.send(bytes(900))
            prompt.ack_nowait((await prompt.receive()).position)
            await asyncio.sleep(0.25)
        report = await world.observer.explain_topic(NAME)
        (quota,), (billing, other) = report["quotas"], report["subscriptions"]
        assert billing["growthMessages"] < -20
        assert billing["drainsInS"] is None
        assert (billing["breaksInS"], billing["breaksQuota"]) == (quota["secondsToBreach"], "size")
        assert 15 < quota["secondsToBreach"] < 90
        # Another subscription of the topic does not fill it.
        assert (other["subscription"], other["breaksInS"]) == ("prompt", None)
        assert breaches_s([broker.engine.topics[TOPIC].subscriptions["prompt"]]) == (None, None)

    with World() as world:
        world.run(scenario(world))


def test_a_full_quota_is_told_with_the_backlog_that_fills_it() -> None:
    async def scenario(world: World) -> None:
        producer = await begin(world, size=3_000)
        for _ in range(5):
            producer.send_nowait(bytes(1_000))
        await asyncio.sleep(4)
        (billing,) = (await world.observer.explain_topic(NAME))["subscriptions"]
        assert (billing["breaksInS"], billing["breaksQuota"]) == (0, "size")
        assert billing["drainsInS"] is None

    with World() as world:
        world.run(scenario(world))


def test_without_a_quota_there_is_nothing_to_tell() -> None:
    async def scenario(world: World) -> None:
        producer = await begin(world)
        await producer.send(b"x")
        report = await world.observer.explain_topic(NAME)
        assert report["quotas"] == report["publishing"]["parked"] == []
        assert (await world.observer.explain_top(10))["quotas"] == []

    with World() as world:
        world.run(scenario(world))


def test_stats_have_pulsars_fields_and_the_whole_in_headgate() -> None:
    async def scenario(world: World) -> None:
        producer = await begin(world, size=100_000)
        quotas: dict[QuotaKind, BacklogQuota] = {
            "destination_storage": BacklogQuota("producer_exception", 50_000),
            "message_age": BacklogQuota("producer_exception", limit_time=3_600),
        }
        plan = world.broker.catalog.plan_topic_policies(NAME, backlog_quotas=quotas)
        await world.broker.writer.commit(plan)
        await producer.send(bytes(1_000))
        await asyncio.sleep(5)
        stats = await world.observer.topic_stats(world.broker.engine.topics[TOPIC], StatsOptions())
        assert stats.backlog_quota_limit_size == 50_000
        assert stats.backlog_quota_limit_time == 3_600
        assert stats.oldest_backlog_message_age_seconds in (4, 5)
        assert stats.oldest_backlog_message_subscription_name == "billing"
        told = stats.headgate["backlogQuotas"]  # type: ignore[index]
        assert [quota["type"] for quota in told] == ["size", "time"]
        assert told[1]["source"] == "topic policy"

    with World() as world:
        world.run(scenario(world))


def test_where_quotas_are_not_enforced_they_are_still_shown() -> None:
    async def scenario(world: World) -> None:
        producer = await begin(world, size=1_000)
        for _ in range(5):
            await producer.send(bytes(1_000))
        stats = await world.observer.topic_stats(world.broker.engine.topics[TOPIC], StatsOptions())
        assert stats.backlog_quota_limit_size == 1_000
        assert (await world.observer.explain_topic(NAME))["quotas"] == []

    with World(settings={"backlogQuotaCheckEnabled": "false"}) as world:
        world.run(scenario(world))
