"""Turns that hold the loop long are noted with the name of their work."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.broker.work.turn_meter import OPEN_TURNS_MAX, WINDOW_S, TurnMeter
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop


def note(meter: TurnMeter, clock: ManualClock, name: str, took_ms: float) -> None:
    began_ns = meter.now_ns()
    clock.advance(int(took_ms * NS_PER_MS))
    meter.ended(name, began_ns)


def test_the_longest_turn_of_the_last_minute_has_a_name() -> None:
    clock = ManualClock()
    meter = TurnMeter(clock)
    assert meter.longest() == (0, "")
    for name, took_ms in (("a", 0.9), ("b", 3), ("c", 12), ("d", 5)):
        note(meter, clock, name, took_ms)
    assert meter.longest() == (12 * NS_PER_MS, "c")
    clock.advance((WINDOW_S - 1) * NS_PER_S)
    note(meter, clock, "e", 2)
    assert meter.longest() == (12 * NS_PER_MS, "c")
    clock.advance(2 * NS_PER_S)
    assert meter.longest() == (2 * NS_PER_MS, "e")


def test_long_turns_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    meter = TurnMeter(clock)
    with caplog.at_level(logging.DEBUG, logger="headgate.turns"):
        note(meter, clock, "a sweep", 25)
        note(meter, clock, "a walk", 30)
    assert meter.long_count == 1
    assert [record.message for record in caplog.records] == [
        "the loop was held for 30.0 ms by a walk"
    ]


def test_the_cpu_time_of_long_turns_is_logged_where_it_is_measured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, cpu = ManualClock(), ManualClock()
    meter = TurnMeter(clock)
    meter.measure_cpu(cpu.monotonic_ns)
    with caplog.at_level(logging.DEBUG, logger="headgate.turns"):
        outer_ns = meter.now_ns()
        clock.advance(10 * NS_PER_MS)
        cpu.advance(10 * NS_PER_MS)
        inner_ns = meter.now_ns()
        clock.advance(40 * NS_PER_MS)
        cpu.advance(15 * NS_PER_MS)
        meter.ended("the inner", inner_ns)
        meter.ended("the outer", outer_ns)
        for _ in range(3 * OPEN_TURNS_MAX):
            clock.advance(1)
            meter.now_ns()
        meter.ended("unknown", outer_ns)
    assert [record.message.partition("for ")[2] for record in caplog.records] == [
        "40.0 ms (15.0 ms of CPU) by the inner",
        "50.0 ms (25.0 ms of CPU) by the outer",
        "50.0 ms by unknown",
    ]
    assert len(meter._began_cpu_ns) <= OPEN_TURNS_MAX + 1


def test_a_long_turn_names_the_callbacks_that_took_most_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, cpu = ManualClock(), ManualClock()
    meter = TurnMeter(clock)
    meter.measure_cpu(cpu.monotonic_ns)

    def part(name: str, took_ms: int) -> None:
        began = meter.part_begins()
        clock.advance(2 * took_ms * NS_PER_MS)
        cpu.advance(took_ms * NS_PER_MS)
        meter.part_ended(name, began)

    with caplog.at_level(logging.DEBUG, logger="headgate.turns"):
        part("before", 100)
        began_ns = meter.now_ns()
        for took_ms in (3, 20, 4):
            part("a sweep" if took_ms == 20 else "a read", took_ms)
        meter.ended("one iteration", began_ns)
    assert [record.message.partition("for ")[2] for record in caplog.records] == [
        "54.0 ms (27.0 ms of CPU) by one iteration; 20.0 ms in 1 a sweep, "
        "7.0 ms in 2 a read (one of them 4.0 ms)"
    ]


def test_each_turn_of_a_coroutine_is_measured_and_the_time_between_is_not() -> None:
    loop = SimLoop()
    clock = loop.clock
    meter = TurnMeter(clock)

    async def work() -> str:
        clock.advance(4 * NS_PER_MS)
        await asyncio.sleep(1)
        clock.advance(7 * NS_PER_MS)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 1)
        return "done"

    async def measured() -> str:
        return await meter.measured("work", work())

    assert loop.run_until_complete(measured()) == "done"
    assert meter.longest() == (7 * NS_PER_MS, "work")
    loop.close()


def test_a_cancelled_coroutine_sees_its_cancellation() -> None:
    loop = SimLoop()
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def scenario() -> None:
        async def measured() -> None:
            await TurnMeter(loop.clock).measured("work", work())

        task = loop.create_task(measured())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    loop.run_until_complete(scenario())
    assert seen == ["cancelled"]
    loop.close()


def test_a_slice_of_long_work_is_measured_by_the_name_of_its_job() -> None:
    loop = SimLoop()
    meter = TurnMeter(loop.clock)
    scheduler = WorkScheduler(loop, lambda: None, meter)

    def steps() -> Steps:
        loop.clock.advance(3 * NS_PER_MS)
        yield 64

    loop.run_until_complete(scheduler.run("walking", JobClass.UPKEEP, steps()))
    assert meter.longest() == (3 * NS_PER_MS, "walking")
    loop.close()
