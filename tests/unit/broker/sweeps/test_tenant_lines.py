"""Sweeps over the topics of all tenants look at those of one tenant after the other, and at those
of different tenants beside each other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.base.errors import InvariantError
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.work_units import PIECE_UNITS
from headgate.broker.slices import Pace
from headgate.broker.sweeps.message_expiry import MessageExpiry
from headgate.broker.sweeps.tenant_lines import PATIENCE_S, TenantLines
from headgate.broker.sweeps.trimming import Trimming
from headgate.engine.topic import Topic
from headgate.ledger import LedgerSettings
from headgate.metadata.rows import TenantRow
from headgate.testing import SimConsumer, World
from tests.unit.broker.playing import TOPIC, played

OTHER = "persistent://other/ns/t"
SMALL_LEDGERS = LedgerSettings(segment_bytes=64 * 1024, ledger_entries_max=10, ledger_age_ms_min=0)
SELDOM = {"retentionCheckIntervalInSeconds": "1000000"}


async def consumers_with_backlogs(world: World) -> list[SimConsumer]:
    """Consumers of topics of two tenants, 20 messages in each: first one of the tenant whose looks
    have no end in the tests."""
    broker, row = world.broker, TenantRow(allowed_clusters=("standalone",))
    await broker.commit(broker.catalog.plan_create_tenant("other", row))
    await broker.commit(broker.catalog.plan_create_namespace(NamespaceName("other", "ns")))
    client = await world.connect()
    consumers = []
    for topic in (TOPIC, OTHER):
        consumers.append(await client.subscribe(topic, "s"))
        producer = await client.producer(topic)
        for _ in range(20):
            await producer.send(b"x")
    return consumers


def endless_for(patches: pytest.MonkeyPatch, owner: type, look: str) -> asyncio.Event:
    """Have the looks at :data:`TOPIC` not end until the event is set."""
    take, may_end = getattr(owner, look), asyncio.Event()

    async def held(self: Any, topic: Topic, *rest: Any) -> Any:
        if topic.name.full == TOPIC:
            await may_end.wait()
        return await take(self, topic, *rest)

    patches.setattr(owner, look, held)
    return may_end


@played(ledger=SMALL_LEDGERS, settings=SELDOM)
async def test_a_trim_without_an_end_holds_up_no_other_tenant(world: World) -> None:
    """A topic with very many readers, whose clients add more as fast as they are moved, took
    minutes in each round, and its tenant may have many. Nothing of any tenant was trimmed
    meanwhile."""
    consumers = await consumers_with_backlogs(world)
    trimming, topics = world.broker.trimming, world.broker.engine.topics
    log = topics[OTHER].log
    with pytest.MonkeyPatch.context() as patches:
        may_end = endless_for(patches, Trimming, "_trim_loaded")
        consumers[0].ack_through_nowait(topics[TOPIC].log.position(19))
        await asyncio.sleep(35)
        consumers[1].ack_through_nowait(log.position(9))
        await asyncio.sleep(45)
        assert log.first == 10
        consumers[1].ack_through_nowait(log.position(19))
        await asyncio.sleep(1)
        await asyncio.wait_for(trimming.trim(), 2 * PATIENCE_S)  # the walk over all topics
        await asyncio.sleep(1)
        assert (topics[TOPIC].log.first, log.first) == (0, 20)
        may_end.set()
        await asyncio.sleep(10)
    assert (topics[TOPIC].log.first, trimming.found_by_walk) == (20, 0)


@played()
async def test_an_expiry_without_an_end_holds_up_no_other_tenant(world: World) -> None:
    await consumers_with_backlogs(world)
    broker, topics = world.broker, world.broker.engine.topics
    with pytest.MonkeyPatch.context() as patches:
        may_end = endless_for(patches, MessageExpiry, "_expire")
        for topic, ttl_s in ((TOPIC, 10), (OTHER, 20)):
            plan = broker.catalog.plan_topic_policies
            change = plan(parse_topic(topic), message_ttl_in_seconds=ttl_s)
            await world.ask(broker.commit(change))
        for consumer in (topics[TOPIC], topics[OTHER]):
            assert consumer.subscriptions["s"].backlog_messages == 20
        await asyncio.sleep(30)
        backlogs = [topics[each].subscriptions["s"].backlog_messages for each in (TOPIC, OTHER)]
        assert backlogs == [20, 0]
        may_end.set()
        await asyncio.sleep(10)
    assert topics[TOPIC].subscriptions["s"].backlog_messages == 0


@played()
async def test_an_error_at_one_topic_leaves_none_out_and_fails_the_round(world: World) -> None:
    """A topic that a failed round had taken was forgotten."""
    await consumers_with_backlogs(world)
    topics, looked_at = world.broker.engine.topics, list[str]()

    async def look(topic: Topic, pace: Pace) -> None:
        looked_at.append(topic.name.full)
        if topic.name.full == TOPIC:
            raise ValueError("defect")

    async def measured(_: str, coroutine: Any) -> None:
        await coroutine

    lines = TenantLines("a sweep", look, world.broker, measured)
    for topic in (topics[TOPIC], topics[OTHER]):
        lines.add(topic)
    with pytest.raises(ValueError, match="defect"):
        await lines.wait()
    await lines.wait()
    assert looked_at == [TOPIC, OTHER]


@pytest.mark.parametrize("where", ["look", "end", "cancelled"])
def test_a_broken_invariant_ends_the_broker_at_once(where: str) -> None:
    """No round waits for a line that goes on beside later ones, and the end of one, which begins a
    commit, was in none of them."""

    @played()
    async def broken(world: World) -> None:
        await consumers_with_backlogs(world)
        broker, may_end = world.broker, asyncio.Event()

        async def look(topic: Topic, pace: Pace) -> None:
            await may_end.wait()
            if where == "look":
                raise InvariantError("broken")
            if where == "cancelled":
                raise asyncio.CancelledError

        def ended() -> None:
            if where == "end":
                raise InvariantError("broken")

        lines = TenantLines("a sweep", look, broker, broker.turns.measured, ended)
        lines.add(broker.engine.topics[TOPIC])
        await lines.wait()
        may_end.set()
        await asyncio.sleep(1)

    with pytest.raises(InvariantError, match=r"broken|cancelled"):
        broken()


@played()
async def test_topics_of_one_tenant_wait_for_each_other_and_may_be_forgotten(world: World) -> None:
    client = await world.connect()
    names = [f"{TOPIC}-{at}" for at in range(3)]
    for name in names:
        await client.producer(name)
    topics, looked_at, may_end = world.broker.engine.topics, list[str](), asyncio.Event()

    async def look(topic: Topic, pace: Pace) -> None:
        looked_at.append(topic.name.full)
        await may_end.wait()
        assert not pace.spent(PIECE_UNITS / 8)

    async def measured(_: str, coroutine: Any) -> None:
        await coroutine

    lines = TenantLines("a sweep", look, world.broker, measured)
    for name in (*names, *names):
        lines.add(topics[name])
    began_ms = world.broker.engine.now_ms
    await lines.wait()
    assert world.broker.engine.now_ms - began_ms == PATIENCE_S * 1_000
    assert looked_at == names[:1]
    lines.forget(topics[names[1]])
    may_end.set()
    await lines.wait()
    assert looked_at == [names[0], names[2]]
    lines.stop()
