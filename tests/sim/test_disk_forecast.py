"""A broker whose disk fills up says when its producers will wait, and only then."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import KIB, MIB
from headgate.flow.disk_forecast import Filling
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import Retention
from headgate.testing import World
from tests.unit.broker.playing import played

LEDGER = LedgerSettings(segment_bytes=256 * KIB, ledger_entries_max=50, ledger_age_ms_min=0)
LEAK, SMALL = (f"persistent://public/default/{name}" for name in ("leak", "small"))
PERIOD_S = 2.0
LEAK_BYTES, SMALL_BYTES = 16_000, 2_000
OTHER_BYTES = 6_000
HOUR_S = 3_600


class OtherProgram:
    """Writes a file on the broker's disk."""

    def __init__(self, world: World) -> None:
        world.fs.make_directory("/other")
        self._file = world.fs.create("/other/file")

    def write(self, size_bytes: int) -> None:
        with contextlib.suppress(OSError):  # the disk is full
            self._file.allocate(self._file.size() + size_bytes)


async def forecast_of(world: World) -> dict[str, Any]:
    world.broker.begin_turn()
    report: dict[str, Any] = (await world.observer.explain_storage(5))["forecast"]
    return report


async def fill(world: World, other_bytes: int) -> None:
    """Publish until SENDs wait, and compare what was said with the instant."""
    client, program, broker = await world.connect(), OtherProgram(world), world.broker
    for name in (LEAK, SMALL):
        await client.subscribe(name, "nobody")
    leak, small = await client.producer(LEAK), await client.producer(SMALL)
    said: list[tuple[float, float]] = []
    while not broker.engine.disk_full_hold.is_full:
        leak.send_nowait(bytes(LEAK_BYTES))
        small.send_nowait(bytes(SMALL_BYTES))
        program.write(other_bytes)
        await asyncio.sleep(PERIOD_S)
        full_in_s = broker.disk.full_in_s()
        if full_in_s is not None and (not said or world.now_s - said[-1][0] >= 60):
            said.append((world.now_s, world.now_s + full_in_s))
            assert [one.topic for one in broker.topic_growth.growths.fastest(2)] == [LEAK, SMALL]
    full_s = world.now_s
    segment_s = LEDGER.segment_bytes * PERIOD_S / (LEAK_BYTES + SMALL_BYTES)
    assert len(said) > 15
    for at_s, instant_s in said:
        assert abs(instant_s - full_s) <= max(0.1 * (full_s - at_s), segment_s)


@played(ledger=LEDGER, capacity_bytes=20 * MIB)
async def test_it_names_the_instant_from_which_sends_wait(world: World) -> None:
    """Within a tenth of the time that is left; near the end within a segment's."""
    await fill(world, other_bytes=0)
    report = await forecast_of(world)
    assert (report["filling"], report["fullInS"]) == ("full", 0)


@played(ledger=LEDGER, capacity_bytes=20 * MIB, telemetry_log=True)
async def test_so_it_does_where_another_program_fills_the_disk_too(world: World) -> None:
    await fill(world, OTHER_BYTES)
    growth = world.broker.disk.forecast().growth
    assert growth is not None
    assert growth.other_per_s == pytest.approx(OTHER_BYTES / PERIOD_S, rel=0.05)


@pytest.mark.parametrize("ack_period_s", [20, 400])
def test_a_disk_that_is_freed_as_fast_as_it_fills_gets_no_forecast(ack_period_s: int) -> None:
    """Under a retention of five minutes, with a consumer that keeps up, or comes now and then."""

    @played(ledger=LEDGER, capacity_bytes=24 * MIB, limit_s=4 * HOUR_S)
    async def story(world: World) -> None:
        client, broker = await world.connect(), world.broker
        await client.subscribe(LEAK, "s")
        leak = await client.producer(LEAK)
        policy = Retention(retention_time_in_minutes=5, retention_size_in_mb=-1)
        await broker.writer.commit(
            broker.catalog.plan_topic_policies(parse_topic(LEAK), retention=policy)
        )
        topic = broker.engine.topics[parse_topic(LEAK).full]
        seen = set()
        for at in range(2 * HOUR_S // 2):
            leak.send_nowait(bytes(LEAK_BYTES))
            await asyncio.sleep(PERIOD_S)
            if at * 2 % ack_period_s == 0:
                topic.subscriptions["s"].skip_to(topic.log.end)
            if at * PERIOD_S > 1_800:  # two rounds of trimming
                seen.add(broker.disk.forecast().filling)
        assert Filling.FILLING not in seen
        assert Filling.STEADY in seen
        assert "was freed again" in (await forecast_of(world))["sentence"]

    story()


@played(ledger=LEDGER, capacity_bytes=40 * MIB)
async def test_when_the_growth_stops_the_instant_moves_away_and_goes(world: World) -> None:
    client, broker = await world.connect(), world.broker
    await client.subscribe(LEAK, "nobody")
    leak = await client.producer(LEAK)
    for _ in range(450):
        leak.send_nowait(bytes(LEAK_BYTES))
        await asyncio.sleep(PERIOD_S)
    growing_s = broker.disk.full_in_s()
    assert growing_s is not None
    await asyncio.sleep(300)
    stopped_s = broker.disk.full_in_s()
    assert stopped_s is not None
    assert stopped_s > 1.5 * growing_s
    await asyncio.sleep(320)
    assert broker.disk.full_in_s() is None
    report = await forecast_of(world)
    assert (report["filling"], report["topics"]) == ("not_filling", [])
    assert "it did not grow in the last 10 min" in report["sentence"]


@played(ledger=LEDGER, capacity_bytes=40 * MIB)
async def test_a_start_measures_anew_and_a_clock_step_changes_nothing(world: World) -> None:
    await (await world.connect()).subscribe(LEAK, "nobody")

    async def publish(seconds: int) -> None:
        leak = await (await world.connect()).producer(LEAK)
        for _ in range(seconds // 2):
            leak.send_nowait(bytes(LEAK_BYTES))
            await asyncio.sleep(PERIOD_S)

    await publish(300)
    before_s = world.broker.disk.full_in_s()
    assert before_s is not None
    world.clock.step_wall(-7 * HOUR_S * 1_000_000_000)
    await publish(60)
    after_s = world.broker.disk.full_in_s()
    assert after_s is not None
    assert after_s == pytest.approx(before_s - 60, rel=0.05)
    await world.stop()
    await world.start()
    await publish(60)
    report = await forecast_of(world)
    assert (report["filling"], report["fullInS"], report["growthBytesPerS"]) == (
        "unknown", None, None,
    )  # fmt: skip
    assert 50 < report["knownInS"] < 90
    await publish(120)
    again_s = world.broker.disk.full_in_s()
    assert again_s == pytest.approx(after_s - 180, rel=0.1)


@played(ledger=LEDGER, capacity_bytes=40 * MIB)
async def test_what_a_backup_holds_is_not_growth_of_topics(world: World) -> None:
    """A consumer keeps up, and only the backup keeps the disk from being freed."""
    client, broker = await world.connect(), world.broker
    await client.subscribe(LEAK, "s")
    leak = await client.producer(LEAK)
    topic = broker.engine.topics[parse_topic(LEAK).full]
    broker.log.files_hold.begin()
    for at in range(600):
        leak.send_nowait(bytes(LEAK_BYTES))
        await asyncio.sleep(PERIOD_S)
        if at % 10 == 9:
            topic.subscriptions["s"].skip_to(topic.log.end)
    report = await forecast_of(world)
    assert report["filling"] == "filling"
    assert report["heldForBackup"]
    assert report["unneededBytesPerS"] > 0.9 * report["growthBytesPerS"]
    assert report["growthBytesPerS"] == pytest.approx(LEAK_BYTES / PERIOD_S, rel=0.1)
    assert "which are freed when the running backup ends" in report["sentence"]
    assert broker.log.files_hold.end() == ""
    await asyncio.sleep(60)
    assert broker.disk.full_in_s() is None
