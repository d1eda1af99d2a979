"""Closing a log while its last jobs are running."""

from __future__ import annotations

import asyncio

from headgate.base.ack_set import AckSet
from headgate.ledger import LedgerSettings
from headgate.ledger.format.records import KIND_ACKS
from headgate.ledger.write.deferred_controls import Control
from headgate.storage.closing import close_log
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

SMALL = LedgerSettings(segment_bytes=16_384)


async def with_a_job_waiting(world: World) -> int:
    """Let a job wait on the upkeep lane. Its end stages an acknowledgement that a full disk
    deferred: one of the cursor with the returned id."""
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"x" * 4000)
    log = world.broker.log
    ack_set = AckSet()
    number = world.broker.engine.topics[TOPIC].log.number
    cursor_id = log.create_cursor(number, "s", ack_set, {})
    await asyncio.sleep(3)
    world.lanes[3].freeze()
    for _ in range(5):
        await producer.send(b"x" * 4000)
    await asyncio.sleep(1)
    assert world.broker.logs.main.maintenance._job_running
    ack_set.ack(0)
    log._controls.defer([Control(KIND_ACKS, cursor_id)])
    return cursor_id


@played(ledger=SMALL)
async def test_the_end_of_the_last_job_begins_no_commit(world: World) -> None:
    await with_a_job_waiting(world)
    broker = world.broker
    broker.stop_sweeps()
    broker.committer.stop()
    commits, upkeep, removal = world.lanes[0], world.lanes[3], world.lanes[4]
    closing = asyncio.ensure_future(
        close_log(broker.log, removal=removal, upkeep=upkeep, commits=commits)
    )
    await asyncio.sleep(0.5)
    assert not closing.done()
    upkeep.thaw()
    await closing
    assert broker.log.staged_records == 0


@played(ledger=SMALL)
async def test_a_commit_that_the_last_job_began_ends_before_the_log_is_closed(
    world: World,
) -> None:
    await with_a_job_waiting(world)
    broker = world.broker
    broker.stop_sweeps()
    commits, upkeep, removal = world.lanes[0], world.lanes[3], world.lanes[4]
    closing = asyncio.ensure_future(
        close_log(broker.log, removal=removal, upkeep=upkeep, commits=commits)
    )
    await asyncio.sleep(0.5)
    upkeep.thaw()
    await closing
    assert not broker.committer.in_flight


@played(ledger=SMALL)
async def test_a_stopping_broker_stores_what_its_last_job_staged(world: World) -> None:
    cursor_id = await with_a_job_waiting(world)
    world.loop.call_later(1, world.lanes[3].thaw)
    await world.stop()
    broker = await world.start()
    (cursor,) = (c for c in broker.log.cursors() if c.cursor_id == cursor_id)
    assert cursor.ack_set.is_acked(0)
    assert broker.log.statistics().replayed_records == 0
