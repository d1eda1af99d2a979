"""Exports at every interval, their end, and a collector that fails or hangs."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from headgate.base.errors import InvariantError
from headgate.telemetry.otel.export import STOP_S, MetricExport
from headgate.telemetry.otel.measurements import Batch
from headgate.testing import SimLane, World
from tests.unit.telemetry.support import publish

INCOMING = "pulsar.broker.topic.message.incoming.count"


class Collector:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.refusal = ""
        self.is_closed = False

    def export(self, batch: Batch) -> str:
        assert not self.is_closed
        self.batches.append(batch)
        return self.refusal

    def close(self) -> None:
        self.is_closed = True


def made(world: World, interval_ms: int = 10_000) -> tuple[MetricExport, Collector, SimLane]:
    collector, lane = Collector(), SimLane(world.loop, random.Random(1))
    return MetricExport(world.broker, collector, lane, interval_ms=interval_ms), collector, lane


def test_exports_come_at_every_interval_and_once_at_the_end() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        export, collector, _ = made(world)
        export.start()
        await asyncio.sleep(9)
        assert not collector.batches
        await asyncio.sleep(27)
        assert len(collector.batches) == 3
        await publish(world, 5)
        await export.stop()
        assert collector.is_closed
        (last,) = collector.batches[3:]
        assert [each.value for each in last.by_name[INCOMING]] == [5]
        await asyncio.sleep(60)
        await export.stop()
        assert len(collector.batches) == 4

    with World() as world:
        world.run(scenario(world))


def test_a_refusal_is_reported_once_and_the_next_export_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "headgate.telemetry")

    async def scenario(world: World) -> None:
        await world.start()
        export, collector, _ = made(world)
        collector.refusal = "code: 503"
        export.start()
        await asyncio.sleep(45)
        assert len(collector.batches) == 4
        collector.refusal = ""
        await asyncio.sleep(20)
        collector.refusal = "code: 401"
        await asyncio.sleep(10)
        before = len(collector.batches)
        await export.stop()
        assert len(collector.batches) == before  # nobody takes it: a stop does not try
        assert collector.is_closed

    with World() as world:
        world.run(scenario(world))
    assert [record.getMessage() for record in caplog.records] == [
        "the export of metrics fails and is retried every 10 s: code: 503",
        "metrics are exported again",
        "the export of metrics fails and is retried every 10 s: code: 401",
    ]


def test_a_collector_that_hangs_delays_exports_and_a_stop_not_for_long() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        export, collector, lane = made(world)
        export.start()
        lane.freeze()
        await asyncio.sleep(35)
        assert not collector.batches
        lane.thaw()
        await asyncio.sleep(1)
        assert len(collector.batches) == 2  # one that is late, and no other of those missed
        lane.freeze()
        await asyncio.sleep(30)
        begun_s = world.now_s
        await export.stop()
        assert world.now_s - begun_s == pytest.approx(STOP_S, abs=0.1)
        assert collector.is_closed

    with World() as world:
        world.run(scenario(world))


def test_an_error_of_ours_ends_one_export_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        await world.start()
        export, collector, _ = made(world)
        export.start()
        with monkeypatch.context() as broken:
            broken.setattr(Batch, "take", None)
            await asyncio.sleep(15)
        assert not collector.batches
        await asyncio.sleep(10)
        assert len(collector.batches) == 1
        await export.stop()

    caplog.set_level(logging.CRITICAL, "headgate.telemetry")
    with World() as world:
        world.run(scenario(world))


def test_a_broken_invariant_goes_on_to_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(*_: object) -> None:
        raise InvariantError("two owners")

    async def scenario(world: World) -> None:
        await world.start()
        export, _, _ = made(world)
        export.start()
        monkeypatch.setattr(Batch, "take", take)
        await asyncio.sleep(15)

    with World() as world, pytest.raises(InvariantError, match="two owners"):
        world.run(scenario(world))


def test_without_a_start_a_stop_does_nothing() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        export, collector, _ = made(world)
        await export.stop()
        assert not collector.is_closed

    with World() as world:
        world.run(scenario(world))
