"""The telemetry has a log of its own: what it keeps pins nothing, what fails there harms nobody."""

from __future__ import annotations

import asyncio
import random

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST
from headgate.base.units import KIB
from headgate.engine.topic import Topic
from headgate.ledger import LedgerSettings
from headgate.storage.managed_logs import TELEMETRY_LOG
from headgate.telemetry.records.publisher import TelemetryPublisher
from headgate.testing import World
from headgate.testing.world import DIRECTORY, TELEMETRY_DIRECTORY
from tests.unit.broker.playing import TOPIC, played
from tests.unit.storage.test_committer import logged

SYSTEM = "persistent://headgate/telemetry/samples"
SEGMENT = 64 * KIB
SETTINGS = {"retentionCheckIntervalInSeconds": "5"}
SMALL = LedgerSettings(segment_bytes=SEGMENT)


def publisher(world: World) -> TelemetryPublisher:
    return TelemetryPublisher(world.broker, entropy=random.Random(1).randbytes)


async def publish_windows(world: World, count: int) -> None:
    made = publisher(world)
    for _ in range(count):
        await asyncio.sleep(1)
        await made.publish_window(world.clock.wall_ns())
    await asyncio.sleep(0.2)
    leave(made)


def leave(made: TelemetryPublisher) -> None:
    """Let the next publisher come."""
    if made._producer is not None:
        producer, topic = made._producer
        topic.remove_producer(producer)


def system_topic(world: World) -> Topic:
    return world.broker.engine.topics[SYSTEM]


def files(world: World, directory: str) -> list[str]:
    return [name for name in world.fs.list_directory(directory) if name.endswith(".log")]


async def received(world: World, count: int) -> list[bytes]:
    """The first messages of the telemetry's topic, as any reader gets them."""
    client = await world.connect()
    reader = await client.reader(SYSTEM, EARLIEST)
    found = [(await reader.receive()).payload for _ in range(count)]
    client.close()
    return found


@played(telemetry_log=True, ledger=SMALL, settings=SETTINGS)
async def test_telemetry_pins_nothing_of_others(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    producer = await client.producer(TOPIC)
    made = publisher(world)
    for _ in range(30):
        await made.publish_window(world.clock.wall_ns())
        for _ in range(10):
            await producer.send(bytes(10_000))
            await consumer.ack((await consumer.receive()).position)
        await asyncio.sleep(1)
    await asyncio.sleep(10)
    assert len(files(world, DIRECTORY)) <= 2
    assert system_topic(world).log.first == 0
    assert world.broker.catalog.topic(SYSTEM).log == TELEMETRY_LOG  # type: ignore[union-attr]
    assert system_topic(world).log.number not in world.broker.log._state.topics


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_it_is_there_after_a_restart(how: str) -> None:
    async def story(world: World) -> None:
        await publish_windows(world, 3)
        client = await world.connect()
        consumer = await client.subscribe(SYSTEM, "s")
        first = await consumer.receive()
        await consumer.ack(first.position)
        await asyncio.sleep(0.2)
        before = await received(world, 3)
        client.close()
        if how == "stop":
            await world.stop()
        else:
            world.crash()
        await world.start()
        assert await received(world, 3) == before
        consumer = await (await world.connect()).subscribe(SYSTEM, "s")
        assert (await consumer.receive()).payload == before[1]
        await publish_windows(world, 1)
        assert system_topic(world).log.end == 4

    played(telemetry_log=True, ledger=SMALL)(story)()


@played(telemetry_log=True, ledger=SMALL)
async def test_deleting_it_leaves_its_log_empty(world: World) -> None:
    await publish_windows(world, 3)
    number = system_topic(world).log.number
    await world.broker.registry.delete(parse_topic(SYSTEM), force=True)
    telemetry = world.broker.logs.telemetry
    assert telemetry is not None
    assert telemetry.log.statistics().topics == 0
    assert world.broker.logs.numbered(number) is world.broker.logs.main


@played(telemetry_log=True, ledger=SMALL)
async def test_a_commit_of_it_that_fails_is_nobody_elses(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await publish_windows(world, 1)
    telemetry_lane = world.lanes[5]
    telemetry_lane.fail_next(StorageError("no room", retryable=True))
    world.lanes[0].freeze()
    sending = asyncio.ensure_future(producer.send(b"mine"))
    made = publisher(world)
    with logged() as lines:
        await made.publish_window(world.clock.wall_ns())
        await asyncio.sleep(0.5)
    assert lines == ["storing in the telemetry log fails: no room"]
    assert not sending.done()
    world.lanes[0].thaw()
    await sending
    assert telemetry_lane.jobs_count > 1


@played(telemetry_log=True, ledger=SMALL)
async def test_users_do_not_wait_for_its_commits(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await publish_windows(world, 1)
    world.lanes[5].freeze()
    window = asyncio.ensure_future(publisher(world).publish_window(world.clock.wall_ns()))
    await asyncio.sleep(0.1)
    await asyncio.wait_for(producer.send(b"x"), 1)
    world.lanes[5].thaw()
    await window


@played(telemetry_log=True, ledger=SMALL)
async def test_on_a_full_disk_it_takes_nothing_that_becomes_free(world: World) -> None:
    telemetry = world.broker.logs.telemetry
    assert telemetry is not None
    await publish_windows(world, 1)
    world.broker.log._health.disk_full()
    world.fs.capacity_bytes = world.fs.used_bytes()
    telemetry.log.yield_space(is_needed=True)
    before = files(world, TELEMETRY_DIRECTORY)
    world.fs.capacity_bytes += SEGMENT
    for _ in range(5):
        telemetry.maintenance.run()
        await asyncio.sleep(0.01)
    assert telemetry.log.full
    assert files(world, TELEMETRY_DIRECTORY) == before
    await asyncio.sleep(5)
    assert not world.broker.log.full
    assert not telemetry.log.full
    await publish_windows(world, 1)
    assert system_topic(world).log.end == 2
