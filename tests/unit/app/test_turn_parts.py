"""Callbacks of the loop are measured where long turns are logged."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import pytest

from headgate.app.turn_parts import measure_callbacks, measured_connection, name_of
from headgate.base.units import NS_PER_MS
from headgate.broker.connection.connection import Connection
from headgate.broker.work.turn_meter import TurnMeter
from headgate.testing.clock import ManualClock


def took_10_ms(clock: ManualClock, into: list[str], *names: str) -> None:
    clock.advance(10 * NS_PER_MS)
    into += names


def test_each_callback_runs_once_with_its_arguments_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, ran = ManualClock(), list[str]()
    meter = TurnMeter(clock)
    meter.measure_cpu(clock.monotonic_ns)
    loop = asyncio.new_event_loop()
    measure_callbacks(loop, meter)
    began_ns = meter.now_ns()
    loop.call_soon(took_10_ms, clock, ran, "a", "b")
    loop.call_soon_threadsafe(partial(took_10_ms, clock), ran, "c")
    loop.call_later(0, took_10_ms, clock, ran, "d")
    loop.call_soon(took_10_ms, clock, ran).cancel()

    async def work() -> None:
        await asyncio.sleep(0)
        took_10_ms(clock, ran, "e")

    loop.run_until_complete(work())
    loop.close()
    assert sorted(ran) == ["a", "b", "c", "d", "e"]
    with caplog.at_level(logging.DEBUG, logger="headgate.turns"):
        meter.ended("all", began_ns)
    assert "30.0 ms in 3 took_10_ms (one of them 10.0 ms), 10.0 ms in " in caplog.text
    assert "task test_each_callback_runs_once" in caplog.text


def test_an_error_of_a_callback_reaches_the_loop() -> None:
    loop = asyncio.new_event_loop()
    found: list[Any] = []
    loop.set_exception_handler(lambda _, context: found.append(context["exception"]))
    measure_callbacks(loop, TurnMeter(ManualClock()))
    loop.call_soon(lambda: 1 / 0)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert [type(error) for error in found] == [ZeroDivisionError]


def test_a_measured_connection_is_one() -> None:
    measured = measured_connection(TurnMeter(ManualClock()))
    assert issubclass(measured, Connection)
    assert measured.buffer_updated is not Connection.buffer_updated
    assert name_of(Connection.close) == "Connection.close"
