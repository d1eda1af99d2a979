"""Explain about producers: what holds them, who waits most, and which topics have it so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.base.largest import Largest
from headgate.base.names import TopicName, parse_topic
from headgate.base.work_units import PIECE_UNITS, SLICE_UNITS
from headgate.broker.slices import SLICE_YIELDS
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.flow.sentences.publish import NOTHING_HOLDS
from headgate.metadata.policies import BacklogQuota, PublishRate
from headgate.observe.explain import publishing as explain_publishing
from headgate.observe.history.parked import ParkedHistory
from headgate.observe.states import parked as parked_states
from headgate.observe.states.parked import ParkedStates
from headgate.testing import World
from headgate.wire.codes import ProducerAccessMode
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)
OTHER = "persistent://public/default/other"


async def limit(world: World, messages: int, name: TopicName = NAME) -> None:
    catalog = world.broker.catalog
    plan = catalog.plan_topic_policies(name, publish_rate=PublishRate(messages))
    await world.broker.writer.commit(plan)


async def publish(world: World, name: str, topic: str = TOPIC, messages: int = 30) -> None:
    producer = await (await world.connect()).producer(topic, name=name)
    for _ in range(messages):
        producer.send_nowait(bytes(100))


async def side(world: World, name: TopicName = NAME) -> dict[str, Any]:
    found: dict[str, Any] = (await world.observer.explain_topic(name))["publishing"]
    return found


@played()
async def test_nothing_holds_a_topic_without_limits(world: World) -> None:
    await publish(world, "p")
    found = await side(world)
    assert found["sentence"] == NOTHING_HOLDS
    assert found["parked"] == found["limits"] == found["longestWaiting"] == []
    assert found["producers"] == 1
    assert (await world.observer.explain_top(10))["publishing"] == []


@played()
async def test_a_producer_that_waits_for_exclusive_access(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC, name="first", access_mode=ProducerAccessMode.EXCLUSIVE)
    waiting = asyncio.create_task(
        client.producer(TOPIC, access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
    )
    await asyncio.sleep(60)
    found = await side(world)
    assert found["sentence"] == "1 producer waits for exclusive access, which first has"
    assert (found["waitingForAccess"], found["parked"]) == (1, [])
    facade = AdminFacade(world.broker, world.observer)
    await world.ask(facade.terminate_topic(NAME))
    await asyncio.gather(waiting, return_exceptions=True)
    sentence = (await side(world))["sentence"]
    assert sentence == "the topic is terminated: it takes no more messages"


@played(settings={"brokerPublisherThrottlingMaxMessageRate": "1000"})
async def test_a_topic_that_publishes_more_than_it_may(world: World) -> None:
    await world.broker.registry.create(NAME)
    await limit(world, 10)
    await publish(world, "few", messages=20)
    await publish(world, "many", messages=200)
    await asyncio.sleep(2)
    found = await side(world)
    assert found["sentence"].startswith(
        "2 producers wait for the topic's publish limit of 10 msg/s (topic policy): 1"
    )
    assert found["sentence"].endswith(" messages wait in the broker; held for 2 s without a break")
    assert [held["producer"] for held in found["longestWaiting"]] == ["many", "few"]
    most = found["longestWaiting"][0]
    assert (most["topic"], most["cause"]) == (TOPIC, "topic_rate")
    assert 180 <= most["messages"] < 200
    assert most["bytes"] > 100 * most["messages"]
    assert 1 < most["waitingS"] <= 2
    own, of_broker = found["limits"]
    assert (own["level"], own["subject"], own["source"]) == ("publish_topic", TOPIC, "topic policy")
    assert own["waiters"] == 2
    (budget,) = own["budgets"]
    assert (budget["limit"], budget["text"]) == (10, "10 msg/s")
    assert budget["inWindow"] in (9, 10, 11)
    assert (of_broker["level"], of_broker["subject"]) == ("publish_broker", "")


@played()
async def test_unlimited_is_said_where_it_is_set(world: World) -> None:
    await world.broker.registry.create(NAME)
    catalog = world.broker.catalog
    rate = PublishRate(unlimited=True)
    await world.broker.writer.commit(catalog.plan_topic_policies(NAME, publish_rate=rate))
    (own,) = (await side(world))["limits"]
    assert (own["unlimited"], own["source"], own["budgets"]) == (True, "topic policy", [])


@played()
async def test_topics_whose_producers_are_held_are_listed(world: World) -> None:
    broker = world.broker
    for name in (NAME, parse_topic(OTHER)):
        await broker.registry.create(name)
        await limit(world, 10, name)
    await publish(world, "p", messages=50)
    await publish(world, "q", OTHER, messages=100)
    await publish(world, "r", "persistent://public/default/free")
    await asyncio.sleep(1)
    held = (await world.observer.explain_top(10))["publishing"]
    assert [report["topic"] for report in held] == [OTHER, TOPIC]
    assert held[0]["causes"] == ["topic_rate"]
    assert held[0]["messages"] > held[1]["messages"] > 0
    assert held[0]["sentence"].startswith("1 producer waits for the topic's publish limit of 10 ")
    assert len((await world.observer.explain_top(1))["publishing"]) == 1
    await asyncio.sleep(30)
    assert (await world.observer.explain_top(10))["publishing"] == []


@played()
async def test_a_partitioned_topic_is_reported_as_one(world: World) -> None:
    broker = world.broker
    await broker.writer.commit(broker.catalog.plan_create_partitioned(NAME, 3, now_ms=1))
    await limit(world, 10)
    for index in range(3):
        await publish(world, f"p{index}", f"{TOPIC}-partition-{index}", messages=50 + index)
    await asyncio.sleep(2)
    found = await side(world)
    assert found["sentence"].startswith(
        "3 producers wait for the topic's publish limit of 10 msg/s (topic policy)"
        " on each of 3 partitions: "
    )
    (parked,) = found["parked"]
    assert parked["producers"] == 3
    assert 5 < parked["seconds"] < 7
    assert 1.8 < parked["minuteS"] < 2.2
    assert len(found["limits"]) == len(found["longestWaiting"]) == 3


@played()
async def test_what_a_quota_holds_is_reported_by_its_cause(world: World) -> None:
    broker = world.broker
    await (await world.connect()).subscribe(TOPIC, "s", queue_size=0)
    quotas = {"destination_storage": BacklogQuota("producer_request_hold", 1_000)}
    plan = broker.catalog.plan_namespace_policies(NAME.namespace, backlog_quotas=quotas)
    await broker.writer.commit(plan)
    await publish(world, "p")
    await asyncio.sleep(2)
    found = await side(world)
    assert found["sentence"].startswith("1 producer waits for room in the backlog quota: ")
    (held,) = (await world.observer.explain_top(10))["publishing"]
    assert held["causes"] == ["backlog_quota"]
    await asyncio.sleep(30)
    assert (await side(world))["sentence"] == (
        "the backlog quota stops all publishing now; the backlog quota held producers for 33 % of"
        " the last minute"
    )


@played()
async def test_topics_whose_connections_are_not_read_are_listed(world: World) -> None:
    await publish(world, "p", messages=1)
    topic = world.broker.engine.topics[TOPIC]
    topic.publishing.pause_reading(topic.producers["p"])
    (held,) = (await world.observer.explain_top(10))["publishing"]
    assert (held["causes"], held["messages"]) == (["memory"], 0)
    assert "the connection of 1 producer is not read" in held["sentence"]


@played()
async def test_the_rates_of_many_partitions_are_asked_a_few_at_a_time(world: World) -> None:
    """Those of 4,096 partitions held the loop for 65 ms."""
    broker, count, asked, most = world.broker, 100, 0, 0
    begin_turn, rates = broker.begin_turn, Topic.current_rates
    plan = broker.catalog.plan_create_partitioned(NAME, count, now_ms=world.wall_ms())
    await broker.writer.commit(plan)

    def counted(topic: Topic) -> tuple[float, ...]:
        nonlocal asked
        asked += 1
        return rates(topic)

    def begun() -> None:
        nonlocal asked, most
        most, asked = max(most, asked), 0
        begin_turn()

    broker.begin_turn = begun  # type: ignore[method-assign]
    broker.work._begin_turn = begun
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Topic, "current_rates", counted)
        await side(world)
        begun()
    assert 0 < most <= 2 * SLICE_YIELDS * SLICE_UNITS // PIECE_UNITS < count


@played()
async def test_thousands_of_producers_that_wait_are_looked_at_with_pauses(world: World) -> None:
    """60,000 of one topic held the loop for 0.12 s, for each report."""
    await (await world.connect()).producer(TOPIC, name="idle")
    await limit(world, 1)
    for number in range(11):
        await publish(world, f"p{number}", messages=number + 2)
    await asyncio.sleep(0.1)
    topic = world.broker.engine.topics[TOPIC]
    found = await side(world)
    assert [each["producer"] for each in found["longestWaiting"]] == [
        f"p{number}" for number in range(10, 5, -1)
    ]
    assert found["parked"][0]["producers"] >= 10
    with pytest.MonkeyPatch.context() as patch:
        for module in (explain_publishing, parked_states):
            patch.setattr(module, "PRODUCERS_PER_YIELD", 3)
        largest = Largest[Any](5)
        assert len([*explain_publishing._add_parked(largest, topic)]) == 4
        states = ParkedStates(ParkedHistory(), world.broker.current_publish_limits)
        assert len([*states.states([topic])]) == 1 + 4
    assert [each.producer for each in largest.items()] == [
        each["producer"] for each in found["longestWaiting"]
    ]
