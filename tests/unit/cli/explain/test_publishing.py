"""Whole pages of explain about slow producers, from a broker in virtual time."""

from __future__ import annotations

import asyncio
import re
from textwrap import dedent
from typing import Any

import pytest

from headgate.base.names import TopicName, parse_topic
from headgate.cli.explain.page import Page
from headgate.cli.explain.publishing import add_quotas
from headgate.cli.explain.text import explain_text
from headgate.metadata.policies import BacklogQuota, PublishRate
from headgate.testing import World

ORDERS = parse_topic("persistent://public/default/orders")
AUDIT = parse_topic("persistent://public/default/audit")
FULL = parse_topic("persistent://public/default/full")


async def publish(world: World, topic: TopicName, name: str, messages: int) -> None:
    producer = await (await world.connect()).producer(topic.full, name=name)
    for _ in range(messages):
        producer.send_nowait(bytes(100))


async def story(world: World) -> dict[str, Any]:
    broker = await world.start()
    catalog, found = broker.catalog, {}
    for topic in (ORDERS, AUDIT, FULL):
        await broker.registry.create(topic)
    plan = catalog.plan_topic_policies(ORDERS, publish_rate=PublishRate(10))
    await broker.writer.commit(plan)
    await publish(world, AUDIT, "auditor", 1)
    await publish(world, ORDERS, "till-1", 100)
    await publish(world, ORDERS, "till-2", 200)
    await (await world.connect()).subscribe(FULL.full, "s", queue_size=0)
    quota = {"destination_storage": BacklogQuota("producer_request_hold", 1_000)}
    await broker.writer.commit(catalog.plan_topic_policies(FULL, backlog_quotas=quota))
    await publish(world, FULL, "filler", 50)
    await asyncio.sleep(9)
    for topic in (ORDERS, AUDIT, FULL):
        found[topic.local] = await world.observer.explain_topic(topic)
    found["top"] = await world.observer.explain_top(10)
    await asyncio.sleep(46)
    found["later"] = await world.observer.explain_topic(ORDERS)
    await asyncio.sleep(900)
    found["much later"] = await world.observer.explain_topic(ORDERS)
    return found


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    with World(3) as world:
        found: dict[str, Any] = world.run(story(world))
        return found


def page(answer: Any, width: int = 100) -> str:
    return explain_text(answer, width, color=False)


def expected(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_what_holds_its_producers_and_who_waits_most(answers: dict[str, Any]) -> None:
    head, _, text = page(answers["orders"]).partition("\n")
    assert head.startswith("public/default/orders, ")
    assert text == expected("""
        2 producers; 10 msg/s (1.3 KiB/s) published; 11.3 KiB stored
        2 producers wait for the topic's publish limit of 10 msg/s (topic policy): 209 messages wait in the
        broker; held for 9 s without a break.
            wait now     209 messages (26 KiB) of 2 producers for topic_rate
            wait most    till-2 (160 messages, the oldest for 9 s), till-1 (49 messages, the oldest for 9 s)
            last minute  15% topic_rate
        This topic has no subscription.

        Limits in force
            publish topic  10 msg/s  topic policy; 10 in the last 1 s; 2 producers waiting
        """)  # noqa: E501


def test_a_topic_that_nothing_holds(answers: dict[str, Any]) -> None:
    text = page(answers["audit"])
    assert "1 producer; " in text
    assert text.splitlines()[1].endswith("; nothing holds publishing")
    assert text.endswith("No dispatch limit and no publish limit is in force.\n")


def test_what_held_them_lately(answers: dict[str, Any]) -> None:
    assert "\nNothing waits now; the topic's publish limit, now 10 msg/s (topic policy), held" in (
        page(answers["later"])
    )
    text = page(answers["much later"])
    assert "held producers for 30 s\nof the last hour.\n" in text
    assert "    last hour  30 s topic_rate\n" in text
    assert "last minute" not in text


def test_topics_whose_producers_are_held(answers: dict[str, Any]) -> None:
    """One that only its quota holds is told with its quota."""
    text = page(answers["top"])
    _, _, held = text.partition("\nTopics whose producers are held:\n")
    assert held.startswith("    public/default/orders: 2 producers wait for the topic's publish ")
    assert "public/default/full:" not in held
    assert "public/default/full: the topic is" in text
    without = answers["top"] | {"quotas": []}
    assert "    public/default/full: 1 producer waits for room in the backlog" in page(without)


def test_a_connection_that_is_not_read(answers: dict[str, Any]) -> None:
    answer = answers["orders"]
    (parked,) = answer["publishing"]["parked"]
    paused = parked | {"cause": "memory", "producers": 2, "messages": 0, "minuteS": 3.0}
    side = answer["publishing"] | {"parked": [parked, paused]}
    text = page(answer | {"publishing": side})
    assert "for topic_rate; 2 producers for memory\n" in text
    assert re.search(r"last minute +\d+% topic_rate, 5% memory\n", text)


def test_of_partitions_it_is_reported_to_which_somebody_publishes(answers: dict[str, Any]) -> None:
    text = page(answers["orders"] | {"partitions": 3}, 120)
    assert "wait most    till-2 to public/default/orders (160 messages, the oldest for 9 s)" in text


def test_what_an_agent_does_not_know_of_a_quota_is_not_told() -> None:
    quota = dict.fromkeys(
        ("stoppedS", "producersClosed", "producersRefused", "evictions", "evictedMessages")
    ) | {"topic": "persistent://a/b/c", "sentence": "the topic is at 84 % of its quota"}
    shown = Page(80, color=False)
    add_quotas(shown, [quota], partitioned=False)
    assert shown.text() == "The topic is at 84 % of its quota.\n"
