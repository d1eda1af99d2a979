"""Telemetry that an earlier release stored in the main log moves to its own, once and whole."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from headgate.fs import FaultyFs, Operation
from headgate.storage.managed_logs import TELEMETRY_LOG
from headgate.testing import World
from headgate.testing.world import TELEMETRY_DIRECTORY
from tests.unit.broker.playing import played
from tests.unit.storage.test_managed_logs import (
    SMALL,
    SYSTEM,
    files,
    publish_windows,
    received,
    system_topic,
)


class CutError(Exception):
    """The power is gone."""


async def older(world: World, windows: int = 5) -> list[bytes]:
    """Telemetry in the main log, with a subscription that is half through; stopped."""
    await publish_windows(world, windows)
    client = await world.connect()
    consumer = await client.subscribe(SYSTEM, "s")
    for _ in range(2):
        await consumer.ack((await consumer.receive()).position)
    await asyncio.sleep(0.2)
    client.close()
    found = await received(world, windows)
    await world.stop()
    world.has_telemetry_log = True
    return found


async def check(world: World, wanted: list[bytes]) -> None:
    assert await received(world, len(wanted)) == wanted
    client = await world.connect()
    consumer = await client.subscribe(SYSTEM, "s")
    assert (await consumer.receive()).payload == wanted[2]
    client.close()
    await asyncio.sleep(0.1)


def is_moved(world: World) -> bool:
    row = world.broker.catalog.topic(SYSTEM)
    return row is not None and row.log == TELEMETRY_LOG


def test_it_is_moved_once_and_a_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story(world: World) -> None:
        wanted = await older(world)
        for _ in range(2):
            await world.start()
            await check(world, wanted)
            assert is_moved(world)
            await world.stop()
        await world.start()
        await publish_windows(world, 1)
        assert system_topic(world).log.end == 6

    played(ledger=SMALL)(story)()
    lines = [r.getMessage() for r in caplog.records if "a separate log" in r.getMessage()]
    assert lines == [
        f"{SYSTEM} has a separate log from now on, telemetry-log: 5 entries were moved there"
    ]


@pytest.mark.parametrize("operations", range(0, 40, 3))
def test_a_crash_on_the_way_loses_nothing(operations: int) -> None:
    async def story(world: World) -> None:
        wanted = await older(world)
        left = operations

        def plan(operation: Operation) -> None:
            nonlocal left
            if operation.path.startswith(TELEMETRY_DIRECTORY):
                left -= 1
                if left < 0:
                    raise CutError

        world.disk.plan = plan
        with contextlib.suppress(CutError):
            await world.start()
        world.crash()
        await world.start()
        await check(world, wanted)
        assert is_moved(world)
        world.crash()
        await world.start()
        await check(world, wanted)

    played(ledger=SMALL)(story)()


def test_without_room_it_stays_where_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        wanted = await older(world)
        world.fs.make_directory("/others")
        world.fs.create("/others/file").allocate(300_000)
        world.fs.capacity_bytes = world.fs.used_bytes() + 12_000 + 2 * SMALL.segment_bytes
        await world.start()
        await check(world, wanted)
        assert not is_moved(world)
        assert "stays in the main log until the next start" in caplog.text
        world.fs.capacity_bytes = None
        await asyncio.sleep(5)
        await world.stop()
        assert isinstance(world.disk, FaultyFs)
        await world.start()
        await check(world, wanted)
        assert is_moved(world)
        assert len(files(world, TELEMETRY_DIRECTORY)) <= 3

    played(ledger=SMALL)(story)()


@played(telemetry_log=True, ledger=SMALL)
async def test_a_new_directory_has_nothing_to_move(world: World) -> None:
    await publish_windows(world, 1)
    assert is_moved(world)
