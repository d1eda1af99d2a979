"""Ledgers and cursors as they are shown, on a whole broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headgate.base.names import parse_topic
from headgate.base.sliced import at_once
from headgate.base.units import MIB
from headgate.facade.admin_facade import SUBSCRIPTION_BYTES
from headgate.ledger import LedgerSettings
from headgate.observe.stats.fields import InternalStats
from headgate.observe.stats.internal import (
    RANGES_PER_YIELD,
    RANGES_SHOWN_MAX,
    internal_stats,
)
from headgate.testing import World
from headgate.wire.codes import SubscriptionType

T = "persistent://public/default/t"
NAME = parse_topic(T)


@pytest.fixture
def world() -> Iterator[World]:
    ledger = LedgerSettings(ledger_entries_max=5, ledger_age_ms_min=0, segment_bytes=MIB)
    with World(ledger=ledger) as made:
        made.run(made.start())
        yield made


def shown(world: World, *, metadata: bool = False) -> InternalStats:
    broker = world.broker
    broker.begin_turn()
    topic = broker.registry.get(NAME)
    assert topic is not None
    return at_once(internal_stats(topic, metadata=metadata))


def acknowledge_every_second(world: World, subscription: str, count: int) -> None:
    acks = world.broker.engine.topics[T].subscriptions[subscription].acks
    for ordinal in range(1, count, 2):
        acks.ack(ordinal)


def test_an_unused_topic_has_no_ledger(world: World) -> None:
    world.run(world.broker.registry.create(NAME))
    stats = shown(world)
    assert (stats.ledgers, stats.cursors, stats.last_confirmed_entry) == ([], {}, "-1:-1")
    assert stats.entries_added_counter == stats.total_size == stats.current_ledger_entries == 0
    assert stats.last_ledger_created_timestamp.startswith("2025-")


def test_ledgers_and_a_cursor_that_is_behind(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        producer = await client.producer(T)
        for _ in range(7):
            await producer.send(b"x" * 10)
        for _ in range(6):
            message = await consumer.receive()
        await consumer.ack_through(message.position)

    world.run(play())
    stats = shown(world)
    first, second = stats.ledgers
    assert (first.entries, second.entries) == (5, 0)
    assert first.size > 0
    assert first.metadata is shown(world).ledgers[0].metadata
    assert (stats.current_ledger_entries, stats.number_of_entries) == (2, 7)
    assert stats.total_size == first.size + stats.current_ledger_size
    assert stats.last_confirmed_entry == f"{second.ledger_id}:1"
    cursor = stats.cursors["s"]
    assert cursor.mark_delete_position == f"{second.ledger_id}:0"
    assert cursor.read_position == f"{second.ledger_id}:2"
    assert cursor.active
    assert cursor.messages_consumed_counter == 6
    assert cursor.number_of_entries_since_first_not_acked_message == 2
    assert (cursor.waiting_read_op, stats.waiting_cursors_count) == (False, 0)


def test_a_waiting_cursor_and_descriptions_of_ledgers(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s")
        producer = await client.producer(T)
        for _ in range(6):
            await producer.send(b"x")
            await consumer.ack((await consumer.receive()).position)

    world.run(play())
    stats = shown(world, metadata=True)
    assert stats.waiting_cursors_count == 1
    assert stats.cursors["s"].waiting_read_op
    texts = [str(ledger.metadata) for ledger in stats.ledgers]
    assert ["CLOSED" in texts[0], "OPEN" in texts[1]] == [True, True]


def test_acknowledgements_out_of_order_are_spelled_out(world: World) -> None:
    async def play() -> None:
        client = await world.connect()
        consumer = await client.subscribe(T, "s", kind=SubscriptionType.SHARED)
        producer = await client.producer(T)
        for _ in range(5):
            await producer.send(b"x")
        got = [(await consumer.receive()).position for _ in range(5)]
        await consumer.ack(got[1], got[2], got[4])

    world.run(play())
    stats = shown(world)
    ledger = stats.ledgers[0].ledger_id
    cursor = stats.cursors["s"]
    assert cursor.mark_delete_position == f"{ledger}:-1"
    assert cursor.individually_deleted_messages == (
        f"[({ledger}:0..{ledger}:2],({ledger}:3..{ledger}:4]]"
    )
    assert cursor.total_non_contiguous_deleted_messages_range == 2


def test_not_every_one_of_many_holes_is_spelled_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.observe.stats.internal.RANGES_SHOWN_MAX", 3)
    count = 10

    async def play() -> None:
        client = await world.connect()
        await client.subscribe(T, "s", queue_size=0)
        producer = await client.producer(T)
        await asyncio.gather(*(producer.send_nowait(b"x") for _ in range(count)))

    world.run(play())
    acknowledge_every_second(world, "s", count)
    cursor = shown(world).cursors["s"]
    assert cursor.individually_deleted_messages.count("..") == 3
    assert cursor.total_non_contiguous_deleted_messages_range == 5


def test_holes_count_in_the_work_and_the_memory_of_an_answer(world: World) -> None:
    """A thousand of each of 100 subscriptions held the loop for 0.17 s, and took seven times what
    the answer was charged with."""
    count = 3_000

    async def play() -> None:
        client = await world.connect()
        for name in ("few", "many"):
            await client.subscribe(T, name, queue_size=0)
        producer = await client.producer(T)
        await asyncio.gather(*(producer.send_nowait(b"x") for _ in range(count)))

    world.run(play())
    acknowledge_every_second(world, "many", count)
    acknowledge_every_second(world, "few", 2)
    broker = world.broker
    broker.begin_turn()
    topic = broker.engine.topics[T]
    steps = sum(1 for _ in internal_stats(topic, metadata=False))
    assert steps == 2 + RANGES_SHOWN_MAX // RANGES_PER_YIELD
    cursor = shown(world).cursors["many"]
    assert cursor.total_non_contiguous_deleted_messages_range == count // 2
    assert len(cursor.individually_deleted_messages) < SUBSCRIPTION_BYTES
