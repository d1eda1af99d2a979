"""Memory that no topic is seen to take, in a whole broker (law 5.3)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headgate.control.adaptive import DecisionRecord
from headgate.flow.adaptive.cycle import DecisionKind, MemoryRule, Rule
from headgate.flow.sentences.adaptive import decision_sentence
from headgate.observe.states.adaptive import adaptive_state
from headgate.testing import World
from tests.unit.broker.adaptive_play import (
    ON,
    FakeMemory,
    Publisher,
    change_setting,
    controller,
    live,
)
from tests.unit.broker.playing import TOPIC, played

OBSERVE_ONLY = "adaptivePublisherThrottlingObserveOnly"
TOPICS = (f"{TOPIC}-a", f"{TOPIC}-b")
IDLE = f"{TOPIC}-idle"
MEMORY = FakeMemory()


async def filled(world: World, used: int = 950) -> list[Publisher]:
    """Two topics publish a little, one did; then something else fills the memory."""
    MEMORY.used = 100
    idle = Publisher(world, await world.connect(), IDLE, 20)
    found = [Publisher(world, await world.connect(), name, 20) for name in TOPICS]
    await asyncio.sleep(10)
    idle.stop()
    await asyncio.sleep(2)
    MEMORY.used = used
    return found


async def decisions(world: World, name: str) -> list[DecisionRecord]:
    return controller(world).decisions(await live(world, name))


@played(settings=ON, memory=MEMORY)
async def test_all_who_publish_are_slowed_and_let_go_without_effect(world: World) -> None:
    await filled(world)
    await asyncio.sleep(3.5)
    assert controller(world).active_count == 0
    await asyncio.sleep(10)
    for name in TOPICS:
        topic = await live(world, name)
        assert topic.publishing.adaptive_limit is not None
        assert topic.publishing.adaptive_limit.messages == 2  # the floor: a tenth
        state = adaptive_state(world.broker.adaptive, [topic])
        assert state is not None
        assert "no single topic uses it up" in state.sentence
        assert state.decisions[-1].memory_rule == "everybody"
    assert not await decisions(world, IDLE)
    assert controller(world).active_count == 2
    await asyncio.sleep(65)
    assert controller(world).active_count == 0
    assert controller(world).status.memory_pressure == 1.0
    for name in TOPICS:
        last = (await decisions(world, name))[-1].decision
        assert (last.kind, last.rule) == (DecisionKind.DEACTIVATED, Rule.CLEAR)
        assert last.inputs.memory_rule is MemoryRule.NO_EFFECT
        assert "did not bring memory down" in decision_sentence(last)
    await asyncio.sleep(60)
    assert controller(world).active_count == 0


@played(settings=ON, memory=MEMORY)
async def test_where_memory_comes_down_they_are_slowed_until_it_is_clear(world: World) -> None:
    await filled(world)
    for used in range(950, 860, -10):
        MEMORY.used = used
        await asyncio.sleep(20)
        assert controller(world).active_count == 2
    MEMORY.used = 800
    await asyncio.sleep(100)
    assert controller(world).active_count == 2
    MEMORY.used = 100
    await asyncio.sleep(12)
    assert controller(world).active_count == 0
    last = (await decisions(world, TOPICS[0]))[-1].decision
    assert decision_sentence(last) == "no longer slowed: no limit is needed any more"


@pytest.mark.parametrize("observes", [False, True], ids=["live", "observe-only"])
def test_the_log_says_when_it_begins_and_when_it_is_given_up(
    caplog: pytest.LogCaptureFixture, observes: bool
) -> None:
    caplog.set_level(logging.INFO, "headgate.adaptive")

    async def story(world: World) -> None:
        await world.start()
        await filled(world)
        await asyncio.sleep(100)
        if observes:
            assert controller(world).active_count == 0
            await change_setting(world, OBSERVE_ONLY, "false")
            await asyncio.sleep(70)

    settings = {**ON, OBSERVE_ONLY: "true"} if observes else ON
    with World(7, settings=settings, memory=MEMORY) as world:
        world.run(story(world))
    lines = [line for line in caplog.messages if "memoryUsed=" in line]
    begun, given_up = lines
    used = "memoryUsed=0 MiB memoryLimit=0 MiB: "
    if observes:
        assert begun == (
            f"[AdaptiveThrottle] OBSERVE-ONLY would-slow-everybody {used}memory has been at full"
            " pressure for 3 cycles and no topic stands out as the cause, so all topics that"
            " publish would be slowed"
        )
        assert (
            caplog.messages.index(given_up)
            > [number for number, line in enumerate(caplog.messages) if "mode=live" in line][-1]
        )
    else:
        assert begun.startswith(f"[AdaptiveThrottle] EVERYBODY {used}memory has been at full")
        assert begun.endswith("all topics that publish are slowed")
    assert given_up == (
        f"[AdaptiveThrottle] NO-EFFECT {used}slowing all topics for 60 s did not bring memory"
        " down, so they are released until the pressure has ended once; look for what else fills"
        " the memory"
    )
