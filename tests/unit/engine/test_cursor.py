"""A cursor's backlog: entries, messages, bytes and the oldest message that is left."""

from __future__ import annotations

from headgate.base.ack_set import AckSet
from headgate.engine.cursor import Cursor
from tests.unit.engine.harness import START_MS, Rig


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
