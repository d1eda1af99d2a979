"""A cursor's backlog: entries, messages, bytes and the oldest message that is left."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import BLOCK_ORDINALS, AckSet
from headgate.engine.cursor import Cursor
from headgate.engine.types import SubscriptionType
from headgate.flow.quota import backlog
from tests.unit.engine.harness import START_MS, Rig
from tests.unit.work_meter import bytecodes


def cursor_at(rig: Rig, at: int, *acked: int) -> Cursor:
    """A cursor that has acknowledged everything below ``at``, and ``acked`` beyond it."""
    acks = AckSet(at - 1)
    for ordinal in acked:
        acks.ack(ordinal)
    return Cursor(rig.topic, acks)


def test_the_backlog_is_what_is_stored_less_what_is_done() -> None:
    rig = Rig()
    rig.publish(5, messages=2, body=b"1234")
    cursor = cursor_at(rig, 1, 3)
    assert (cursor.done_entries, cursor.done_messages, cursor.done_bytes) == (2, 4, 8)
    assert cursor.backlog_entries == 3
    assert cursor.backlog_messages == 6
    assert cursor.backlog_bytes == 12
    assert cursor.acked_within(1, 5) == (1, 2, 4)


def test_the_oldest_message_is_the_first_that_is_not_acknowledged() -> None:
    rig = Rig()
    rig.publish(1)
    rig.advance(1_000)
    rig.publish(1)
    assert cursor_at(rig, 0).oldest_unacked_ms() == START_MS
    assert cursor_at(rig, 0, 0).oldest_unacked_ms() == START_MS + 1_000
    assert cursor_at(rig, 2).oldest_unacked_ms() is None


def test_finishing_counts_each_message_once() -> None:
    rig = Rig()
    rig.publish(6, messages=2, body=b"1234")
    cursor = cursor_at(rig, 1, 3)
    assert cursor.finish_through(4) == 6
    assert cursor.acks.mark_delete == 4
    assert (cursor.backlog_entries, cursor.backlog_bytes) == (1, 4)
    cursor.acks.reset(0)
    cursor.count_done()
    assert cursor.backlog_entries == 5


def test_a_move_looks_up_the_runs_that_it_passes_or_those_that_remain() -> None:
    """Whichever are fewer: each cumulative acknowledgement took a step for each run whose index is
    on the disk, however many it passed."""
    rig = Rig()
    rig.publish(300)
    rig.log.memory_first = 290

    def work(*acked: int) -> int:
        cursor = cursor_at(rig, 5, 10, 20, *acked)
        assert cursor.entries_passed(12) == [5, 12, 13, 13, 10, 10]
        assert cursor.entries_counted() == [5], "the others are counted already"
        return bytecodes(lambda: cursor.entries_passed(12))

    assert work(*range(22, 290, 2)) == work(22)
    assert cursor_at(rig, 5, 10, 20, 295).entries_passed(22) == [5, 22, 23, 23]
    rig.log.memory_first = 20
    assert cursor_at(rig, 5, 10, 11, 16, 20).entries_passed(12) == [5, 12, 13, 13, 10, 11]
    assert cursor_at(rig, 5, 8, 10, 11, 16, 20).entries_passed(12) == [5, 12, 13, 13, 16, 16]


def test_a_move_looks_up_no_more_than_it_said_before() -> None:
    rig = Rig()
    rig.publish(300)
    rig.log.memory_first = 300
    rig.log.running_totals = lambda first, stop: None  # type: ignore[method-assign,assignment,return-value]
    messages_before, looked_up = rig.log.messages_before, set[int]()

    def watched(ordinal: int) -> int:
        looked_up.add(ordinal)
        return messages_before(ordinal)

    for last in (12, 150, 280):
        cursor = cursor_at(rig, 5, *range(10, 100, 3), *range(200, 210))
        entries = cursor.entries_passed(last)
        looked_up.clear()
        rig.log.messages_before = watched  # type: ignore[method-assign]
        cursor.finish_through(last)
        rig.log.messages_before = messages_before  # type: ignore[method-assign]
        assert looked_up <= {end for entry in entries for end in (entry, entry + 1)}
        assert looked_up


def test_a_move_over_very_many_runs_looks_up_those_of_few_blocks() -> None:
    """A cumulative acknowledgement of 30 bytes looked up each run that it passed, or that remained:
    10 us each where the index is on the disk, 2 s for 200,000."""
    rig = Rig()
    entries_count = 6 * BLOCK_ORDINALS
    rig.publish(entries_count)
    rig.log.memory_first = entries_count
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription)
    for ordinal in range(1, entries_count, 2):
        subscription.ack_entry(consumer, ordinal)
    messages_before, looked_up = rig.log.messages_before, list[int]()

    def watched(ordinal: int) -> int:
        looked_up.append(ordinal)
        return messages_before(ordinal)

    last = entries_count // 2 - 10
    assert len(subscription.entries_passed(last)) <= 2 * BLOCK_ORDINALS + 4
    rig.log.messages_before = watched  # type: ignore[method-assign]
    subscription.ack_through(consumer, last)
    assert len(looked_up) <= 2 * BLOCK_ORDINALS + 4
    rig.log.messages_before = messages_before  # type: ignore[method-assign]
    assert subscription.backlog_messages == len(range(last + 2, entries_count, 2))
    done = subscription.done_entries, subscription.done_messages, subscription.done_bytes
    subscription.count_done()
    assert done == (
        subscription.done_entries, subscription.done_messages, subscription.done_bytes
    )  # fmt: skip


def test_a_move_that_ends_within_a_later_block_looks_up_no_more_than_it_said_before() -> None:
    """The move drops the sums of the block in which the cursor stands then. Its runs had not been
    brought into memory, so that the event loop read up to 33 blocks of the index from the disk."""
    rig = Rig()
    entries_count = 6 * BLOCK_ORDINALS
    rig.publish(entries_count)
    rig.log.memory_first = entries_count
    rig.log.running_totals = lambda first, stop: None  # type: ignore[method-assign,assignment,return-value]
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription)
    last, stands_at = 2 * BLOCK_ORDINALS + 10, 3 * BLOCK_ORDINALS + 100
    for ordinal in (*range(1, last, 2), *range(2, last, 4), *range(last + 1, stands_at)):
        subscription.ack_entry(consumer, ordinal)
    for ordinal in range(stands_at + 1, 5 * BLOCK_ORDINALS, 8):
        subscription.ack_entry(consumer, ordinal)
    messages_before, looked_up = rig.log.messages_before, set[int]()

    def watched(ordinal: int) -> int:
        looked_up.add(ordinal)
        return messages_before(ordinal)

    said = subscription.entries_passed(last)
    assert len(said) <= BLOCK_ORDINALS // 4 + 4
    rig.log.messages_before = watched  # type: ignore[method-assign]
    subscription.ack_through(consumer, last)
    rig.log.messages_before = messages_before  # type: ignore[method-assign]
    assert subscription.acks.mark_delete == stands_at - 1
    in_memory = {end for entry in said for end in (entry, entry + 1)} | {entries_count}
    assert looked_up <= in_memory


def test_a_start_looks_up_hardly_any_of_the_runs_that_it_counts() -> None:
    """Four look-ups for each run took 10 us: two million runs, of 16 MB of ACK, held up each start
    for 20 s."""
    rig = Rig()
    rig.publish(300, messages=2, body=b"1234")
    found = rig.log.running_totals(0, 300)
    looked_up: list[int] = []
    messages_before = rig.log.messages_before

    def watched(ordinal: int) -> int:
        looked_up.append(ordinal)
        return messages_before(ordinal)

    rig.log.running_totals = lambda first, stop: found  # type: ignore[method-assign]
    rig.log.messages_before = watched  # type: ignore[method-assign]
    cursor = cursor_at(rig, *range(1, 300, 2))
    assert len(looked_up) < 10
    assert (cursor.done_entries, cursor.done_messages, cursor.done_bytes) == (150, 300, 600)


def test_a_load_counts_nothing_that_an_unload_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 100,000 runs of acknowledged entries a subscription took 75 ms for each load."""
    rig = Rig()
    rig.publish(200, messages=2, body=b"1234")
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SubscriptionType.SHARED)
    for ordinal in range(1, 200, 2):
        subscription.ack_entry(consumer, ordinal)
    subscription.ack_messages(consumer, 2, 0b01)
    topic, acks, log = rig.topic, subscription.acks, rig.log
    before = subscription.done_entries, subscription.done_messages, subscription.done_bytes
    assert before == (100, 201, 400)
    topic.fence()
    rig.engine.unload_topic(topic)

    def done() -> tuple[int, int, int]:
        found = Cursor(topic, acks)
        return found.done_entries, found.done_messages, found.done_bytes

    with monkeypatch.context() as patch:
        patch.setattr(backlog, "done_before", None)
        assert done() == before
    subscription.keep_counts()
    acks.ack(0)
    assert done() == (101, 203, 404), "its counts are void"
    subscription.keep_counts()
    log.first = 4
    assert done() == (102, 204, 408), "so they are if the topic begins elsewhere"
