"""When the log has no room: told once, counted, and parked exactly while it lasts."""

from __future__ import annotations

import asyncio
import errno

import pytest

from headgate.base.units import NS_PER_S
from headgate.fs import Operation
from headgate.ledger import LedgerSettings
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

SEGMENT_BYTES = 16 * 1024
LEDGER = LedgerSettings(segment_bytes=SEGMENT_BYTES)


def full(operation: Operation) -> None:
    if operation.kind in ("create", "allocate"):
        raise OSError(errno.ENOSPC, "no space left")


async def fill(world: World) -> list[asyncio.Future[object]]:
    """Send until something waits for room."""
    producer = await (await world.connect()).producer(TOPIC)
    world.disk.plan = full
    sent: list[asyncio.Future[object]] = []
    while not world.broker.engine.disk_full_hold.is_full:
        sent.append(producer.send_nowait(b"x" * 1_000))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
    sent.append(producer.send_nowait(b"waits"))  # type: ignore[arg-type]
    return sent


@played(ledger=LEDGER)
async def test_seconds_are_counted_while_it_lasts(world: World) -> None:
    disk, engine = world.broker.disk, world.broker.engine
    assert disk.facts().full_s is None
    sent = await fill(world)
    await asyncio.sleep(5)
    world.broker.begin_turn()
    full_s = disk.facts().full_s
    assert full_s is not None
    assert 4.9 < full_s < 5.5
    assert disk.full_ns(engine.now_ns) == round(full_s * NS_PER_S)
    world.disk.plan = lambda _: None
    await asyncio.gather(*sent)
    spent_ns = disk.full_ns(engine.now_ns)
    assert 5 * NS_PER_S < spent_ns < 7 * NS_PER_S
    await asyncio.sleep(5)
    world.broker.begin_turn()
    assert (disk.facts().full_s, disk.full_ns(engine.now_ns)) == (None, spent_ns)


@played(ledger=LEDGER, capacity_bytes=1_000_000)
async def test_room_is_asked_for_every_five_seconds(world: World) -> None:
    await asyncio.sleep(8)
    space = world.broker.disk.space
    assert space is not None
    assert space == (1_000_000 - world.fs.used_bytes(), 1_000_000)
    world.fs.capacity_bytes = 2_000_000
    await asyncio.sleep(6)
    facts = world.broker.disk.facts()
    assert (facts.size_bytes, facts.segment_bytes) == (2_000_000, SEGMENT_BYTES)


def test_a_beginning_and_an_end_are_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        await world.start()
        await fill(world)
        for _ in range(10):  # room for a moment, again and again, is one trouble
            world.disk.plan = lambda _: None
            await asyncio.sleep(2)
            await fill(world)
        assert len(caplog.messages) == 1
        world.disk.plan = lambda _: None
        await asyncio.sleep(20)

    with caplog.at_level("WARNING", "headgate.disk"), World(ledger=LEDGER) as world:
        world.run(story(world))
    begun, ended = caplog.messages
    assert begun.startswith("the disk is full: producers wait for room, consumers continue")
    assert begun.endswith("failed: [Errno 28] no space left)")
    assert ended.startswith("the disk has room again: producers waited for ")
    assert " of 2" in ended


def test_a_start_on_a_full_disk_is_reported_without_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(world: World) -> None:
        await world.start()
        producer = await (await world.connect()).producer(TOPIC)
        await producer.send(b"stored")
        await (await world.connect()).subscribe(TOPIC, "s")
        await world.stop()
        world.disk.plan = full
        await world.start()
        await asyncio.sleep(2)
        consumer = await (await world.connect()).subscribe(TOPIC, "s")
        assert (await consumer.receive()).payload == b"stored"
        world.disk.plan = lambda _: None
        await (await (await world.connect()).producer(TOPIC)).send(b"room")

    with caplog.at_level("WARNING", "headgate.disk"), World(ledger=LEDGER) as world:
        world.run(story(world))
    assert any(
        line.startswith("the disk is full: ")
        and line.endswith(f"(no segment of {SEGMENT_BYTES:,} bytes can be created)")
        for line in caplog.messages
    )


@played(ledger=LEDGER)
async def test_the_reserve_is_kept_while_there_is_room(world: World) -> None:
    kept: list[float] = []

    class Reserve:
        kept_bytes = 700

        def keep(self) -> None:
            kept.append(world.now_s)

    world.broker.disk.reserve = Reserve()
    await asyncio.sleep(12)
    assert len(kept) >= 2
    await asyncio.sleep(8)
    other_bytes = world.broker.disk.growth.samples[-1].other_bytes
    files_bytes = world.broker.log.space_use().file_bytes
    assert other_bytes == world.fs.used_bytes() - files_bytes - 700
    await fill(world)
    kept.clear()
    await asyncio.sleep(20)
    assert not kept


@played()
async def test_an_internal_error_is_shown_in_health_until_it_is_over(world: World) -> None:
    world._watch.close()
    monitor = world.broker.disk
    await asyncio.sleep(6)
    world.lanes[2].fail_next(KeyError("forgotten"), 99)
    await asyncio.sleep(6)
    assert monitor.internal_errors() == [
        "asking for the free space fails: internal error, KeyError: 'forgotten'"
    ]
    assert monitor.internal_errors()[0] in world.broker.internal_errors()
    world.lanes[2]._failures.clear()
    await asyncio.sleep(6)
    assert monitor.internal_errors() == []
    assert monitor.space is not None


def test_a_disk_that_is_nearly_full_is_a_line_once(caplog: pytest.LogCaptureFixture) -> None:
    @played(ledger=LEDGER, capacity_bytes=1_000_000)
    async def story(world: World) -> None:
        used = world.fs.used_bytes()
        for free, lines in ((200_000, 0), (20_000, 1), (25_000, 1), (20_000, 1), (500_000, 1)):
            world.fs.capacity_bytes = used + free
            await asyncio.sleep(6)
            assert len(near()) == lines
            facts = world.broker.disk.facts()
            assert (facts.low_s is None) is (free >= 200_000)
            assert not facts.is_low or "`headgate explain --storage` shows" in near()[-1]
        world.fs.capacity_bytes = used + SEGMENT_BYTES - 1
        await asyncio.sleep(6)
        assert len(near()) == 2

    def near() -> list[str]:
        lines = [one.message for one in caplog.records if one.name == "headgate.disk"]
        return [line for line in lines if line.startswith("the disk is nearly full: ")]

    story()
