"""A cursor's backlog: entries, messages, bytes and the oldest message that is left."""

from __future__ import annotations

from headgate.base.ack_set import AckSet
from headgate.engine.cursor import Cursor
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


def test_the_search_for_what_a_move_looks_up_ends_where_the_index_is_in_memory() -> None:
    """Each cumulative acknowledgement does it, with however many acknowledged entries beyond."""
    rig = Rig()
    rig.publish(300)
    rig.log.memory_first = 20

    def work(*acked: int) -> int:
        cursor = cursor_at(rig, 5, 10, *acked)
        assert cursor.entries_passed(12) == [5, 12, 13, 13, 10, 10]
        return bytecodes(lambda: cursor.entries_passed(12))

    assert work(*range(22, 300, 2)) == work()
