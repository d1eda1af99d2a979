"""Readers that are behind what is trimmed."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.units import KIB
from headgate.engine.subscription import Subscription
from headgate.ledger import LedgerSettings
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@pytest.mark.parametrize(
    ("entries_max", "acked", "first"), [(500, 1_100, 1_000), (10_000, 1_199, 1_200)]
)
def test_very_many_readers_that_lag_are_looked_at_a_few_at_once(
    entries_max: int, acked: int, first: int
) -> None:
    """Each read brought the index for one of them, and all were looked at again after each. Those
    behind a last ledger, which is closed when it is idle, moved in one turn, which read the index
    of each from the disk: 0.6 s of the event loop for 14,000 of them."""

    @played(
        ledger=LedgerSettings(
            segment_bytes=8 * KIB,
            extent_bytes=512,
            ledger_entries_max=entries_max,
            ledger_age_ms_min=0,
            index_cache_bytes=KIB,
        ),
        settings={
            "retentionCheckIntervalInSeconds": "1000000",
            "managedLedgerInactiveLedgerRolloverTimeSeconds": "60",
        },
    )
    async def story(world: World) -> None:
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s", queue_size=0)
        producer = await client.producer(TOPIC)
        for _ in range(12):
            await asyncio.gather(*[producer.send_nowait(b"x" * 100) for _ in range(100)])
        await asyncio.sleep(20)
        topic, readers_count, looks = world.broker.engine.topics[TOPIC], 60, 0
        log = topic.log
        for at in range(readers_count):
            start = log.position(at * 8)
            await client.subscribe(TOPIC, f"r{at}", durable=False, start=start, queue_size=0)
        entries_passed = Subscription.entries_passed

        def counted(subscription: Subscription, last: int) -> list[int]:
            nonlocal looks
            looks += 1
            return entries_passed(subscription, last)

        reads_before = world.broker.log.index_use().read_at_once
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(Subscription, "entries_passed", counted)
            consumer.ack_through_nowait(log.position(acked))
            await asyncio.sleep(120)
        assert log.first == first
        readers = [one for one in topic.subscriptions.values() if not one.is_durable]
        assert {reader.acks.mark_delete for reader in readers} == {first - 1}
        assert looks < 4 * readers_count
        assert world.broker.log.index_use().read_at_once == reads_before

    story()
