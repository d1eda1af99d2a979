"""The sweeps that end something run at their intervals, and what ended frees the disk."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import KIB
from headgate.broker.sweeps.endings import Endings
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import InactiveTopicPolicies
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)
BODY = b"x" * 10_000
MESSAGES = 200
SEGMENT = 256 * KIB
"""An idle log has two of them, and the file of a deleted one for the next."""
SMALL_LEDGERS = LedgerSettings(ledger_entries_max=10, ledger_age_ms_min=0, segment_bytes=64 * KIB)


@played()
async def test_a_broker_has_them(world: World) -> None:
    endings = world.broker.endings
    assert isinstance(endings, Endings)
    client = await world.connect()
    await (await client.producer(TOPIC)).close()
    await asyncio.sleep(130)
    assert world.broker.catalog.topic(TOPIC) is None
    assert world.broker.internal_errors() == []


CAUGHT_UP = InactiveTopicPolicies("delete_when_subscriptions_caught_up", 60, True)


@pytest.mark.parametrize(
    "policies",
    [
        {"message_ttl_in_seconds": 60},
        {"subscription_expiration_time_minutes": 6},
        {"inactive_topic_policies": CAUGHT_UP, "message_ttl_in_seconds": 60},
        None,
    ],
    ids=["messages", "subscriptions", "topics", "by request"],
)
def test_what_ended_frees_the_disk_and_is_gone_after_a_crash(
    policies: dict[str, object] | None,
) -> None:
    """Another topic goes on, so that its own records do not stand in the way."""

    async def story(world: World) -> None:
        await world.start()
        client = await world.connect()
        await (await client.subscribe(TOPIC, "s")).close()
        producer, other = await client.producer(TOPIC), await client.producer(f"{TOPIC}-other")
        reading = await client.subscribe(f"{TOPIC}-other", "s")
        for number in range(MESSAGES):
            await producer.send(BODY)
            if number % 10 == 0:
                await other.send(b"y")
        await producer.close()
        assert world.fs.used_bytes() > 7 * SEGMENT
        if policies is None:
            await world.ask(world.broker.registry.delete(NAME, force=True))
        else:
            plan = world.broker.catalog.plan_namespace_policies
            await world.ask(world.broker.commit(plan(NAME.namespace, **policies)))
        for _ in range(30):
            await other.send(b"y")
            await asyncio.sleep(30)
        assert world.fs.used_bytes() <= 3 * SEGMENT
        assert world.broker.internal_errors() == []
        world.crash()
        await world.start()
        topic = world.broker.registry.get(NAME)
        left = 0 if topic is None else topic.storage_bytes()
        assert left == 0
        assert topic is None or not any(s.backlog_messages for s in topic.subscriptions.values())
        assert reading is not None

    with World(7, ledger=SMALL_LEDGERS) as world:
        world.run(asyncio.wait_for(story(world), 3_600))
