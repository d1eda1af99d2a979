"""A simulated broker, asked as if it were Pulsar: what is inferred agrees with what it measured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any

import pytest

from headgate.access.client_config import ClientConfig
from headgate.agent.cluster_client import ClusterClient
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.cluster_kind import ClusterKind, Product, cluster_kind
from headgate.agent.look_plan import LookKind, LookPeriods, LookPlan
from headgate.agent.request_budget import RequestBudget
from headgate.agent.scout import Scope, Scout
from headgate.agent.shared_history import SharedHistory
from headgate.base.names import parse_topic
from headgate.explain.delivery import Instant
from headgate.metadata.policies import DispatchRate
from headgate.testing import World
from headgate.testing.fake_cluster import InlineExecutor
from headgate.testing.fake_cluster.bridge import BrokerTransport
from tests.unit.broker.playing import TOPIC

Scene = Callable[[World], Coroutine[Any, Any, None]]


@pytest.fixture
def world() -> Iterator[World]:
    with World(3) as found:
        found.run(found.start())
        yield found


def client_of(world: World) -> ClusterClient:
    transport = BrokerTransport(world)
    return ClusterClient(ClientConfig(), {}, world.clock, transport=transport)


async def publish(world: World, per_s: int) -> None:
    producer = await (await world.connect()).producer(TOPIC, name="p")
    while True:
        producer.send_nowait(bytes(100))
        await asyncio.sleep(1 / per_s)


async def consume(world: World, per_s: int, permits: int) -> None:
    consumer = await (await world.connect()).subscribe(TOPIC, "sub", queue_size=permits)
    while True:
        message = await consumer.receive()
        await consumer.ack(message.position)
        await asyncio.sleep(1 / per_s)


async def a_slow_consumer(world: World) -> None:
    world.loop.create_task(consume(world, 5, 20))
    world.loop.create_task(publish(world, 20))


async def no_consumer(world: World) -> None:
    consumer = await (await world.connect()).subscribe(TOPIC, "sub")
    await consumer.close()
    world.loop.create_task(publish(world, 10))


async def a_topic_limit(world: World) -> None:
    world.loop.create_task(consume(world, 1_000, 1_000))
    await asyncio.sleep(1)
    rate = DispatchRate(8, -1)
    plan = world.broker.catalog.plan_topic_policies(parse_topic(TOPIC), dispatch_rate=rate)
    await world.broker.writer.commit(plan)
    world.loop.create_task(publish(world, 20))


async def no_backlog(world: World) -> None:
    world.loop.create_task(consume(world, 1_000, 1_000))
    world.loop.create_task(publish(world, 20))


def test_it_looks_like_pulsar(world: World) -> None:
    assert cluster_kind(client_of(world)) == ClusterKind(Product.PULSAR, "4.0.8")


@pytest.mark.parametrize(
    ("scene", "verdict"),
    [
        (a_slow_consumer, "CONSUMER"),
        (no_consumer, "NO_CONSUMER"),
        (a_topic_limit, "THROTTLED_TOPIC"),
        (no_backlog, "NONE"),
    ],
)
@pytest.mark.parametrize("topics", [(TOPIC,), ()])
def test_what_is_inferred_is_what_was_measured(
    world: World, scene: Scene, verdict: str, topics: tuple[str, ...]
) -> None:
    world.run(scene(world))
    history = SharedHistory(ClusterHistory("oracle"))
    scout = Scout(
        client_of(world), history, LookPlan(LookPeriods({LookKind.STATS: 1.0})), RequestBudget(),
        InlineExecutor(), world.clock, Random(1), Scope(topics),
    )  # fmt: skip
    end_s = world.now_s + 75
    while world.now_s < end_s:
        world.advance(min(1.0, scout.step()))
    instant = Instant(world.clock.monotonic_ns(), world.wall_ms())
    (inferred,) = history.topic(TOPIC, instant)["subscriptions"]
    (measured,) = world.run(world.observer.explain_topic(parse_topic(TOPIC)))["subscriptions"]
    assert measured["verdict"] == verdict
    assert inferred["verdict"] == verdict
    assert inferred["confidence"] <= 0.6
    assert inferred["backlogMessages"] == pytest.approx(measured["backlogMessages"], abs=60)
    assert scout.problems == {}
