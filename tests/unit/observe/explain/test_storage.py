"""What explain says about the disk: the bytes of each log, and the topics that keep them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.work_units import SLICE_UNITS
from headgate.cli.explain.text import explain_text
from headgate.flow.topic_growth import TopicGrowth
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import Retention
from headgate.observe.explain.storage import HOLDER_UNITS
from headgate.testing import World
from tests.unit.broker.playing import played

SEGMENT = 64 * 1024
SMALL = LedgerSettings(segment_bytes=SEGMENT, ledger_entries_max=50, ledger_age_ms_min=0)
FAST, SLOW, KEPT = (f"persistent://public/default/{name}" for name in ("fast", "slow", "kept"))


async def explained(world: World, count: int = 10) -> dict[str, Any]:
    answer: dict[str, Any] = await world.observer.explain_storage(count)
    json.dumps(answer)
    assert all(len(line) <= width for width in (80, 120)
               for line in explain_text(answer, width, color=False).splitlines())  # fmt: skip
    for log in answer["logs"]:
        parts = ("live", "pinned", "dead", "index", "open", "checkpoint")
        assert log["fileBytes"] == sum(log[f"{part}Bytes"] for part in parts)
    return answer


async def fill(world: World) -> None:
    """A fast topic whose messages are acknowledged beside a slow one whose are not."""
    client = await world.connect()
    await client.subscribe(SLOW, "nobody")
    await client.subscribe(FAST, "s")
    fast, slow = await client.producer(FAST), await client.producer(SLOW)
    for _ in range(20):
        for _ in range(50):
            await fast.send(b"x" * 1_000)
        await slow.send(b"y" * 100)
    fast_topic = world.broker.engine.topics[FAST]
    fast_topic.subscriptions["s"].skip_to(fast_topic.log.end)
    await asyncio.sleep(1)
    await world.broker.trimming.trim()
    await asyncio.sleep(5)


@played(ledger=SMALL)
async def test_when_it_last_acknowledged(world: World) -> None:
    await fill(world)
    engine = world.broker.engine
    for ago_ms, said in (
        (0, "acknowledged something just now"),
        (5_000, "last acknowledged 5 s ago"),
    ):
        engine.topics[SLOW].subscriptions["nobody"].last_acked_ms = engine.now_ms - ago_ms
        (slow, *_) = (await explained(world))["topics"]
        assert f", and it {said}" in slow["sentence"]


@played(ledger=SMALL)
async def test_a_slow_topic_pins_what_a_fast_one_left(world: World) -> None:
    await fill(world)
    answer = await explained(world)
    (log,) = (log for log in answer["logs"] if log["log"] == "main")
    assert log["pinnedBytes"] > 3 * SEGMENT
    (slow, *_) = answer["topics"]
    assert (slow["topic"], slow["cause"], slow["subscription"]) == (SLOW, "subscription", "nobody")
    assert slow["heldBytes"] > 20 * 100
    assert sum(topic["pinnedBytes"] for topic in answer["topics"]) <= log["pinnedBytes"]
    assert slow["pinnedBytes"] > 0.8 * log["pinnedBytes"]
    assert slow["freesBytes"] > slow["pinnedBytes"]
    assert (
        "subscription nobody has not acknowledged 20 messages; 1 consumer connected"
        in (slow["sentence"])
    )
    assert log["messageBytesWritten"] > 20 * 50 * 1_000
    assert 1 < log["writeAmplification"] < 1.5
    before = log["fileBytes"]
    await world.broker.registry.delete(parse_topic(SLOW), force=True)
    await asyncio.sleep(5)
    answer = await explained(world)
    (log,) = (log for log in answer["logs"] if log["log"] == "main")
    assert before - log["fileBytes"] >= slow["freesBytes"] - SEGMENT
    assert log["pinnedBytes"] < SEGMENT


@played(ledger=SMALL)
async def test_a_wrong_count_of_topics_is_no_error(world: World) -> None:
    await fill(world)
    for info in world.broker.log._state.segments.values():
        info.live_runs = 0
    assert (await explained(world))["topics"]


@played(ledger=SMALL)
async def test_retention_and_an_open_ledger_are_causes(world: World) -> None:
    broker = world.broker
    client = await world.connect()
    for name in (KEPT, FAST):
        await (await client.producer(name)).send(b"x" * 100)
    policy = Retention(retention_time_in_minutes=120, retention_size_in_mb=-1)
    await broker.writer.commit(
        broker.catalog.plan_topic_policies(parse_topic(KEPT), retention=policy)
    )
    answer = await explained(world)
    said = {topic["topic"]: (topic["cause"], topic["sentence"]) for topic in answer["topics"]}
    assert said[KEPT] == (
        "retention",
        "no subscription needs the messages; the topic's retention keeps acknowledged ones for 2 h",
    )
    assert said[FAST][0] == "ledger"
    assert said[FAST][1].startswith("the topic has no subscription, and no retention applies")
    assert answer["topicsTotal"] == 2
    assert len((await explained(world, 1))["topics"]) == 1


@played()
async def test_what_is_acknowledged_of_a_ledger_waits_for_the_rest_of_it(world: World) -> None:
    client = await world.connect()
    await client.subscribe(FAST, "s")
    producer = await client.producer(FAST)
    for _ in range(10):
        await producer.send(b"x" * 1_000)
    fast = world.broker.engine.topics[FAST].subscriptions["s"]

    async def said() -> str:
        (topic,) = (await explained(world))["topics"]
        assert topic["cause"] == "ledger"
        return str(topic["sentence"])

    fast.skip_to(8)
    whole = "most messages are acknowledged, and no retention applies, but a ledger goes as a whole"
    rest = "once subscription s has acknowledged the rest of it"
    assert await said() == f"{whole}: {rest}; 2 messages wait for it"
    fast.skip_to(9)
    assert await said() == f"{whole}: {rest}; 1 message waits for it"
    fast.skip_to(10)
    assert "no subscription needs the messages" in await said()


@played(ledger=SMALL)
async def test_nothing_is_held(world: World) -> None:
    answer = await explained(world)
    assert answer["topics"] == []
    assert "No topic holds a message." in explain_text(answer, 80, color=False)


@played(ledger=SMALL)
async def test_the_topics_of_a_long_report_are_described_in_pieces(world: World) -> None:
    """A turn describes no more topics than a slice has units for."""
    client = await world.connect()
    for number in range(40):
        topic = f"persistent://public/default/t{number}"
        await client.subscribe(topic, "s")
        await (await client.producer(topic)).send(b"x")
    described = [0]
    reports = world.observer._storage
    holder, begin = reports._holder, world.broker.engine.begin_turn

    def counted(space: Any, unread: str) -> Any:
        described[-1] += 1
        return holder(space, unread)

    def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
        described.append(0)
        begin(now_ns, now_ms, log_ms)

    reports._holder = counted  # type: ignore[method-assign]
    world.broker.engine.begin_turn = begun  # type: ignore[method-assign]
    answer = await explained(world, 100)
    assert len(answer["topics"]) == sum(described) >= 40
    assert max(described) <= SLICE_UNITS // HOLDER_UNITS
    growths = [
        TopicGrowth(one["topic"], number, 1.0, 60.0) for number, one in numbered(world, answer)
    ]
    facts = replace(reports._filling_of(100), topics=growths)
    reports._filling_of = lambda _: facts
    described[:] = [0]
    assert len((await explained(world, 100))["forecast"]["topics"]) == 40
    assert max(described) <= SLICE_UNITS // HOLDER_UNITS


def numbered(world: World, answer: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The topics of an answer that have a subscription, each with its number."""
    for one in answer["topics"]:
        if one["cause"] == "subscription":
            yield world.broker.engine.topics[one["topic"]].log.number, one


@pytest.mark.parametrize("what", ["unreadable", "deleted"])
def test_one_topic_whose_index_is_not_read_keeps_no_other_from_the_report(what: str) -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await fill(world)
        await (await (await world.connect()).producer(KEPT)).send(b"x" * 100)
        index, slow = world.broker.logs.main.index, world.broker.engine.topics[SLOW]
        look_up = index.look_up

        async def looked_up(action: Callable[[], Any]) -> Any:
            if slow.log in (action.func.__self__,):  # type: ignore[attr-defined]
                if what == "unreadable":
                    raise StorageError("reading 3.seg: Input/output error", retryable=True)
                await world.broker.registry.delete(parse_topic(SLOW), force=True)
                return None
            return await look_up(action)

        index.look_up = looked_up  # type: ignore[method-assign]
        answer = await explained(world)
        said = {topic["topic"]: topic for topic in answer["topics"]}
        assert said[KEPT]["cause"] == "ledger"
        if what == "deleted":
            assert SLOW not in said
            return
        assert said[SLOW]["heldBytes"] > 0
        assert said[SLOW]["cause"] == "unknown"
        assert said[SLOW]["sentence"] == (
            "what keeps its messages is not known: reading 3.seg: Input/output error"
        )

    with World(ledger=SMALL) as world:
        world.run(scenario(world))
