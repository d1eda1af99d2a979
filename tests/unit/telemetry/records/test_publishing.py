"""The publishing side in the record: limits in force, limiters, whom they held, and since when."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headgate.broker.service import Broker
from headgate.flow.limits.rate_limit import RateLimit
from headgate.record.fields import Kind, field_names
from headgate.telemetry.records.publishing import PUBLISH_COLUMNS
from headgate.testing import World
from tests.unit.telemetry.records.watching import Watch, watch
from tests.unit.telemetry.support import NAME, publish, publish_limit, topic_of

BROKER_SOURCE = "broker setting brokerPublisherThrottlingMaxMessageRate"


def limiters(window: dict[Kind, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    return {
        f"{row['level']} {row['dimension']}": row
        for row in window[Kind.LIMITER]
        if row["level"].startswith("publish")
    }


def told(window: dict[Kind, list[dict[str, Any]]], event: str) -> list[tuple[Any, Any]]:
    return [
        (json.loads(row["inputs"]), json.loads(row["outcome"]))
        for row in window[Kind.EVENT]
        if row["event"] == event
    ]


def test_columns_are_fields_of_the_record() -> None:
    assert set(PUBLISH_COLUMNS) <= set(field_names(Kind.TOPIC))


def test_the_limit_in_force_is_in_the_topics_row_and_what_is_set_in_an_event() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        broker = own.broker
        topic = await publish(world, 1)
        (row,) = (await own.after(1))[Kind.TOPIC]
        assert all(row.get(name) is None for name in PUBLISH_COLUMNS)
        await publish_limit(broker, 80, 9_000)
        window = await own.after(1)
        (row,) = window[Kind.TOPIC]
        assert row["publish_limit_messages_per_s"] == 80
        assert row["publish_limit_bytes_per_s"] == 9_000
        assert row["publish_limit_source"] == "topic policy"
        ((inputs, outcome),) = told(window, "limit_changed")
        assert inputs["level"] == "publish_topic"
        assert inputs["before"]["messages"] is None
        assert (outcome["messages"], outcome["bytes"], outcome["source"]) == (
            80, 9_000, "topic policy",
        )  # fmt: skip
        topic.publishing.adaptive_limit = RateLimit(100, 2_000)
        broker.engine.admission.put_in_force(topic)
        window = await own.after(1)
        (row,) = window[Kind.TOPIC]
        assert row["publish_limit_messages_per_s"] == 80
        assert row["publish_limit_bytes_per_s"] == 2_000
        assert row["publish_limit_source"] == "topic policy and adaptive controller"
        assert not told(window, "limit_changed")
        assert limiters(window)["publish_topic bytes"]["limit_source"] == "adaptive controller"

    with World() as world:
        world.run(scenario(world))


async def crowd(world: World, count: int, name: str = NAME) -> None:
    """As many producers, each with more than ten a second."""
    client = await world.connect()
    for number in range(count):
        producer = await client.producer(name, name=f"p{number}")
        for _ in range(100):
            producer.send_nowait(bytes(100))


def test_limiters_in_use_have_rows_with_their_waiters() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 0)
        await publish_limit(own.broker, 10)
        await crowd(world, 2)
        await own.after(1)
        window = await own.after(4)
        row = limiters(window)["publish_topic messages"]
        assert (row["subject"], row["limit"], row["limit_source"]) == (NAME, 10, "topic policy")
        assert row["granted"] == pytest.approx(55, abs=6)
        assert row["offered"] == 200
        assert row["waiting_ns"] == pytest.approx(5e9, rel=0.05)
        assert row["waiters_max"] == 2
        assert {row["waiter_1"], row["waiter_2"]} == {"p0", "p1"}
        assert row["waiter_1_amount"] + row["waiter_2_amount"] == pytest.approx(40, abs=2)
        row = limiters(window)["publish_broker messages"]
        assert (row["subject"], row["limit_source"]) == ("127.0.0.1:8080", BROKER_SOURCE)
        assert row["granted"] == pytest.approx(55, abs=6)
        await publish_limit(own.broker, -1)
        row = limiters(await own.after(0.1))["publish_topic messages"]
        assert row["gone"]
        await asyncio.sleep(20)
        assert list(limiters(await own.window(full=True))) == ["publish_broker messages"]

    with World(settings={"brokerPublisherThrottlingMaxMessageRate": "500"}) as world:
        world.run(scenario(world))


def test_the_brokers_limiter_names_topics_and_producers() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await crowd(world, 1)
        await own.after(1)
        row = limiters(await own.after(2))["publish_broker messages"]
        assert (row["waiter_1"], row["waiter_1_amount"]) == (f"{NAME}|p0", 20)

    with World(settings={"brokerPublisherThrottlingMaxMessageRate": "10"}) as world:
        world.run(scenario(world))


def test_that_producers_are_held_is_reported_by_windows() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 1)
        await publish_limit(own.broker, 10)
        assert not told(await own.after(1), "throttle_began")
        producer = await (await world.connect()).producer(NAME)
        for _ in range(50):
            producer.send_nowait(bytes(100))
        ((inputs, outcome),) = told(await own.after(1), "throttle_began")
        assert (inputs["level"], inputs["messages"]) == ("publish_topic", 10)
        assert outcome == {"cause": "topic_rate"}
        assert not told(await own.after(1), "throttle_began")
        await asyncio.sleep(10)
        await own.window()
        ((inputs, outcome),) = told(await own.after(1), "throttle_ended")
        assert inputs["source"] == "topic policy"
        assert outcome == {"cause": "topic_rate"}

    with World() as world:
        world.run(scenario(world))


async def learn(own: Watch, broker: Broker, world: World) -> dict[str, Any]:
    producer = await (await world.connect()).producer(NAME)
    for _ in range(100):
        await producer.send(bytes(100))
        await asyncio.sleep(0.1)
    assert topic_of(broker).publishing.control is not None
    return (await own.window())[Kind.TOPIC][-1]


def test_the_natural_rate_is_what_the_controller_learned() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        row = await learn(own, own.broker, world)
        assert row["natural_rate_messages_per_s"] == pytest.approx(10, rel=0.2)
        assert row["natural_rate_bytes_per_s"] > 1_000

    with World(settings={"adaptivePublisherThrottlingEnabled": "true"}) as world:
        world.run(scenario(world))
