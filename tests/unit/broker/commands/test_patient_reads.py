"""Commands without an answer on a disk that cannot read: nothing stays with its consumer."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.positions import Position
from headgate.fs.faulty_fs import Operation
from headgate.ledger import LedgerSettings
from headgate.testing import RefusedError, SimConsumer, World
from headgate.wire.codes import ServerError, SubscriptionType
from tests.unit.broker.playing import TOPIC, played


def backlog(world: World) -> int:
    return world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries


COLD_INDEX = LedgerSettings(segment_bytes=64 * 1024, ledger_entries_max=50, index_cache_bytes=0)
COLD_ENTRIES = 300
COLD = 200
"""An entry of a block that is not the latest one read."""


async def all_but_index(
    world: World, kind: SubscriptionType = SubscriptionType.SHARED
) -> tuple[SimConsumer, list[Position]]:
    """A consumer that has all entries of a topic; the index of most is on the disk alone."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=kind, queue_size=2 * COLD_ENTRIES)
    producer = await client.producer(TOPIC)
    positions = [await producer.send(b"x") for _ in range(COLD_ENTRIES)]
    other = await client.producer(f"{TOPIC}-other")
    for _ in range(30):
        await other.send(b"x" * 10_000)
    await asyncio.sleep(5)
    log = world.broker.engine.topics[TOPIC].log
    assert not log.is_indexed(COLD)
    assert len(consumer.queue) == COLD_ENTRIES
    return consumer, positions


def unreadable(operation: Operation) -> None:
    if operation.kind in ("read", "open"):
        raise OSError(5, "this part of the disk is not readable")


@pytest.mark.parametrize("is_cumulative", [False, True])
def test_an_ack_without_an_answer_outlasts_a_disk_that_fails(*, is_cumulative: bool) -> None:
    @played(ledger=COLD_INDEX)
    async def story(world: World) -> None:
        kind = SubscriptionType.EXCLUSIVE if is_cumulative else SubscriptionType.SHARED
        consumer, positions = await all_but_index(world, kind)
        world.disk.plan = unreadable
        if is_cumulative:
            consumer.ack_through_nowait(positions[COLD])
        else:
            consumer.ack_nowait(*positions[: COLD + 1])
        await asyncio.sleep(2)
        assert backlog(world) > COLD_ENTRIES - COLD - 1
        world.disk.plan = lambda _: None
        await asyncio.sleep(10)
        assert backlog(world) == COLD_ENTRIES - COLD - 1
        assert consumer.is_open

    story()


@played(ledger=COLD_INDEX)
async def test_what_a_disk_cannot_read_for_long_is_delivered_again(world: World) -> None:
    consumer, positions = await all_but_index(world)
    world.disk.plan = unreadable
    consumer.ack_nowait(positions[COLD])
    await asyncio.sleep(60)
    assert not consumer.is_open
    assert backlog(world) == COLD_ENTRIES
    world.disk.plan = lambda _: None
    again = await (await world.connect()).subscribe(
        TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=COLD_ENTRIES
    )
    await asyncio.sleep(10)
    assert len(again.queue) == COLD_ENTRIES
    await again.ack(*positions)
    assert backlog(world) == 0


@played(ledger=COLD_INDEX)
async def test_an_ack_with_an_answer_is_refused_if_the_disk_fails(world: World) -> None:
    consumer, positions = await all_but_index(world)
    world.disk.plan = unreadable
    with pytest.raises(RefusedError) as refusal:
        await consumer.ack(positions[COLD])
    assert refusal.value.code == ServerError.PERSISTENCE_ERROR
    assert consumer.is_open


@played(ledger=COLD_INDEX)
async def test_a_redelivery_outlasts_a_disk_that_fails(world: World) -> None:
    consumer, positions = await all_but_index(world)
    consumer.queue.clear()
    world.disk.plan = unreadable
    consumer.redeliver([positions[COLD]])
    await asyncio.sleep(2)
    assert not consumer.queue
    world.disk.plan = lambda _: None
    await asyncio.sleep(20)
    assert [message.position for message in consumer.queue] == [positions[COLD]]
    assert consumer.is_open


@played(ledger=COLD_INDEX)
async def test_a_redelivery_that_cannot_be_carried_out_closes_the_consumer(world: World) -> None:
    consumer, positions = await all_but_index(world)
    world.disk.plan = unreadable
    consumer.redeliver([positions[COLD]])
    await asyncio.sleep(60)
    assert not consumer.is_open


@played(ledger=COLD_INDEX)
async def test_a_consumer_that_leaves_meanwhile_ends_the_attempts(world: World) -> None:
    consumer, positions = await all_but_index(world)
    world.disk.plan = unreadable
    consumer.ack_nowait(positions[COLD])
    await asyncio.sleep(2)
    await consumer.close()
    await asyncio.sleep(60)
    assert backlog(world) == COLD_ENTRIES
    assert all(not c._waiting_commands.count for c in world.broker.connections)
