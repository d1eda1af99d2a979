"""When adaptive publish throttling began and ended to slow a topic is a change of the topic."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from headgate.base.names import parse_topic
from headgate.explain.change_log import TOPIC_MAX
from headgate.explain.changes import RELEASED, SLOWED
from headgate.flow.adaptive.cycle import DecisionKind
from headgate.testing import World
from tests.unit.broker.adaptive_play import ON, Publisher, Reader, live, set_quota
from tests.unit.broker.playing import TOPIC, played

OBSERVED = {**ON, "adaptivePublisherThrottlingObserveOnly": "true"}


async def slow(world: World) -> None:
    """A quota that is filled so fast that the controller slows the producers."""
    await set_quota(world, 3_000_000)
    Reader(await world.connect(), TOPIC, 50)
    Publisher(world, await world.connect(), TOPIC, 400)
    await asyncio.sleep(12)


async def changes(world: World) -> list[tuple[str, str]]:
    report: Any = await world.observer.explain_topic(parse_topic(TOPIC), timelines=True)
    found = report["changes"]["changes"]
    return [
        (each["kind"], each["sentence"]) for each in found if each["kind"] in (SLOWED, RELEASED)
    ]


@played(settings=ON)
async def test_begin_and_end_are_changes_and_the_steps_between_are_not(world: World) -> None:
    await slow(world)
    ((kind, begun),) = await changes(world)
    assert kind == SLOWED
    assert begun.startswith("adaptive throttling: producers are slowed to ")
    assert len(world.broker.adaptive.decisions(await live(world))) > 1
    await set_quota(world, 3_000_000, policy="consumer_backlog_eviction")
    await asyncio.sleep(30)
    (_, (kind, ended)) = await changes(world)
    assert kind == RELEASED
    assert ended.startswith("adaptive throttling: producers are no longer slowed: ")


@played(settings=OBSERVED)
async def test_what_it_would_have_done_changed_nothing(world: World) -> None:
    await slow(world)
    assert world.broker.adaptive.decisions(await live(world))
    assert await changes(world) == []


@played(settings=ON)
async def test_the_history_of_a_topic_is_bounded(world: World) -> None:
    await slow(world)
    kept = world.observer.changes.adaptive
    topic = await live(world)
    (last, *_) = world.broker.adaptive.decisions(topic)
    begun = replace(last.decision, kind=DecisionKind.ACTIVATED)
    for number in range(2 * TOPIC_MAX):
        kept.decided(topic, begun, world.wall_ms() + number)
    assert len(kept.log) == TOPIC_MAX
