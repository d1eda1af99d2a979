"""Readers that are behind what is trimmed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.units import KIB
from headgate.base.work_units import PIECE_UNITS
from headgate.broker.slices import Pace
from headgate.broker.sweeps import trimming
from headgate.broker.sweeps.trimming import Trimming, order_cursors
from headgate.engine.cursor_order import CursorOrder
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.ledger import LedgerSettings
from headgate.testing import World
from headgate.testing.consumer import SimConsumer
from tests.unit.broker.playing import TOPIC, played

ENTRIES = 1_200


def settings_with(ledger_entries_max: int) -> dict[str, Any]:
    """Those of a broker with a tiny cache of the index, whose sweep the test awaits."""
    return {
        "ledger": LedgerSettings(
            segment_bytes=8 * KIB,
            extent_bytes=512,
            ledger_entries_max=ledger_entries_max,
            ledger_age_ms_min=0,
            index_cache_bytes=KIB,
        ),
        "settings": {
            "retentionCheckIntervalInSeconds": "1000000",
            "managedLedgerInactiveLedgerRolloverTimeSeconds": "60",
        },
    }


async def consumer_of_many(world: World, readers_count: int) -> SimConsumer:
    """A durable consumer "s" of a topic with many entries, beside readers at old ones."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    producer = await client.producer(TOPIC)
    for _ in range(ENTRIES // 100):
        await asyncio.gather(*[producer.send_nowait(b"x" * 100) for _ in range(100)])
    await asyncio.sleep(20)
    log = world.broker.engine.topics[TOPIC].log
    for at in range(readers_count):
        start = log.position(at * 480 // readers_count)
        await client.subscribe(TOPIC, f"r{at}", durable=False, start=start, queue_size=0)
    return consumer


@pytest.mark.parametrize(
    ("entries_max", "acked", "first"), [(500, 1_100, 1_000), (10_000, 1_199, 1_200)]
)
def test_very_many_readers_that_lag_are_looked_at_a_few_at_once(
    entries_max: int, acked: int, first: int
) -> None:
    """Each read brought the index for one of them, and all were looked at again after each. Those
    behind a last ledger, which is closed when it is idle, moved in one turn, which read the index
    of each from the disk: 0.6 s of the event loop for 14,000 of them."""

    @played(**settings_with(entries_max))
    async def story(world: World) -> None:
        readers_count, looks = 60, 0
        consumer = await consumer_of_many(world, readers_count)
        topic = world.broker.engine.topics[TOPIC]
        log = topic.log
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


@played(**settings_with(500))
async def test_readers_do_not_move_again_at_once_when_more_can_be_trimmed_meanwhile(
    world: World,
) -> None:
    """A subscription that acknowledged further ledgers while readers moved made all of them move
    once more in the one step of the trim."""
    consumer = await consumer_of_many(world, 60)
    topic, moved_count, moved_in_trims = world.broker.engine.topics[TOPIC], 0, list[int]()
    skip_to, trim_topic = Subscription.skip_to, Trimming._trim_topic

    def counted(subscription: Subscription, ordinal: int) -> int:
        nonlocal moved_count
        moved_count += 1
        if moved_count == 20:
            topic.subscriptions["s"].skip_to(1_100)
        return skip_to(subscription, ordinal)

    def watched(*arguments: Any) -> bool:
        before = moved_count
        try:
            return trim_topic(*arguments)
        finally:
            moved_in_trims.append(moved_count - before)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Subscription, "skip_to", counted)
        patches.setattr(Trimming, "_trim_topic", watched)
        consumer.ack_through_nowait(topic.log.position(550))
        await asyncio.sleep(120)
    assert topic.log.first == 1_000
    readers = [one for one in topic.subscriptions.values() if not one.is_durable]
    assert {reader.acks.mark_delete for reader in readers} == {999}
    assert set(moved_in_trims) == {0}


@contextmanager
def counted_trims(*, readers_left_max: int) -> Iterator[list[Topic]]:
    """The topics of the trims meanwhile, before each of which so many readers may be left."""
    trim_topic, trims = Trimming._trim_topic, list[Topic]()

    def counted(self: Trimming, topic: Topic, end_max: int) -> bool:
        trims.append(topic)
        return trim_topic(self, topic, end_max)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(trimming, "READERS_LEFT_MAX", readers_left_max)
        patches.setattr(Trimming, "_trim_topic", counted)
        yield trims


@played(**settings_with(500))
async def test_readers_that_come_as_fast_as_others_move_hold_up_no_other_topic(
    world: World,
) -> None:
    """All that had come until the last of those before them had moved, moved in one step."""
    consumer = await consumer_of_many(world, 40)
    topic = world.broker.engine.topics[TOPIC]
    move, rounds = Trimming._move, 0

    async def joined(self: Trimming, *arguments: Any) -> None:
        nonlocal rounds
        rounds += 1
        await move(self, *arguments)
        for at in range(40):
            topic.add_subscription(f"n{rounds}-{at}", AckSet(at), cursor_id=None)

    with counted_trims(readers_left_max=30) as trims:
        with pytest.MonkeyPatch.context() as joins:
            joins.setattr(Trimming, "_move", joined)
            consumer.ack_through_nowait(topic.log.position(550))
            await asyncio.sleep(50)
        assert (rounds, len(trims), topic.log.first) == (trimming.MOVES_MAX, 0, 0)
        await asyncio.sleep(60)
    assert (len(trims), topic.log.first) == (1, 500)


@played(**settings_with(500))
async def test_readers_that_come_while_the_index_is_read_leave_a_topic_to_a_later_look(
    world: World,
) -> None:
    """They were counted before that, and all that had come since moved in one step. The index is
    read for as long as clients add readers at entries whose index is on the disk."""
    consumer = await consumer_of_many(world, 40)
    topic = world.broker.engine.topics[TOPIC]
    look_ahead = Trimming._look_ahead
    entries_passed, asked, asked_max = Subscription.entries_passed, 0, 0

    def joined(*arguments: Any) -> None:
        nonlocal asked, asked_max
        for at in range(40):
            if f"n{at}" not in topic.subscriptions:
                topic.add_subscription(f"n{at}", AckSet(at), cursor_id=None)
        asked = 0
        try:
            look_ahead(*arguments)
        finally:
            asked_max = max(asked, asked_max)

    def passed(self: Subscription, last: int) -> Any:
        nonlocal asked
        asked += 1
        return entries_passed(self, last)

    with counted_trims(readers_left_max=30) as trims:
        with pytest.MonkeyPatch.context() as joins:
            joins.setattr(Trimming, "_look_ahead", joined)
            joins.setattr(Subscription, "entries_passed", passed)
            consumer.ack_through_nowait(topic.log.position(550))
            await asyncio.sleep(50)
        assert (len(trims), topic.log.first, asked_max) == (0, 0, 30)
        await asyncio.sleep(60)
    assert (len(trims), topic.log.first) == (1, 500)


def test_cursors_that_move_as_fast_as_they_are_ordered_hold_up_no_other_topic() -> None:
    """Four connections that acknowledged a message of each of 6,000 readers in turn kept the sweep
    at their topic for as long as they went on: nothing of any topic was trimmed."""

    class Reader:
        is_durable = False

        def __init__(self) -> None:
            self.acks = SimpleNamespace(mark_delete=0)

    cursors = {f"r{at}": Reader() for at in range(6_000)}
    topic = SimpleNamespace(subscriptions=cursors, cursors=CursorOrder(cast(Any, cursors)))
    topic.cursors.changed(cast(Any, cursors["r0"]))
    granted = 0

    def move_all() -> None:
        for cursor in cursors.values():
            cursor.acks.mark_delete += 1

    class AmidAcknowledgements:
        def begin_turn(self) -> None:
            pass

        async def give_way(self, units: int, /) -> None:
            await self.grant(units)

        async def grant(self, units: int, /) -> int:
            nonlocal granted
            granted += units
            assert granted < 1_000 * PIECE_UNITS, "it goes on and on"
            move_all()
            return units

    move_all()
    asyncio.run(order_cursors(cast(Any, topic), Pace(AmidAcknowledgements())))
    assert granted < 60 * PIECE_UNITS
    assert topic.cursors.oldest_reader() is not None


@played(**settings_with(500))
async def test_a_trim_that_another_one_overtakes_trims_nothing(world: World) -> None:
    """An administrator has a topic trimmed while the sweep moves its readers."""
    consumer = await consumer_of_many(world, 20)
    topic = world.broker.engine.topics[TOPIC]
    move, moves, firsts = Trimming._move, 0, list[int]()

    async def overtaken(self: Trimming, *arguments: Any) -> None:
        nonlocal moves
        moves += 1
        if moves == 1:
            topic.subscriptions["s"].skip_to(1_100)
            await self.trim_now(topic)
            await asyncio.sleep(1)
            firsts.append(topic.log.first)
        await move(self, *arguments)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Trimming, "_move", overtaken)
        consumer.ack_through_nowait(topic.log.position(550))
        await asyncio.sleep(45)
    assert (firsts, topic.log.first) == ([1_000], 1_000)
    topic.subscriptions["s"].skip_to(1_200)
    await asyncio.sleep(120)
    assert topic.log.first == 1_200
