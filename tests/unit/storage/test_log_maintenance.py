"""One log's maintenance: a slice a turn, one job at a time, and none after the end."""

from __future__ import annotations

import asyncio

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.ledger import Job, LedgerSettings
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

SMALL = LedgerSettings(segment_bytes=16_384)


async def publish(world: World, count: int) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(count):
        await producer.send(bytes(4_000))


@played(ledger=SMALL)
async def test_segments_are_sealed_as_they_fill(world: World) -> None:
    await publish(world, 20)
    await asyncio.sleep(2)
    statistics = world.broker.log.statistics()
    assert statistics.segments - statistics.segments_sealed <= 1
    assert not world.broker.logs.main.maintenance.internal_errors()


@played(ledger=SMALL)
async def test_a_job_that_fails_is_done_again(world: World) -> None:
    maintenance = world.broker.logs.main.maintenance
    world.broker.log._staging.roll()
    await publish(world, 1)
    world.broker.log._staging.roll()
    world.lanes[3].fail_next(StorageError("hiccup", retryable=True))
    maintenance.run()
    await asyncio.sleep(3)
    statistics = world.broker.log.statistics()
    assert statistics.segments - statistics.segments_sealed <= 1


@played(ledger=LedgerSettings(segment_bytes=16_384, slice_items=1))
async def test_each_slice_of_a_checkpoint_has_its_own_turn(world: World) -> None:
    log = world.broker.log
    for at in range(30):
        log.create_cursor(0, f"s{at}", AckSet(), {})
    await asyncio.sleep(2.5)  # between two sweeps, with every job done
    steps_in_turn, longest, steps = 0, 0, 0
    step = log.maintenance_step

    def turn_ended() -> None:
        nonlocal steps_in_turn
        steps_in_turn = 0

    def counted() -> Job | None:
        nonlocal steps_in_turn, longest, steps
        steps, steps_in_turn = steps + 1, steps_in_turn + 1
        longest = max(longest, steps_in_turn)
        world.loop.call_soon(turn_ended)
        return step()

    log.maintenance_step = counted  # type: ignore[method-assign]
    checkpoints = log.statistics().checkpoints
    log._maintenance.records_since = log._settings.checkpoint_records
    await asyncio.sleep(5)
    assert log.statistics().checkpoints > checkpoints
    assert steps > 30
    assert longest <= 2  # a slice, and the one that the end of a commit begins


@played(ledger=SMALL)
async def test_receipts_do_not_wait_for_maintenance(world: World) -> None:
    world.lanes[3].freeze()  # no segment is prepared, sealed or deleted, no checkpoint written
    await asyncio.wait_for(publish(world, 20), 1)
    statistics = world.broker.log.statistics()
    assert statistics.segments_sealed == 0
    world.lanes[3].thaw()
    await asyncio.sleep(5)
    statistics = world.broker.log.statistics()
    assert statistics.segments - statistics.segments_sealed <= 1


@played(ledger=SMALL)
async def test_after_its_end_nothing_begins(world: World) -> None:
    maintenance = world.broker.logs.main.maintenance
    maintenance.stop()
    await publish(world, 20)
    await asyncio.sleep(2)
    assert world.broker.log.statistics().segments_sealed == 0
