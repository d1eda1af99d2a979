"""Rewriting in a broker: paced, beside reads, off by a setting, none after the end."""

from __future__ import annotations

import asyncio
import dataclasses

from headgate.fs import Operation
from headgate.ledger import Job, LedgerSettings
from headgate.ledger.space.maintenance import REST_S
from headgate.ledger.space.rewriting import Pace
from headgate.storage.log_rewriting import PAUSE_S_MAX
from headgate.testing import SimConsumer, World
from tests.unit.broker.playing import played
from tests.unit.ledger.support import check_space

LEDGER = LedgerSettings(segment_bytes=65_536, checkpoint_bytes=131_072, hole_bytes_min=65_536)
FAST = "persistent://public/default/fast"
SLOW = "persistent://public/default/slow"
ROUNDS = 100


async def publish(world: World) -> SimConsumer:
    """A fast topic that is released at once, and a slow one that a subscription keeps."""
    client = await world.connect()
    consumer = await client.subscribe(SLOW, "s")
    fast, slow = await client.producer(FAST), await client.producer(SLOW)
    for at in range(ROUNDS):
        for _ in range(5):
            await fast.send(bytes(2_000))
        await slow.send(b"slow %d " % at * 100)
    log, topic = world.broker.log, world.broker.engine.topics[FAST].log
    log.stage_trim(topic, topic.end)
    world.broker.logs.main.committer.commit_if_idle()
    return consumer


@played(ledger=LEDGER)
async def test_segments_that_little_pins_are_rewritten(world: World) -> None:
    await publish(world)
    await asyncio.sleep(60)
    log = world.broker.log
    assert log.statistics().segments_rewritten > 5
    use = log.space_use()
    assert use.file_bytes < 1.5 * use.live_bytes + 4 * LEDGER.segment_bytes
    assert not world.broker.logs.internal_errors()
    check_space(log)


@played(ledger=LEDGER, settings={"headgateRewriteBytesPerSecond": "10000"})
async def test_the_rate_is_bounded(world: World) -> None:
    await publish(world)
    log = world.broker.log
    before_bytes, most_bytes = 0, 0
    for _ in range(100):
        await asyncio.sleep(1)
        now_bytes = log.written_bytes().rewritten
        most_bytes = max(most_bytes, now_bytes - before_bytes)
        before_bytes = now_bytes
    assert before_bytes > 50_000
    assert most_bytes < 65_536  # one job, and then a pause of its length


def paused_s(world: World) -> list[float]:
    """What jobs pause from now on, in a lane that lets time pass."""
    found: list[float] = []

    def pause(seconds: float) -> bool:
        found.append(seconds)
        return True

    world.broker.lanes.upkeep.pause = pause  # type: ignore[method-assign]
    return found


@played(ledger=LEDGER)
async def test_a_job_makes_short_pauses_itself(world: World) -> None:
    """So the event loop is woken for one piece in sixteen."""
    await publish(world)
    pauses = paused_s(world)
    await asyncio.sleep(60)
    log = world.broker.log
    assert log.statistics().segments_rewritten > 5
    moved_bytes = log.written_bytes().rewritten
    rate = world.broker.settings.headgateRewriteBytesPerSecond
    paced_s = sum(pause_s for pause_s in pauses if pause_s != REST_S)
    assert 0.5 * moved_bytes <= paced_s * rate <= moved_bytes
    assert REST_S in pauses  # after what moves nothing
    check_space(log)


@played(ledger=LEDGER, settings={"headgateRewriteBytesPerSecond": "10000"})
async def test_long_pauses_are_between_the_jobs(world: World) -> None:
    await publish(world)
    pauses = paused_s(world)
    await asyncio.sleep(100)
    assert world.broker.log.written_bytes().rewritten > 50_000
    assert max(pauses, default=0.0) <= PAUSE_S_MAX


@played(ledger=LEDGER, settings={"headgateRewriteBytesPerSecond": "0"})
async def test_a_rate_of_zero_turns_it_off(world: World) -> None:
    await publish(world)
    await asyncio.sleep(60)
    assert world.broker.log.statistics().segments_rewritten == 0


@played(ledger=LEDGER)
async def test_a_backlog_is_read_while_its_segments_are_rewritten(world: World) -> None:
    consumer = await publish(world)
    world.broker.engine.cache.size_bytes_max = 4_096
    for at in range(ROUNDS):
        consumer.flow(1)
        found = await consumer.receive()
        assert found.payload == b"slow %d " % at * 100
        await asyncio.sleep(0.2)
    assert world.broker.log.statistics().segments_rewritten > 5
    assert not world.broker.engine.topics[SLOW].subscriptions["s"].read_failed


def refuse_new_files(operation: Operation) -> None:
    if operation.kind == "create" and operation.path.endswith(".log.tmp"):
        raise OSError(5, "input/output error")


@played(ledger=LEDGER)
async def test_a_job_that_fails_leaves_the_segments_for_a_later_try(world: World) -> None:
    world.disk.plan = refuse_new_files
    await publish(world)
    await asyncio.sleep(60)
    log = world.broker.log
    assert log.statistics().segments_rewritten == 0
    check_space(log)
    world.disk.plan = lambda _operation: None
    await asyncio.sleep(700)
    assert log.statistics().segments_rewritten > 5


@played(ledger=LEDGER)
async def test_no_job_begins_after_the_end(world: World) -> None:
    await publish(world)
    world.broker.logs.main.rewriting.stop()
    await asyncio.sleep(60)
    assert world.broker.log.statistics().segments_rewritten == 0


def fail_one_job(world: World, *, is_last: bool = False) -> None:
    """The next job of the rewriting fails with an error that nobody expects; after the last one
    nothing is left to rewrite."""
    log = world.broker.log
    step = log.rewriting_step

    def failing_step(pace: Pace) -> Job | None:
        job = step(pace)
        if job is None:
            return None

        def run() -> None:
            if is_last:
                log.rewriting_due = lambda: False  # type: ignore[method-assign]
            raise KeyError("unexpected")

        log.rewriting_step = step  # type: ignore[method-assign]
        return dataclasses.replace(job, run=run)

    log.rewriting_step = failing_step  # type: ignore[method-assign]


@played(ledger=LEDGER)
async def test_an_internal_error_is_reported_until_a_segment_is_rewritten(world: World) -> None:
    world._watch.close()
    fail_one_job(world)
    await publish(world)
    await asyncio.sleep(60)
    log, logs = world.broker.log, world.broker.logs
    assert log.segments_rewritten > 0  # others than those that failed
    assert logs.internal_errors() == []


@played(ledger=LEDGER)
async def test_an_internal_error_is_reported_until_nothing_is_left_to_rewrite(
    world: World,
) -> None:
    world._watch.close()
    fail_one_job(world, is_last=True)
    await publish(world)
    await asyncio.sleep(60)
    assert "KeyError" in world.broker.logs.internal_errors()[0]
    await asyncio.sleep(600)
    assert world.broker.logs.internal_errors() == []
