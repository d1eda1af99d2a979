"""How long commits take, on a disk in virtual time: 200 ms, 3 s, and one that hangs."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


def set_latency(world: World, milliseconds: int) -> None:
    lane = world.lanes[0]
    lane.latency_ns_min = lane.latency_ns_max = milliseconds * NS_PER_MS


async def send_for(world: World, seconds: float) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    end_s = world.now_s + seconds
    while world.now_s < end_s:
        await producer.send(b"x")


@played()
async def test_a_quick_disk_is_not_worth_a_word(world: World) -> None:
    await send_for(world, 5)
    latency = world.broker.committer.latency
    assert not latency.facts().is_slow
    assert latency.facts().commits > 1_000
    assert world.observer.storage_state().sentence == ""
    assert await AdminFacade(world.broker, world.observer).check_health() == ""
    assert latency.sum_ns < latency.count * 4 * NS_PER_MS


@pytest.mark.parametrize("milliseconds", [200, 3_000])
def test_a_slow_disk_is_named_in_explain_and_health(milliseconds: int) -> None:
    async def story(world: World) -> None:
        await world.start()
        set_latency(world, milliseconds)
        await send_for(world, 20)
        latency = world.broker.committer.latency.facts()
        assert latency.mean_s == pytest.approx(milliseconds / 1_000, rel=0.1)
        state = world.observer.storage_state()
        named = "200 ms" if milliseconds == 200 else "3.0 s"
        assert state.sentence.startswith(f"the disk is slow: a commit takes {named} (the mean of ")
        assert state.disk_slow
        assert state.commit_mean_s == latency.mean_s
        facade = AdminFacade(world.broker, world.observer)
        assert (await facade.check_health()).startswith("the disk is slow: ")

    with World() as world:
        world.run(story(world))


@played()
async def test_a_disk_that_hangs_is_named_while_it_does(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"x")
    await asyncio.sleep(15)
    world.lanes[0].freeze()
    waiting = producer.send_nowait(b"x")
    await asyncio.sleep(12)
    world.broker.begin_turn()
    state = world.observer.storage_state()
    assert state.sentence == (
        "the disk is slow: one has run for 12 s now, and no receipt is sent before it ends"
    )
    assert state.commit_mean_s is None
    assert 11.9 < state.commit_running_s < 12.1
    world.lanes[0].thaw()
    await waiting
    assert world.broker.committer.latency.running_ns() == 0
    assert world.broker.committer.latency.facts().longest_s > 12


def test_a_beginning_and_an_end_are_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        await world.start()
        set_latency(world, 300)
        await send_for(world, 60)
        set_latency(world, 1)
        await send_for(world, 30)

    with caplog.at_level("WARNING", "headgate.disk"), World() as world:
        world.run(story(world))
    begun, ended = caplog.messages
    assert begun.startswith("the disk is slow: a commit takes ")
    assert ended.startswith("the disk is fast enough again: a commit takes less than 0.1 s; it was")


@played()
async def test_only_the_last_seconds_count(world: World) -> None:
    set_latency(world, 500)
    await send_for(world, 10)
    set_latency(world, 2)
    await send_for(world, 12)
    facts = world.broker.committer.latency.facts()
    assert facts.longest_s < 0.1
    await asyncio.sleep(30)
    world.broker.begin_turn()
    assert world.broker.committer.latency.facts().commits == 0
    assert world.broker.committer.latency.sum_ns > 8 * NS_PER_S
