"""The disk on /metrics."""

from __future__ import annotations

import asyncio
import errno

from headgate.fs import Operation
from headgate.ledger import LedgerSettings
from headgate.testing import World
from tests.unit.telemetry.support import NAME, Sample, read_page, rendered, value_of


async def samples_of(world: World) -> list[Sample]:
    return read_page(await rendered(world.broker))[1]


def full(operation: Operation) -> None:
    if operation.kind in ("create", "allocate"):
        raise OSError(errno.ENOSPC, "no space left")


def test_room_and_the_time_without() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await asyncio.sleep(8)
        samples = await samples_of(world)
        assert value_of(samples, "headgate_disk_size_bytes") == 1_000_000
        free_bytes = value_of(samples, "headgate_disk_free_bytes")
        assert free_bytes == 1_000_000 - world.fs.used_bytes()
        assert value_of(samples, "headgate_disk_full") == 0
        assert value_of(samples, "headgate_disk_full_seconds_total") == 0
        producer = await (await world.connect()).producer(NAME)
        world.disk.plan = full
        for _ in range(50):
            producer.send_nowait(b"x" * 1_000)
            await asyncio.sleep(0.01)
        await asyncio.sleep(10)
        samples = await samples_of(world)
        assert value_of(samples, "headgate_disk_full") == 1
        assert value_of(samples, "headgate_disk_full_in_seconds") == 0
        assert 9.5 < value_of(samples, "headgate_disk_full_seconds_total") < 11
        parked = value_of(
            samples, "headgate_publish_parked_messages", topic=NAME, cause="disk_full"
        )
        assert parked > 0

    with World(ledger=LedgerSettings(segment_bytes=16 * 1024), capacity_bytes=1_000_000) as world:
        world.run(scenario(world))


def test_the_forecast_and_the_growth_by_part() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        client = await world.connect()
        await client.subscribe(NAME, "nobody")
        producer = await client.producer(NAME)
        await asyncio.sleep(20)
        names = {sample.name for sample in await samples_of(world)}
        assert not names & {
            "headgate_disk_full_in_seconds",
            "headgate_disk_growth_bytes_per_second",
        }
        for _ in range(150):
            producer.send_nowait(b"x" * 1_000)
            await asyncio.sleep(1)
        samples = await samples_of(world)
        name = "headgate_disk_growth_bytes_per_second"
        parts = [
            value_of(samples, name, content=content)
            for content in ("retained", "unneeded", "other")
        ]
        assert 900 < parts[0] < 1_150
        assert sum(parts) == sum(sample.value for sample in samples if sample.name == name)
        full_in_s = value_of(samples, "headgate_disk_full_in_seconds")
        room = 1_000_000 - 150 * 1_090 - 2 * 16 * 1024
        assert 0.85 * room < full_in_s * sum(parts) < 1.1 * room

    with World(ledger=LedgerSettings(segment_bytes=16 * 1024), capacity_bytes=1_000_000) as world:
        world.run(scenario(world))


def test_the_parts_of_the_log_add_up_to_its_files() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        producer = await (await world.connect()).producer(NAME)
        for _ in range(40):
            await producer.send(b"x" * 1_000)
        await asyncio.sleep(3)
        samples = await samples_of(world)
        states = ("live", "pinned", "dead", "index", "open", "checkpoint")
        parts = [
            value_of(samples, "headgate_storage_bytes", log="main", state=state) for state in states
        ]
        assert parts[0] > 40 * 1_000
        assert value_of(samples, "headgate_storage_segments", log="main") >= 4
        beside = 8_192 + 1_000  # the reserve of the metadata, and small files
        assert sum(parts) <= world.fs.used_bytes() <= sum(parts) + beside

    with World(ledger=LedgerSettings(segment_bytes=16 * 1024), capacity_bytes=1_000_000) as world:
        world.run(scenario(world))


def test_commits_and_refused_connections() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        producer = await (await world.connect()).producer(NAME)
        lane = world.lanes[0]
        before = await samples_of(world)
        lane.latency_ns_min = lane.latency_ns_max = 200_000_000
        for _ in range(10):
            await producer.send(b"x")
        world.broker.connection_admission.refused_count = 7
        lane.freeze()
        producer.send_nowait(b"x")
        await asyncio.sleep(4)
        samples = await samples_of(world)
        name = "headgate_commits_total"
        assert value_of(samples, name) - value_of(before, name) >= 10
        seconds = value_of(samples, "headgate_commit_seconds_total")
        assert 2 <= seconds <= 3
        assert value_of(samples, "headgate_commit_longest_seconds") >= 0.2
        assert 3.9 < value_of(samples, "headgate_commit_running_seconds") < 4.5
        assert value_of(samples, "headgate_connections_refused_total") == 7
        lane.thaw()

    with World() as world:
        world.run(scenario(world))
