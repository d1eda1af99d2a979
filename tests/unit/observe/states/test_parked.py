"""What waits before its append, as stats and explain show it."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.base.sliced import at_once
from headgate.engine.topic import Topic
from headgate.explain.states import LimitRef, ParkedState
from headgate.flow.limits.rate_limit import RateLimit
from headgate.metadata.policies import PublishRate
from headgate.observe.states.parked import ParkedStates
from headgate.observe.stats.fields import StatsOptions
from headgate.testing import SimProducer, World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def publish_rate(world: World, rate: PublishRate | None) -> None:
    catalog = world.broker.catalog
    await world.broker.writer.commit(catalog.plan_topic_policies(NAME, publish_rate=rate))


async def crowd(world: World, count: int, messages: int) -> list[SimProducer]:
    """Producers on a connection of their own that send as much at once."""
    client = await world.connect()
    producers = [await client.producer(TOPIC, name=f"p{number}") for number in range(count)]
    for producer in producers:
        for _ in range(messages):
            producer.send_nowait(bytes(100))
    return producers


def live(world: World) -> Topic:
    world.broker.begin_turn()
    return world.broker.engine.topics[TOPIC]


def states(world: World) -> dict[str, ParkedState]:
    limits = world.broker.current_publish_limits
    read = ParkedStates(world.observer.parked_history, limits).states([live(world)])
    return {state.cause: state for state in at_once(read)}


@played()
async def test_nothing_ever_waited(world: World) -> None:
    await crowd(world, 1, 5)
    assert states(world) == {}


@played()
async def test_who_waits_for_which_limit_and_for_how_long(world: World) -> None:
    await world.broker.registry.create(NAME)
    await publish_rate(world, PublishRate(10, 1_000_000))
    await crowd(world, 2, 50)
    await asyncio.sleep(4)
    (state,) = states(world).values()
    assert (state.cause, state.producers) == ("topic_rate", 2)
    assert 58 <= state.messages <= 62
    assert state.bytes > 100 * state.messages
    held_s = pytest.approx(4, abs=0.1)
    assert state.seconds == state.minute_s == state.hour_s == state.waiting_s == held_s
    assert state.limit == LimitRef(
        level="publish_topic", dimension="messages", text="10 msg/s", source="topic policy"
    )
    await asyncio.sleep(70)
    (state,) = states(world).values()
    assert (state.producers, state.messages, state.bytes, state.waiting_s) == (0, 0, 0, None)
    assert state.minute_s == 0
    assert state.hour_s == state.seconds == pytest.approx(9.9, abs=0.2)
    # Nobody waits, so nobody knows which of both it was.
    assert state.limit is not None
    assert (state.limit.dimension, state.limit.text) == ("", "10 msg/s and 1,000,000 B/s")
    await publish_rate(world, None)
    assert states(world)["topic_rate"].limit is None


@played()
async def test_the_controllers_limit_is_another_cause_than_a_policys(world: World) -> None:
    await world.broker.registry.create(NAME)
    await publish_rate(world, PublishRate(10))
    topic = live(world)
    topic.publishing.adaptive_limit = RateLimit(5, 9_000)
    world.broker.engine.admission.put_in_force(topic)
    await crowd(world, 1, 50)
    await asyncio.sleep(1)
    (state,) = states(world).values()
    assert state.cause == "adaptive"
    assert state.limit == LimitRef(
        level="publish_topic", dimension="messages", text="5 msg/s", source="adaptive controller"
    )
    topic.publishing.adaptive_limit = None
    world.broker.engine.admission.put_in_force(topic)
    await asyncio.sleep(1)
    now = states(world)
    assert now["adaptive"].limit is None
    assert now["adaptive"].waiting_s is None
    assert now["topic_rate"].limit is not None
    assert now["topic_rate"].limit.source == "topic policy"


@played(settings={"brokerPublisherThrottlingMaxByteRate": "1000"})
async def test_the_brokers_limit(world: World) -> None:
    await crowd(world, 1, 50)
    await asyncio.sleep(1)
    (state,) = states(world).values()
    assert state.cause == "broker_rate"
    assert state.limit == LimitRef(
        level="publish_broker",
        dimension="bytes",
        text="1,000 B/s",
        source="broker setting brokerPublisherThrottlingMaxByteRate",
    )


@played()
async def test_stats_have_it_beside_the_limits_in_force(world: World) -> None:
    await world.broker.registry.create(NAME)
    await publish_rate(world, PublishRate(10))
    await crowd(world, 2, 50)
    await asyncio.sleep(1)
    stats = await world.observer.topic_stats(live(world), StatsOptions())
    assert stats.publish_rate_limited_times == 1
    account = stats.headgate
    assert account["publishLimits"] == {  # type: ignore[index]
        "topic": {"messages": 10, "bytes": None, "periodSeconds": 1.0, "source": "topic policy"}
    }
    (parked,) = account["parked"]  # type: ignore[index]
    assert (parked["cause"], parked["producers"]) == ("topic_rate", 2)
    assert parked["limit"]["text"] == "10 msg/s"
