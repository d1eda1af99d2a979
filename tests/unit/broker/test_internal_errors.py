"""Unexpected errors, raised in every job of a lane and in every sweep.

The broker retries each and reports it meanwhile, or ends the process. None leaves something idle in
a broker that says it is well.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from headgate.base.errors import InvariantError, StorageError
from headgate.base.units import KIB
from headgate.broker.service import Broker
from headgate.facade.admin_facade import AdminFacade
from headgate.ledger import Job, LedgerSettings
from headgate.metadata.errors import RefusalError
from headgate.storage import entry_reader
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

SMALL = LedgerSettings(
    segment_bytes=64 * KIB, ledger_entries_max=10, ledger_age_ms_min=0, checkpoint_records=200
)
UNEXPECTED = KeyError("nobody expected this")


class Failing:
    """Stands for a function: fails ``times`` times, then does what it does."""

    def __init__(self, function: Callable[..., Any], times: int = 3) -> None:
        self.function, self.times, self.calls = function, times, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls <= self.times:
            raise UNEXPECTED
        return self.function(*arguments)


async def health(world: World) -> str:
    """What the broker says of itself: ``ok``, or what is wrong."""
    try:
        await AdminFacade(world.broker, world.observer).check_health()
    except RefusalError as refusal:
        return f"{refusal.status} {refusal.reason}"
    return "ok"


def forgiving(world: World) -> None:
    """Let internal errors be logged without ending the story."""
    world._watch.close()


def failing_jobs(world: World, name: str, times: int = 3) -> list[str]:
    """Have the first jobs of a name fail; names of all jobs that were run from now on."""
    log, ran, left = world.broker.log, list[str](), [times]
    step = log.maintenance_step

    def failing_step(**options: Any) -> Job | None:
        job = step(**options)
        if job is None:
            return None
        if job.name != name or not left[0]:
            ran.append(job.name)
            return job

        def run() -> None:
            raise UNEXPECTED

        left[0] -= 1
        return dataclasses.replace(job, run=run)

    log.maintenance_step = failing_step  # type: ignore[method-assign]
    return ran


async def publish_and_acknowledge(world: World, count: int) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", queue_size=2 * count)
    await asyncio.gather(*[producer.send_nowait(b"x" * 1_000) for _ in range(count)])
    for _ in range(count):
        await consumer.ack((await consumer.receive()).position)
    client.close()


@pytest.mark.parametrize("name", ["prepare", "seal", "checkpoint", "delete"])
def test_a_job_of_the_log_is_tried_again(name: str, caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []

    async def story(world: World) -> None:
        forgiving(world)
        ran = failing_jobs(world, name)
        for _ in range(12):
            await publish_and_acknowledge(world, 40)
            await asyncio.sleep(0.7)
            said.append(await health(world))
        await asyncio.sleep(20)
        await publish_and_acknowledge(world, 400)
        await asyncio.sleep(200)
        assert name in ran
        assert await health(world) == "ok"
        assert len(world.broker.log._state.segments) < 6  # type: ignore[attr-defined]

    with caplog.at_level(logging.WARNING):
        played(
            ledger=SMALL,
            settings={"retentionCheckIntervalInSeconds": "1", "headgateTelemetryEnabled": "false"},
        )(story)()
    if name != "prepare":  # without a segment nothing was stored meanwhile, nor asked
        assert any(
            f"maintenance of the log ({name}) fails: internal error" in text for text in said
        )
    lines = [
        r for r in caplog.records if "maintenance of the log" in r.message and "fails" in r.message
    ]
    assert len(lines) == 1
    assert lines[0].exc_info is not None
    assert f"maintenance of the log ({name}) works again, after 3 failures" in caplog.text


def test_a_broken_step_of_the_log_ends_the_process() -> None:
    async def story(world: World) -> None:
        forgiving(world)
        world.broker.log.maintenance_step = Failing(lambda: None)  # type: ignore[method-assign]
        await asyncio.sleep(5)

    with pytest.raises(InvariantError, match="a step of the log's maintenance"):
        played()(story)()


def test_a_broken_end_of_a_job_ends_the_process() -> None:
    async def story(world: World) -> None:
        forgiving(world)
        world.broker.log.finish_job = Failing(lambda: None)  # type: ignore[method-assign]
        await publish_and_acknowledge(world, 100)
        await asyncio.sleep(5)

    with pytest.raises(InvariantError, match="the end of a job of the log"):
        played(ledger=SMALL)(story)()


def test_a_broken_invariant_in_a_job_ends_the_process() -> None:
    async def story(world: World) -> None:
        forgiving(world)

        def work() -> None:
            raise InvariantError("two owners")

        job = Job("seal", 1, work, lambda: None)
        maintenance = world.broker.logs.main.maintenance
        maintenance._job_running = True
        world.broker.lanes.commit.submit(job.run, partial(maintenance._job_done, job))
        await asyncio.sleep(5)

    with pytest.raises(InvariantError, match="two owners"):
        played()(story)()


# -- sweeps --------------------------------------------------------------------------------------


class WorldOfFailingSweeps(World):
    """Each sweep fails three times, then goes on."""

    failing: dict[str, Failing]

    def built(self, broker: Broker) -> None:
        self.failing = {}
        for sweep in broker.sweeps.jobs:
            sweep.run = self.failing[sweep.name] = Failing(sweep.run)


def test_sweeps_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: WorldOfFailingSweeps) -> None:
        await world.start()
        forgiving(world)
        await asyncio.sleep(2.5)
        assert (await health(world)).count("internal error, KeyError") >= 5
        await asyncio.sleep(4 * 3_600 + 100)  # two sweeps look each hour
        for failing in world.failing.values():
            assert failing.calls > 3
        assert await health(world) == "ok"
        await publish_and_acknowledge(world, 5)

    settings = {"brokerDeduplicationProducerInactivityTimeoutMinutes": "180"}
    with (
        caplog.at_level(logging.WARNING),
        WorldOfFailingSweeps(7, settings=settings) as world,
    ):
        world.run(story(world))
    told = [record for record in caplog.records if "fails: internal error" in record.message]
    assert len(told) == len(world.failing) == 16
    assert all(record.exc_info for record in told)


def test_a_sweep_that_is_cancelled_from_within_ends_the_process() -> None:
    async def story(world: World) -> None:
        forgiving(world)
        task = world.broker.sweeps._tasks[0]
        task.cancel()
        await asyncio.sleep(1)

    with pytest.raises(InvariantError, match="a sweep was cancelled"):
        played()(story)()


# -- reads ---------------------------------------------------------------------------------------


async def backlog(world: World, count: int = 30) -> None:
    """Messages that are on the disk only."""
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    producer = await client.producer(TOPIC)
    await asyncio.gather(*[producer.send_nowait(b"%d" % index) for index in range(count)])
    client.close()
    await asyncio.sleep(0.1)
    await world.stop()
    await world.start()
    forgiving(world)


async def receive_all(world: World, count: int = 30) -> list[bytes]:
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    return [(await consumer.receive()).payload for _ in range(count)]


@played()
async def test_a_fetch_is_tried_again(world: World) -> None:
    await backlog(world)
    failing = Failing(world.broker.log.fetch)
    world.broker.log.fetch = failing
    received = asyncio.ensure_future(receive_all(world))
    await asyncio.sleep(1.5)
    held = world.broker.engine.topics[TOPIC].subscriptions["s"]
    assert held.read_failed == "internal error, KeyError('nobody expected this')"
    assert await received == [b"%d" % index for index in range(30)]
    assert failing.calls == 4
    assert held.read_failed == ""
    assert world.broker.reader.is_idle()


def test_what_was_read_is_taken_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before the error is delivered at once, the rest when it works."""
    entries_of, calls = entry_reader.entries_of, [0]

    def failing(*arguments: Any) -> Any:
        calls[0] += 1
        for index, entry in enumerate(entries_of(*arguments)):
            if index == 10 and calls[0] <= 2:
                raise UNEXPECTED
            yield entry

    monkeypatch.setattr(entry_reader, "entries_of", failing)

    @played()
    async def story(world: World) -> None:
        await backlog(world)
        assert await receive_all(world) == [b"%d" % index for index in range(30)]
        assert calls[0] == 3
        assert world.broker.reader.is_idle()

    story()


def test_a_broken_hand_over_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        await backlog(world)
        world.broker.reader._serve = Failing(lambda: None)  # type: ignore[method-assign]
        await receive_all(world)

    with pytest.raises(InvariantError, match="dispatching entries that were read"):
        played()(story)()


# -- commits, metadata, turns ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("write_batch", "a commit"),
        ("complete", "a commit"),
        ("seal_batch", "the beginning of a commit"),
    ],
)
def test_a_commit_that_breaks_ends_the_process(name: str, what: str) -> None:
    """Nobody knows what is on the disk, and who waits for it would wait for ever."""

    async def story(world: World) -> None:
        client = await world.connect()
        producer = await client.producer(TOPIC)
        forgiving(world)
        setattr(world.broker.log, name, Failing(getattr(world.broker.log, name)))
        await producer.send(b"x")

    with pytest.raises(InvariantError, match=f"{what} failed with an internal error: KeyError"):
        played()(story)()


def test_a_stored_change_that_cannot_be_applied_ends_the_process() -> None:
    async def story(world: World) -> None:
        forgiving(world)
        world.broker.catalog.apply = Failing(lambda: None)  # type: ignore[method-assign]
        await (await world.connect()).producer(TOPIC)

    with pytest.raises(InvariantError, match="a stored change of metadata"):
        played()(story)()


@pytest.mark.parametrize("error", [UNEXPECTED, StorageError("as planned", retryable=True)])
def test_a_turn_that_breaks_ends_the_process(error: Exception) -> None:
    def flush() -> bool:
        raise error

    async def story(world: World) -> None:
        forgiving(world)
        world.broker.engine.flush = flush  # type: ignore[method-assign]
        await (await world.connect()).producer(TOPIC)

    with pytest.raises(InvariantError, match="a turn failed"):
        played()(story)()


@played()
async def test_what_ends_a_turn_of_one_holds_back_no_other(world: World) -> None:
    client = await world.connect()
    forgiving(world)
    world.broker.on_flush.append(Failing(lambda: None))
    assert await client.partitions(TOPIC) == 0


def test_a_broken_invariant_at_the_end_of_a_turn_ends_the_process() -> None:
    def broken() -> None:
        raise InvariantError("as planned")

    async def story(world: World) -> None:
        forgiving(world)
        client = await world.connect()
        world.broker.on_flush.append(broken)
        await client.partitions(TOPIC)

    with pytest.raises(InvariantError, match="as planned"):
        played()(story)()
