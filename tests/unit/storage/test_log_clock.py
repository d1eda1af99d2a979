"""Steps of the wall clock in a whole broker: ages do not see them (law 4.5)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtTime, OlderThan
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.ledger import LedgerSettings
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.policies import BacklogQuota, Retention
from headgate.observe.stats.fields import StatsOptions
from headgate.storage.log_clock import LINES_MAX, receive_time_bound
from headgate.testing import SimProducer, World
from tests.unit.broker.playing import TOPIC
from tests.unit.broker.playing import played as played_for

HOUR_S = 3_600
YEARS_S = 10 * 365 * 24 * HOUR_S
NAME = parse_topic(TOPIC)


played = partial(played_for, limit_s=24 * HOUR_S)


def step(world: World, seconds: float) -> None:
    world.clock.step_wall(round(seconds * NS_PER_S))


async def prepared(world: World, *bodies: bytes) -> SimProducer:
    """A producer, and a subscription that owes ``bodies``."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    client.close()
    assert consumer is not None
    producer = await (await world.connect()).producer(TOPIC)
    for body in bodies:
        await producer.send(body)
    return producer


async def age_s(world: World) -> float:
    stats = await AdminFacade(world.broker, world.observer).topic_stats(NAME, StatsOptions())
    return stats.oldest_backlog_message_age_seconds


async def restarted(
    world: World, *, down_s: float = 1, step_s: float = 0, cut: bool = False
) -> None:
    if cut:
        world.crash()
    else:
        await world.stop()
    await asyncio.sleep(down_s)
    step(world, step_s)
    await world.start()


def forget_mark(world: World) -> None:
    """As a release leaves its metadata that keeps no mark."""
    rows = world.store.load()
    rows.pop(("log_time", "mark"), None)
    world.store = MemoryStore(rows)


async def time_quota(world: World, seconds: int) -> None:
    quota = BacklogQuota(QuotaPolicy.EVICTION.value, limit_time=seconds)
    plan = world.broker.catalog.plan_topic_policies(NAME, backlog_quotas={"message_age": quota})
    await world.broker.writer.commit(plan)


def evicted(world: World) -> int:
    return sum(messages for _, messages, _ in world.broker.engine.quotas.evicted)


def backlog(world: World) -> int:
    return world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_messages


def told(caplog: Any) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "headgate.clock"]


def test_a_step_evicts_nothing_and_a_quota_goes_on() -> None:
    for step_s in (HOUR_S, YEARS_S, -HOUR_S, -YEARS_S):

        @played()
        async def story(world: World, step_s: int = step_s) -> None:
            producer = await prepared(world, b"old")
            await time_quota(world, 600)
            await asyncio.sleep(300)
            await producer.send(b"young")
            step(world, step_s)
            await asyncio.sleep(290)
            assert (evicted(world), backlog(world), await age_s(world)) == (0, 2, 590)
            await asyncio.sleep(11)
            assert (evicted(world), backlog(world)) == (1, 1)
            await asyncio.sleep(300)
            assert (evicted(world), backlog(world)) == (2, 0)

        story()


@played()
async def test_what_grew_old_while_the_machine_slept_goes_at_once(world: World) -> None:
    """Timers do not count that time."""
    await prepared(world, b"old")
    await time_quota(world, 600)
    await asyncio.sleep(100)
    world.clock.sleep(499 * NS_PER_S)
    await asyncio.sleep(0.5)
    assert (evicted(world), backlog(world)) == (0, 1)
    await asyncio.sleep(2)
    assert (evicted(world), backlog(world)) == (1, 0)


@played()
async def test_a_message_from_a_clock_that_was_ten_years_ahead_holds_nothing(world: World) -> None:
    producer = await prepared(world, b"1")
    step(world, YEARS_S)
    await asyncio.sleep(2)
    await producer.send(b"2")
    step(world, -YEARS_S)
    await asyncio.sleep(10)
    await producer.send(b"3")
    await asyncio.sleep(8)
    assert await age_s(world) == 20
    facade = AdminFacade(world.broker, world.observer)
    assert await facade.expire_messages(NAME, "s", OlderThan(19))
    assert backlog(world) == 2
    assert await facade.expire_messages(NAME, "s", OlderThan(9))
    assert backlog(world) == 1
    assert await age_s(world) == 8


@played(ledger=LedgerSettings(ledger_entries_max=1, ledger_age_ms_min=0))
async def test_retention_by_time_goes_on(world: World) -> None:
    producer = await prepared(world)
    plan = world.broker.catalog.plan_topic_policies(NAME, retention=Retention(2, -1))
    await world.broker.writer.commit(plan)
    await AdminFacade(world.broker, world.observer).delete_subscription(NAME, "s", force=True)
    step(world, YEARS_S)
    await asyncio.sleep(2)
    for _ in range(3):
        await producer.send(b"x")
    step(world, -YEARS_S)
    log = world.broker.engine.topics[TOPIC].log
    await asyncio.sleep(100)
    await world.broker.trimming.trim()
    assert log.first == 0
    await asyncio.sleep(60)
    await world.broker.trimming.trim()
    await asyncio.sleep(1)
    assert log.first == 3


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("step_s", [HOUR_S, YEARS_S])
def test_a_whole_run_with_a_clock_that_was_ahead(step_s: int, cut: bool) -> None:
    @played()
    async def story(world: World) -> None:
        await prepared(world, b"1")
        await asyncio.sleep(5)
        await restarted(world, step_s=step_s)
        producer = await (await world.connect()).producer(TOPIC)
        await producer.send(b"2")
        await asyncio.sleep(4)
        assert await age_s(world) == 10, "the broker was down for a second"
        await restarted(world, step_s=-step_s, cut=cut)
        await asyncio.sleep(3)
        # After a power cut the wall clock alone could say how long the machine was off.
        assert await age_s(world) in ((13, 14) if cut else (14,))
        await restarted(world)
        assert await age_s(world) in ((14, 15) if cut else (15,))
        producer = await (await world.connect()).producer(TOPIC)
        await producer.send(b"3")
        await asyncio.sleep(2)
        facade = AdminFacade(world.broker, world.observer)
        await facade.expire_messages(NAME, "s", OlderThan(8))
        assert backlog(world) == 1
        assert await age_s(world) == 2

    story()


@pytest.mark.parametrize("cut", [False, True])
def test_time_in_which_the_broker_was_down_is_age(cut: bool) -> None:
    @played()
    async def story(world: World) -> None:
        await prepared(world, b"1")
        await asyncio.sleep(3)
        await restarted(world, down_s=2 * HOUR_S, cut=cut)
        assert await age_s(world) == 2 * HOUR_S + 3

    story()


def test_a_log_of_an_earlier_release_is_taken_over_once(caplog: Any) -> None:
    caplog.set_level("INFO")

    @played()
    async def story(world: World) -> None:
        step(world, YEARS_S)
        await world.stop()
        forget_mark(world)
        caplog.clear()
        await world.start()
        assert told(caplog) == [], "nothing was stored"
        await prepared(world, b"ahead")
        await world.stop()
        forget_mark(world)
        step(world, -YEARS_S)
        caplog.clear()
        await world.start()
        lines = told(caplog)
        assert len(lines) == 2
        assert "begins at 2025-" in lines[0]
        assert lines[1].startswith("1 topics have messages with receive times in the future")
        assert await age_s(world) == 0
        producer = await (await world.connect()).producer(TOPIC)
        for passed_s in (100, 200, 300):
            caplog.clear()
            await asyncio.sleep(99)
            await restarted(world)
            assert told(caplog) == []
            assert await age_s(world) == passed_s, "and does not begin anew"
        producer = await (await world.connect()).producer(TOPIC)
        await producer.send(b"new")
        await asyncio.sleep(5)
        await AdminFacade(world.broker, world.observer).expire_messages(NAME, "s", OlderThan(50))
        assert (backlog(world), await age_s(world)) == (1, 5)

    story()


def test_each_step_is_one_line_up_to_a_bound(caplog: Any) -> None:
    caplog.set_level("INFO")

    @played()
    async def story(world: World) -> None:
        await asyncio.sleep(2)
        for step_s, words in (
            (0.3, "forward by 300 ms"),
            (-0.3, "back by 300 ms"),
            (60, "forward by 60 s"),
            (HOUR_S, "forward by 60 min"),
            (-YEARS_S, "back by 3,650 days"),
        ):
            caplog.clear()
            step(world, step_s)
            await asyncio.sleep(5)
            (line,) = told(caplog)
            assert line.startswith(f"the wall clock was set {words}: messages keep their ages")
        caplog.clear()
        for _ in range(100):
            step(world, 1)
            await asyncio.sleep(2)
        assert len(told(caplog)) == LINES_MAX - 5
        await asyncio.sleep(HOUR_S)
        caplog.clear()
        step(world, 1)
        await asyncio.sleep(2)
        assert told(caplog)[0] == "the wall clock was set 85 more times"
        assert len(told(caplog)) == 2

    story()


@pytest.mark.parametrize(
    ("step_s", "cut", "words"),
    [
        (HOUR_S, False, "while the broker was down, the wall clock was set forward by 60 min: mes"),
        (-HOUR_S, False, "while the broker was down, the wall clock was set back by 60 min: mes"),
        (HOUR_S, True, "the machine was rebooted; messages aged by 61 min since 2025-"),
        (-HOUR_S, True, "the wall clock is 59 min behind the time of the log: "),
        (0, False, ""),
        (0, True, "the machine was rebooted; messages aged by 61 s since 2025-"),
    ],
)
def test_what_a_start_says(step_s: int, cut: bool, words: str, caplog: Any) -> None:
    caplog.set_level("INFO")

    @played()
    async def story(world: World) -> None:
        await prepared(world, b"x")
        await asyncio.sleep(2)
        caplog.clear()
        await restarted(world, down_s=60, step_s=step_s, cut=cut)
        lines = told(caplog)
        assert len(lines) == (1 if words else 0)
        assert all(line.startswith(words) for line in lines), lines

    story()


@played()
async def test_seeks_by_time_follow_the_wall_clock(world: World) -> None:
    producer = await prepared(world, b"1")
    step(world, HOUR_S)
    await asyncio.sleep(60)
    second_ms = world.wall_ms()
    await producer.send(b"2")
    await asyncio.sleep(60)
    third_ms = world.wall_ms()
    await producer.send(b"3")
    topic, at = world.broker.engine.topics[TOPIC], world.broker.ordinal_at_time
    places = (second_ms - MS_PER_S, second_ms, third_ms, third_ms + 1)
    assert [at(topic, ms) for ms in places] == [1, 1, 2, 3]
    facade = AdminFacade(world.broker, world.observer)
    await facade.reset_cursor(NAME, "s", AtTime(third_ms))
    assert backlog(world) == 1
    await restarted(world)
    topic, at = world.broker.engine.topics[TOPIC], world.broker.ordinal_at_time
    assert [at(topic, ms) for ms in places] == [1, 1, 2, 3]


def test_a_mark_that_cannot_be_written_is_reported_once_and_written_later(caplog: Any) -> None:
    @played()
    async def story(world: World) -> None:
        world.store.fail_next(StorageError("the metadata's disk is full", retryable=True))
        await asyncio.sleep(30)
        assert [line for line in told(caplog) if "fails" in line] == [
            "storing the time of the log fails: the metadata's disk is full"
        ]
        assert world.broker.catalog.log_time() is not None

    story()


@played()
async def test_a_mark_is_kept_each_hour_and_at_the_end(world: World) -> None:
    await asyncio.sleep(2)
    first = world.broker.catalog.log_time()
    assert first is not None
    await asyncio.sleep(HOUR_S - 10)
    assert world.broker.catalog.log_time() == first
    await asyncio.sleep(10)
    second = world.broker.catalog.log_time()
    assert second is not None
    assert second.wall_ns - first.wall_ns >= HOUR_S * NS_PER_S
    assert receive_time_bound(world.broker.catalog, world.clock) == (1, first.bound_received_ms)
    await asyncio.sleep(60)
    await restarted(world)
    third = world.broker.catalog.log_time()
    assert third is not None
    assert third.wall_ns - second.wall_ns >= 59 * NS_PER_S


@played()
async def test_held_producers_go_on_by_time_that_passes(world: World) -> None:
    """A step while SENDs wait for an age quota neither frees nor ends them."""
    producer = await prepared(world, b"1")
    quota = BacklogQuota(QuotaPolicy.HOLD.value, limit_time=10)
    plan = world.broker.catalog.plan_topic_policies(NAME, backlog_quotas={"message_age": quota})
    await world.broker.writer.commit(plan)
    await asyncio.sleep(11)
    held = producer.send_nowait(b"2")
    for step_s in (HOUR_S, -YEARS_S):
        step(world, step_s)
        await asyncio.sleep(3)
        assert not held.done()
    assert await AdminFacade(world.broker, world.observer).expire_messages(NAME, "s", OlderThan(5))
    await asyncio.sleep(1)
    assert held.done()
