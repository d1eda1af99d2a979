"""Readings are what ``/metrics`` says of the same state."""

from __future__ import annotations

import asyncio

import pytest

from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.telemetry.otel.readings import connections_limited
from headgate.testing import World
from tests.unit.telemetry.otel.test_measurements import everything
from tests.unit.telemetry.support import (
    NAME,
    limit,
    publish,
    publish_limit,
    quota,
    read_page,
    rendered,
)

PAGE_NAMES = {
    "pulsar.broker.topic.message.incoming.count": "pulsar_in_messages_total",
    "pulsar.broker.topic.message.incoming.size": "pulsar_in_bytes_total",
    "pulsar.broker.topic.message.outgoing.count": "pulsar_out_messages_total",
    "pulsar.broker.topic.message.outgoing.size": "pulsar_out_bytes_total",
    "pulsar.broker.topic.subscription.count": "pulsar_subscriptions_count",
    "pulsar.broker.topic.producer.count": "pulsar_producers_count",
    "pulsar.broker.topic.consumer.count": "pulsar_consumers_count",
    "pulsar.broker.topic.publish.rate.limit.count": "pulsar_publish_rate_limit_times",
    "pulsar.broker.topic.storage.size": "pulsar_storage_size",
    "pulsar.broker.topic.storage.logical.size": "pulsar_storage_logical_size",
    "pulsar.broker.topic.storage.backlog.size": "pulsar_storage_backlog_size",
    "pulsar.broker.topic.storage.backlog.age": "pulsar_storage_backlog_age_seconds",
    "pulsar.broker.topic.storage.backlog.quota.limit.size": "pulsar_storage_backlog_quota_limit",
    "pulsar.broker.topic.storage.backlog.quota.limit.time": (
        "pulsar_storage_backlog_quota_limit_time"
    ),
    "pulsar.broker.topic.storage.backlog.quota.eviction.count": (
        "pulsar_storage_backlog_quota_exceeded_evictions_total"
    ),
    "headgate.subscription.state.seconds": "headgate_subscription_state_seconds_total",
    "headgate.effective.limit": "headgate_effective_limit",
    "headgate.backlog.evicted.messages": "headgate_backlog_evicted_messages_total",
    "headgate.backlog.evicted.bytes": "headgate_backlog_evicted_bytes_total",
    "headgate.backlog.quota.seconds.to.breach": "headgate_backlog_quota_seconds_to_breach",
    "headgate.backlog.quota.producers.held": "headgate_backlog_quota_producers_held",
    "headgate.backlog.quota.stopped.seconds": "headgate_backlog_quota_stopped_seconds_total",
    "headgate.backlog.quota.producers.closed": "headgate_backlog_quota_producers_closed_total",
    "headgate.backlog.quota.producers.refused": "headgate_backlog_quota_producers_refused_total",
    "headgate.publish.parked.seconds": "headgate_publish_parked_seconds_total",
    "headgate.publish.parked.messages": "headgate_publish_parked_messages",
    "headgate.publish.parked.bytes": "headgate_publish_parked_bytes",
    "headgate.backlog.quota.check.defects": "headgate_backlog_quota_check_defects_total",
    "headgate.storage.bytes": "headgate_storage_bytes",
    "headgate.storage.segments": "headgate_storage_segments",
}
OWN = {"quota_type": "pulsar.backlog.quota.type", "subscription": "pulsar.subscription.name"}
SAME = ("state", "dimension", "consumer", "cause", "limiter", "source", "log")


@pytest.mark.parametrize("policy", [QuotaPolicy.HOLD, QuotaPolicy.EVICTION])
def test_readings_are_the_samples_of_the_page(policy: QuotaPolicy) -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        broker.settings.set("dispatchThrottlingRateInMsg", "100")
        broker.settings.set("brokerPublisherThrottlingMaxByteRate", "1000000")
        await publish(world, 3)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s", queue_size=0)
        consumer.flow(2)
        await limit(broker, 50)
        await limit(broker, 60, of="topic")
        await publish_limit(broker, 70)
        await quota(broker, limit_size=1_500, limit_time=3_600, policy=policy)
        producer = await client.producer(NAME)
        for _ in range(12):
            producer.send_nowait(bytes(150))
            await asyncio.sleep(1)
        _, samples = read_page(await rendered(broker))
        taken = await everything(broker)
        for name, page_name in PAGE_NAMES.items():
            on_page = {
                (
                    sample.labels.get("topic"),
                    frozenset(
                        (OWN.get(key, key), text)
                        for key, text in sample.labels.items()
                        if text and (key in OWN or key in SAME)
                        if not page_name.startswith("pulsar_out")
                    ),
                ): sample.value
                for sample in samples
                if sample.name == page_name
            }
            read = {
                (
                    value.attributes.get("pulsar.topic"),
                    frozenset(
                        (key, text)
                        for key, text in value.attributes.items()
                        if key in OWN.values() or key in SAME
                    ),
                ): pytest.approx(value.value, abs=0.001)
                for value in taken.get(name, [])
            }
            if page_name.startswith("pulsar_out"):  # of subscriptions, on the page
                read = {key: read[key] for key in on_page}
            assert on_page == read, name
            # Who evicts lets nothing wait.
            assert read or policy is QuotaPolicy.EVICTION, name

    with World() as world:
        world.run(scenario(world))


def test_what_a_topic_without_a_quota_does_not_have() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 3)
        names = set(await everything(broker))
        own = {name for name in names if name.startswith("headgate.")}
        assert own == {
            "headgate.authorization.refused",
            "headgate.backlog.quota.check.defects",
            "headgate.client.memory.bytes",
            "headgate.client.memory.closed",
            "headgate.client.memory.limit.bytes",
            "headgate.client.memory.slowed.connections",
            "headgate.duplicates.dropped.messages",
            "headgate.damaged.subscriptions",
            "headgate.damaged.topics",
            "headgate.delays.ignored.messages",
            "headgate.delays.refused.messages",
            "headgate.delayed.index.bytes",
            "headgate.partly.acknowledged.batches.bytes",
            "headgate.commit.longest.seconds",
            "headgate.commit.running.seconds",
            "headgate.commit.seconds",
            "headgate.commits",
            "headgate.connections.refused",
            "headgate.disk.full",
            "headgate.disk.full.seconds",
            "headgate.index.blocks.lost",
            "headgate.index.blocks.read.at.once",
            "headgate.index.blocks.rebuilt",
            "headgate.index.cache.bytes",
            "headgate.index.cache.hits",
            "headgate.index.cache.misses",
            "headgate.storage.bytes",
            "headgate.storage.segments",
            "headgate.storage.written.bytes",
            "headgate.tenant.storage.full",
            "headgate.tenant.stored.bytes",
            "headgate.trims.found.by.walk",
            "headgate.turn.longest.seconds",
            "headgate.turns.long",
        }

    with World() as world:
        world.run(scenario(world))


def test_operations_on_connections_are_counted_by_name() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        counts = broker.counts
        counts.throttles_begun, counts.throttles_ended = 4, 3
        counts.pending_limits_reached, counts.pending_limits_left = 2, 1
        operation = "pulsar.connection.rate_limit.operation.name"
        found = {named[operation]: value for named, value in connections_limited(broker)}
        assert found == {"paused": 4, "resumed": 3, "throttled": 2, "unthrottled": 1}

    with World() as world:
        world.run(scenario(world))
