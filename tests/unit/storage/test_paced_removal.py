"""Deleted segments are freed in pieces at a bounded rate, and all of them soon."""

from __future__ import annotations

import asyncio

from headgate.base.errors import StorageError
from headgate.base.units import MIB
from headgate.ledger import LedgerSettings
from headgate.storage.paced_removal import BYTES_PER_S, PART_PER_S
from headgate.testing import World
from tests.unit.broker.playing import played

LEDGER = LedgerSettings(
    segment_bytes=65_536, checkpoint_bytes=131_072, hole_bytes_min=65_536, removed_piece_bytes=4_096
)
TOPIC = "persistent://public/default/t"


class _Left:
    """Stands for what is left of deleted segments."""

    def __init__(self, left_bytes: int, piece_bytes: int) -> None:
        self.left_bytes = left_bytes
        self._piece_bytes = piece_bytes

    def step(self) -> int:
        freed_bytes = min(self._piece_bytes, self.left_bytes)
        self.left_bytes -= freed_bytes
        return freed_bytes


async def seconds_until_freed(world: World, left: _Left) -> float:
    """How long the removal of that takes."""
    world.broker.log._writer.removal = left  # type: ignore[assignment]
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    world.broker.logs.main.removal.run()
    while left.left_bytes:
        await asyncio.sleep(0.05)
    return loop.time() - begun_s


@played(ledger=LEDGER)
async def test_deleted_segments_are_freed_in_pieces(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(200):
        await producer.send(bytes(4_000))
    log = world.broker.log
    topic = world.broker.engine.topics[TOPIC].log
    log.stage_trim(topic, topic.end)
    world.broker.logs.main.committer.commit_if_idle()
    left: set[int] = set()
    for _ in range(60_000):
        await asyncio.sleep(0.001)
        left.add(log.removal_left_bytes)
    assert len(left) > 20
    assert log.removal_left_bytes == 0
    assert log.statistics().segments_deleted > 5
    assert not [name for name in world.fs.list_directory(log._directory) if name.count(".") > 2]


@played(ledger=LEDGER)
async def test_a_little_goes_at_the_bounded_rate(world: World) -> None:
    took_s = await seconds_until_freed(world, _Left(64 * MIB, MIB))
    assert 0.9 < took_s / (64 * MIB / BYTES_PER_S) < 1.3


@played(ledger=LEDGER)
async def test_very_much_is_gone_within_a_minute(world: World) -> None:
    took_s = await seconds_until_freed(world, _Left(100 * PART_PER_S * BYTES_PER_S, 64 * MIB))
    assert took_s < 60


@played(ledger=LEDGER)
async def test_a_failure_is_told_and_tried_again(world: World) -> None:
    removal = world.broker.logs.main.removal
    world.lanes[4].fail_next(StorageError("hiccup", retryable=True))
    took_s = await seconds_until_freed(world, _Left(4 * MIB, MIB))
    assert took_s >= 0.2  # not before the next sweep
    assert removal._failures._count == 1
    assert not removal.internal_error


@played(ledger=LEDGER)
async def test_none_is_freed_after_the_end(world: World) -> None:
    left = _Left(4 * MIB, MIB)
    world.broker.log._writer.removal = left  # type: ignore[assignment]
    world.broker.logs.main.removal.stop()
    world.broker.logs.main.removal.run()
    await asyncio.sleep(10)
    assert left.left_bytes == 4 * MIB
