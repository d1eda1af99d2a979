"""What explain, statistics and telemetry say of messages that are not due."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.base.names import parse_topic
from headgate.engine.types import SubscriptionType
from headgate.facade.admin_facade import AdminFacade
from headgate.observe.stats.fields import StatsOptions
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


async def explained(world: World) -> Any:
    report = await world.observer.explain_topic(parse_topic(TOPIC), per_partition=False)
    (found,) = report["subscriptions"]
    return found


@played()
async def test_they_are_no_backlog_until_they_are_due(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    producer = await client.producer(TOPIC)
    for _ in range(12):
        await producer.send(b"x", delay_ms=60_000)
    await asyncio.sleep(50)
    found = await explained(world)
    assert found["sentence"] == "NONE: nothing is waiting; 12 messages are not due yet."
    assert (found["state"], found["verdict"], found["confidence"]) == ("not_due", "NONE", 1.0)
    assert (found["backlogMessages"], found["delayedMessages"]) == (12, 12)
    assert (found["backlogSince"], found["oldestAgeS"]) == (None, 0)
    stats = await AdminFacade(world.broker, world.observer).topic_stats(
        parse_topic(TOPIC), StatsOptions()
    )
    of_s = stats.subscriptions["s"]
    assert (of_s.msg_backlog, of_s.msg_delayed, of_s.msg_backlog_no_delayed) == (12, 12, 0)
    index_bytes = of_s.delayed_message_index_size_in_bytes
    assert stats.delayed_message_index_size_in_bytes == index_bytes > 0
    # They become due together, and the consumer takes them at once.
    await asyncio.sleep(11)
    for _ in range(12):
        consumer.ack_nowait((await consumer.receive()).position)
    await asyncio.sleep(20)
    found = await explained(world)
    assert (found["verdict"], found["delayedMessages"]) == ("NONE", 0)


@played()
async def test_once_due_they_are_a_backlog_of_that_age(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=0)
    producer = await client.producer(TOPIC)
    for delay_ms in (10_000, 3_600_000):
        await producer.send(b"x", delay_ms=delay_ms)
    await asyncio.sleep(40)
    found = await explained(world)
    assert found["verdict"] == "CONSUMER"
    assert 29 <= found["oldestAgeS"] <= 31
    assert (found["backlogMessages"], found["delayedMessages"]) == (2, 1)
    assert found["sentence"].endswith("; 1 message is not due yet.")
