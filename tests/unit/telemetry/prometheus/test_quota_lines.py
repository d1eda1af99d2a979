"""Samples of backlog quotas: limits, what was lost, who is held, how long it takes (rule 4.6)."""

from __future__ import annotations

import asyncio

import pytest

from headgate.broker.sweeps.quota_sweep import BOUNDS_S
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.testing import RefusedError, World
from tests.unit.telemetry.support import NAME, Sample, publish, quota, read_page, rendered, value_of

LIMIT = "pulsar_storage_backlog_quota_limit"
EVICTIONS = "pulsar_storage_backlog_quota_exceeded_evictions_total"
EVICTIONS_OF_BROKER = "pulsar_broker_storage_backlog_quota_exceeded_evictions_total"
DURATION = "pulsar_storage_backlog_quota_check_duration_seconds"
HELD = "headgate_backlog_quota_producers_held"
BREACH = "headgate_backlog_quota_seconds_to_breach"


async def samples_of(world: World) -> list[Sample]:
    return read_page(await rendered(world.broker))[1]


def named(samples: list[Sample], name: str) -> list[Sample]:
    return [sample for sample in samples if sample.name == name]


def test_without_a_quota_there_are_pulsars_samples_only() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await publish(world, 3)
        samples = await samples_of(world)
        assert value_of(samples, LIMIT, topic=NAME) == -1
        assert value_of(samples, f"{LIMIT}_time", topic=NAME) == -1
        for kind in ("size", "time"):
            assert value_of(samples, EVICTIONS, topic=NAME, quota_type=kind) == 0
            assert value_of(samples, EVICTIONS_OF_BROKER, quota_type=kind) == 0
        assert not named(samples, HELD)
        assert not named(samples, BREACH)

    with World() as world:
        world.run(scenario(world))


def test_a_hold_is_reported_with_its_seconds_and_amounts() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 1)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s")
        await quota(broker, limit_size=1_000, limit_time=3_600)
        producer = await client.producer(NAME)
        for _ in range(5):
            producer.send_nowait(bytes(100))
            await asyncio.sleep(1)
        samples = await samples_of(world)
        assert value_of(samples, LIMIT, topic=NAME) == 1_000
        assert value_of(samples, f"{LIMIT}_time", topic=NAME) == 3_600
        assert value_of(samples, HELD, topic=NAME) == 0
        size = value_of(samples, BREACH, topic=NAME, quota_type="size")
        assert 0 < size < 3
        assert not [s for s in named(samples, BREACH) if s.labels["quota_type"] == "time"]
        for _ in range(10):
            producer.send_nowait(bytes(100))
        await asyncio.sleep(2)
        samples = await samples_of(world)
        assert value_of(samples, BREACH, topic=NAME, quota_type="size") == 0
        assert value_of(samples, HELD, topic=NAME) == 1
        held = {"topic": NAME, "cause": "backlog_quota"}
        messages = value_of(samples, "headgate_publish_parked_messages", **held)
        assert 5 < messages < 10
        parked_bytes = value_of(samples, "headgate_publish_parked_bytes", **held)
        assert parked_bytes > messages * 100
        parked_s = value_of(samples, "headgate_publish_parked_seconds_total", **held)
        assert parked_s == pytest.approx(2, abs=0.2)
        consumer.flow(100)
        while True:
            try:
                message = await asyncio.wait_for(consumer.receive(), 5)
            except TimeoutError:
                break
            await consumer.ack(message.position)
        samples = await samples_of(world)
        assert value_of(samples, HELD, topic=NAME) == 0
        assert value_of(samples, "headgate_publish_parked_messages", **held) == 0

    with World() as world:
        world.run(scenario(world))


def test_evictions_are_counted_and_stay_with_the_broker_when_the_topic_goes() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 1)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s")
        await quota(broker, limit_size=1_000, policy=QuotaPolicy.EVICTION)
        topic = await publish(world, 30)
        samples = await samples_of(world)
        acts = value_of(samples, EVICTIONS, topic=NAME, quota_type="size")
        assert acts >= 1
        assert value_of(samples, EVICTIONS, topic=NAME, quota_type="time") == 0
        lost = value_of(
            samples, "headgate_backlog_evicted_messages_total", topic=NAME, quota_type="size"
        )
        assert lost + topic.subscriptions["s"].backlog_messages == 31
        lost_bytes = value_of(
            samples, "headgate_backlog_evicted_bytes_total", topic=NAME, quota_type="size"
        )
        assert lost_bytes > lost * 100
        await consumer.close()
        await broker.registry.unload(topic.name)
        broker.registry.get(topic.name)
        samples = await samples_of(world)
        assert value_of(samples, EVICTIONS, topic=NAME, quota_type="size") == 0
        assert value_of(samples, EVICTIONS_OF_BROKER, quota_type="size") == acts

    with World() as world:
        world.run(scenario(world))


def test_with_namespaces_only_evictions_are_summed_and_ages_left_out() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        for name in ("a", "b"):
            topic = f"persistent://public/default/{name}"
            await publish(world, 1, topic)
            client = await world.connect()
            await client.subscribe(topic, "s")
            await quota(broker, topic, limit_size=1_000, policy=QuotaPolicy.EVICTION)
            await publish(world, 30, topic)
        samples = await samples_of(world)
        expected = sum(
            topic.quota.evictions(0)[0]  # type: ignore[arg-type]
            for topic in broker.engine.topics.values()
            if topic.quota is not None
        )
        assert expected >= 2
        labels = {"namespace": "public/default", "quota_type": "size"}
        assert value_of(samples, EVICTIONS, **labels) == expected
        assert not named(samples, "pulsar_storage_backlog_age_seconds")
        assert value_of(samples, "pulsar_storage_backlog_size", namespace="public/default") > 0

    with World(settings={"exposeTopicLevelMetricsInPrometheus": "false"}) as world:
        world.run(scenario(world))


def test_a_check_is_observed_once_however_many_topics_there_are() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        samples = await samples_of(world)
        assert value_of(samples, f"{DURATION}_count") == 0
        for name in ("a", "b", "c"):
            await publish(world, 1, f"persistent://public/default/{name}")
        await broker.quota_sweep.check()
        await broker.quota_sweep.check()
        samples = await samples_of(world)
        assert value_of(samples, f"{DURATION}_count") == 2
        buckets = named(samples, f"{DURATION}_bucket")
        assert [sample.labels["le"] for sample in buckets] == [*map(str, BOUNDS_S), "+Inf"]
        assert buckets[-1].value == 2
        assert value_of(samples, "headgate_backlog_quota_check_defects_total") == 0

    with World() as world:
        world.run(scenario(world))


def test_what_producers_had_to_bear_is_summed() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 1)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s")
        await quota(broker, limit_size=1_000)
        producer = await client.producer(NAME)
        for _ in range(20):
            producer.send_nowait(bytes(100))
        await asyncio.sleep(30)
        with pytest.raises(RefusedError, match="quota exceeded"):
            await client.producer(NAME)
        samples = await samples_of(world)
        stopped_s = "headgate_backlog_quota_stopped_seconds_total"
        stopped = value_of(samples, stopped_s, topic=NAME, quota_type="size")
        # Also after the producer was disconnected, when nothing is held any more.
        assert stopped == pytest.approx(30, abs=0.2)
        assert value_of(samples, stopped_s, topic=NAME, quota_type="time") == 0
        assert value_of(samples, HELD, topic=NAME) == 0
        assert value_of(samples, "headgate_backlog_quota_producers_closed_total", topic=NAME) == 1
        assert value_of(samples, "headgate_backlog_quota_producers_refused_total", topic=NAME) == 1
        consumer.flow(100)
        for _ in range(5):
            await consumer.ack((await consumer.receive()).position)
        await asyncio.sleep(10)
        samples = await samples_of(world)
        assert value_of(samples, stopped_s, topic=NAME, quota_type="size") < stopped + 1

    with World() as world:
        world.run(scenario(world))
