"""Readers that are behind what is trimmed."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.units import KIB
from headgate.engine.subscription import Subscription
from headgate.ledger import LedgerSettings
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played(
    ledger=LedgerSettings(
        segment_bytes=8 * KIB,
        extent_bytes=512,
        ledger_entries_max=500,
        ledger_age_ms_min=0,
        index_cache_bytes=KIB,
    ),
    settings={"retentionCheckIntervalInSeconds": "1000000"},
)
async def test_very_many_readers_that_lag_are_looked_at_a_few_at_once(
    world: World,
) -> None:
    """Each read brought the index for one of them, and all were looked at again after each: of
    20,000 a look took 0.3 s of the event loop, a thousand times."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    producer = await client.producer(TOPIC)
    for _ in range(12):
        await asyncio.gather(*[producer.send_nowait(b"x" * 100) for _ in range(100)])
    await asyncio.sleep(60)
    topic = world.broker.engine.topics[TOPIC]
    log = topic.log
    readers_count, looks = 60, 0
    for at in range(readers_count):
        start = log.position(at * 8)
        await client.subscribe(TOPIC, f"r{at}", durable=False, start=start, queue_size=0)
    entries_passed = Subscription.entries_passed

    def counted(subscription: Subscription, last: int) -> list[int]:
        nonlocal looks
        looks += 1
        return entries_passed(subscription, last)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Subscription, "entries_passed", counted)
        consumer.ack_through_nowait(log.position(1_100))
        await asyncio.sleep(60)
    assert log.first == 1_000
    readers = [one for one in topic.subscriptions.values() if not one.is_durable]
    assert {reader.acks.mark_delete for reader in readers} == {999}
    assert looks < 4 * readers_count
