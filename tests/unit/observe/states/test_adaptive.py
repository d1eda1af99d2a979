"""What the adaptive controller does to a topic, as explain tells it (rule 5.6)."""

from __future__ import annotations

import asyncio

import msgspec

from headgate.base.names import parse_topic
from headgate.cli.explain.text import explain_text
from headgate.control.adaptive import DECISIONS_MAX
from headgate.observe.states.adaptive import adaptive_state
from headgate.testing import World
from tests.unit.broker.adaptive_play import ON, Publisher, Reader, live, set_quota
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_disabled_it_has_nothing_to_say(world: World) -> None:
    Publisher(world, await world.connect(), TOPIC, 10)
    await asyncio.sleep(3)
    assert adaptive_state(world.broker.adaptive, [await live(world)]) is None


@played(settings=ON)
async def test_the_last_decisions_and_the_last_of_them_in_words(world: World) -> None:
    topic = await set_quota(world, 3_000_000)
    Reader(await world.connect(), TOPIC, 50)
    await asyncio.sleep(0.1)
    assert adaptive_state(world.broker.adaptive, [topic]) is None
    Publisher(world, await world.connect(), TOPIC, 400)
    await asyncio.sleep(3)
    calm = adaptive_state(world.broker.adaptive, [topic])
    assert calm is not None
    assert (calm.active, calm.decisions) == (0, [])
    assert calm.effective_messages_per_s == calm.natural_messages_per_s > 0
    assert calm.sentence == "it was never slowed since it was loaded"
    await set_quota(world, 3_000_000, policy="consumer_backlog_eviction")
    spared = adaptive_state(world.broker.adaptive, [topic])
    assert spared is not None
    assert spared.sentence.startswith("it has no backlog quota that stops producers")
    await set_quota(world, 3_000_000)
    await asyncio.sleep(9)
    state = adaptive_state(world.broker.adaptive, [topic])
    assert state is not None
    assert (state.law, state.observe_only, state.active) == ("pressure", False, 1)
    assert 300 < state.natural_messages_per_s < 500
    assert 0 < state.effective_messages_per_s < state.natural_messages_per_s
    assert state.backlog_pressure > 0
    assert len(state.decisions) <= DECISIONS_MAX
    times = [decision.at for decision in state.decisions]
    assert times == sorted(times)
    last = state.decisions[-1]
    assert last.sentence == state.sentence
    assert "slowed" in state.sentence
    assert last.before is not None
    assert last.after is not None
    assert last.after.endswith("B/s")
    assert last.topic == TOPIC
    assert 0 < last.backlog_pressure <= 1
    assert last.memory_pressure == 0


@played(settings=ON)
async def test_of_partitions_all_are_reported(world: World) -> None:
    parts = [f"{TOPIC}-partition-{number}" for number in range(2)]
    plan = world.broker.catalog.plan_create_partitioned(
        parse_topic(TOPIC), 2, now_ms=world.wall_ms()
    )
    await world.broker.writer.commit(plan)
    for part in parts:
        Publisher(world, await world.connect(), part, 20)
    await asyncio.sleep(4)
    topics = [await live(world, part) for part in parts]
    state = adaptive_state(world.broker.adaptive, topics)
    assert state is not None
    assert 30 < state.natural_messages_per_s < 50


def test_it_is_reported_in_words_and_steps() -> None:
    decision = {
        "at": "2026-11-22T06:30:01.000Z", "topic": TOPIC, "kind": "changed", "observeOnly": False,
        "law": "drain", "rule": "target", "before": "60,000 B/s", "after": "52,000 B/s",
        "sentence": "slowed further",
    }  # fmt: skip
    adaptive = {
        "law": "drain", "observeOnly": True, "active": 1, "naturalMessagesPerS": 400.0,
        "effectiveMessagesPerS": 52.0, "memoryPressure": 0.0, "backlogPressure": 0.2,
        "decisions": [{**decision, "kind": "activated", "before": None}, decision],
        "sentence": "would be slowed further to 52,000 B/s: consumers drain 50,000 B/s",
    }  # fmt: skip
    page = explain_text(_report(adaptive), 100, color=False)
    assert "Adaptive throttling (law drain, observe-only): 1 s ago would be slowed further" in page
    assert "06:30:01  slowed further" in page
    assert "Adaptive" not in explain_text(_report(None), 100, color=False)


def _report(adaptive: object) -> dict[str, object]:
    text = """{"topic": "persistent://public/default/orders", "at": "2026-11-22T06:30:02.000Z",
        "partitions": 0, "sentence": "nobody reads it", "storageBytes": 0, "quotas": [],
        "limits": [], "subscriptions": [], "perPartition": null, "damage": null,
        "publishing": {"producers": 1,
        "messagesPerS": 0.0, "bytesPerS": 0.0, "pendingEntries": 0, "parked": [],
        "longestWaiting": [], "limits": [], "delaysIgnored": 0, "delaysRefused": 0,
        "duplicatesDropped": 0,
        "sentence": "nothing holds publishing",
        "lastPublish": null}}"""
    report: dict[str, object] = msgspec.json.decode(text)
    return {**report, "adaptive": adaptive}
