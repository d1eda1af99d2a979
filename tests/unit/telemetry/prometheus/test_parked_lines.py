"""Samples of what waits before its append, by its cause."""

from __future__ import annotations

import asyncio

import pytest

from headgate.testing import World
from tests.unit.telemetry.support import (
    NAME,
    Sample,
    publish,
    publish_limit,
    read_page,
    rendered,
    value_of,
)

MESSAGES = "headgate_publish_parked_messages"
BYTES = "headgate_publish_parked_bytes"
SECONDS = "headgate_publish_parked_seconds_total"
OTHER = "persistent://public/default/other"


async def samples_of(world: World) -> list[Sample]:
    return read_page(await rendered(world.broker))[1]


def parked(samples: list[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.name.startswith("headgate_publish_parked_")]


def test_each_cause_that_ever_held_anything_has_its_samples() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 1)
        assert not parked(await samples_of(world))
        await publish_limit(broker, 10)
        producer = await (await world.connect()).producer(NAME)
        for _ in range(30):
            producer.send_nowait(bytes(100))
        await asyncio.sleep(1)
        samples = await samples_of(world)
        assert {s.labels["cause"] for s in parked(samples)} == {"topic_rate"}
        waiting = value_of(samples, MESSAGES, topic=NAME, cause="topic_rate")
        assert 5 <= waiting <= 20
        assert value_of(samples, BYTES, topic=NAME, cause="topic_rate") > waiting * 100
        held_s = value_of(samples, SECONDS, topic=NAME, cause="topic_rate")
        assert held_s == pytest.approx(1, abs=0.1)
        await asyncio.sleep(5)
        samples = await samples_of(world)
        assert value_of(samples, MESSAGES, topic=NAME, cause="topic_rate") == 0
        assert value_of(samples, SECONDS, topic=NAME, cause="topic_rate") < 3
        topic = broker.engine.topics[NAME]
        (paused,) = topic.producers.values()
        topic.publishing.pause_reading(paused)
        await asyncio.sleep(2)
        samples = await samples_of(world)
        assert value_of(samples, SECONDS, cause="memory") == pytest.approx(2, abs=0.1)
        assert [s.name for s in parked(samples) if s.labels["cause"] == "memory"] == [SECONDS]

    with World() as world:
        world.run(scenario(world))


def test_with_namespaces_only_what_waits_now_is_summed() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        for name in (NAME, OTHER):
            producer = await client.producer(name)
            await publish_limit(broker, 10, name=name)
            for _ in range(25):
                producer.send_nowait(bytes(100))
        await asyncio.sleep(0.1)
        samples = await samples_of(world)
        assert {s.name for s in parked(samples)} == {MESSAGES, BYTES}
        labels = {"namespace": "public/default", "cause": "topic_rate"}
        expected = sum(topic.publishing.parking.messages for topic in broker.engine.topics.values())  # type: ignore[union-attr]
        assert value_of(samples, MESSAGES, **labels) == expected >= 20
        assert value_of(samples, BYTES, **labels) > 100 * expected

    with World(settings={"exposeTopicLevelMetricsInPrometheus": "false"}) as world:
        world.run(scenario(world))


def test_a_throttled_connection_counts_for_every_topic_that_it_publishes_to() -> None:
    """The meaning of Pulsar's counter, and what tells whose limit it was."""

    async def scenario(world: World) -> None:
        broker = await world.start()
        times = "pulsar_publish_rate_limit_times"
        shared, alone = await world.connect(), await world.connect()
        held = await shared.producer(NAME)
        second = await shared.producer(NAME)
        await shared.producer(OTHER)
        third = "persistent://public/default/third"
        await alone.producer(third)
        await publish_limit(broker, 10)
        for producer in (held, second):
            for _ in range(15):
                producer.send_nowait(bytes(100))
        await asyncio.sleep(0.1)
        samples = await samples_of(world)
        assert [value_of(samples, times, topic=name) for name in (NAME, OTHER, third)] == [1, 1, 0]
        assert {s.labels["topic"] for s in parked(samples)} == {NAME}
        await asyncio.sleep(10)
        for _ in range(15):
            held.send_nowait(bytes(100))
        await asyncio.sleep(0.1)
        samples = await samples_of(world)
        assert [value_of(samples, times, topic=name) for name in (NAME, OTHER, third)] == [2, 2, 0]

    with World() as world:
        world.run(scenario(world))
