"""The forecast of the disk in explain's answers."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.base.units import KIB, MIB
from headgate.ledger import LedgerSettings
from headgate.observe.states.filling import filling_facts
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

OTHER = "persistent://public/default/other"
LEDGER = LedgerSettings(segment_bytes=64 * KIB)


@played(ledger=LEDGER, capacity_bytes=8 * MIB)
async def test_explain_says_it_without_being_asked_only_where_it_is_soon(world: World) -> None:
    client, broker = await world.connect(), world.broker
    await client.subscribe(TOPIC, "nobody")
    producer = await client.producer(TOPIC)
    assert (await world.observer.explain_top(5))["storage"]["diskFullInS"] is None
    for at in range(350):
        producer.send_nowait(bytes(200 if at < 100 else 10_000))
        await asyncio.sleep(3)
        if at == 99:
            state = world.observer.storage_state()
            assert state.disk_full_in_s is not None
            assert state.disk_full_in_s > 4 * 3_600
            assert state.sentence == ""
    broker.begin_turn()
    state = world.observer.storage_state()
    assert state.disk_full_in_s is not None
    assert state.sentence.startswith("the disk is full in ")
    assert "by public/default/orders" in state.sentence
    facts = filling_facts(broker.disk, broker.topic_growth.growths)
    assert facts.full_in_s == state.disk_full_in_s
    assert [topic.topic for topic in facts.topics] == [TOPIC]
    assert facts.full_s is None
    # Who may see one topic alone must not learn the names of others.
    await client.producer(OTHER)
    for name in (OTHER, TOPIC):
        own = (await world.observer.explain_topic(parse_topic(name)))["storage"]
        assert own["sentence"].startswith("the disk is full in ")
        assert "public/" not in own["sentence"]
        assert "by retained messages" in own["sentence"]
    report = await world.observer.explain_storage(5)
    (topic,) = report["forecast"]["topics"]
    assert (topic["topic"], topic["cause"], topic["subscription"]) == (
        TOPIC, "subscription", "nobody",
    )  # fmt: skip
    assert topic["sentence"].startswith("subscription nobody has not acknowledged 350 messages")
    assert report["forecast"]["fullAt"] > report["at"]
    await broker.registry.delete(broker.engine.topics[TOPIC].name, force=True)
    assert (await world.observer.explain_storage(5))["forecast"]["topics"] == []
