"""What one subscription has put aside: not due, due, delivered, acknowledged."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.units import NS_PER_MS
from headgate.engine.delay_schedule import NEVER_MS, DelaySchedule
from headgate.engine.delayed_entries import (
    DUE_CHUNKS_MAX,
    DUE_ENTRIES_MAX,
    READ_SPAN_ENTRIES,
    DelayedEntries,
)
from headgate.engine.delayed_index import CHUNK_ENTRIES, INDEXED_BYTES, TimedEntry


class Wakes:
    """A subscription that counts how often it is woken."""

    def __init__(self) -> None:
        self.count = 0

    def wake(self) -> None:
        self.count += 1


@pytest.fixture
def schedule() -> DelaySchedule:
    return DelaySchedule()


@pytest.fixture
def wakes() -> Wakes:
    return Wakes()


@pytest.fixture
def delayed(schedule: DelaySchedule, wakes: Wakes) -> DelayedEntries:
    return DelayedEntries(schedule, wakes, "acme")


def test_it_is_woken_once_for_what_is_due(
    delayed: DelayedEntries, schedule: DelaySchedule, wakes: Wakes
) -> None:
    for ordinal, due_ms in enumerate((30, 10, 20, 10)):
        assert delayed.put_aside(ordinal, due_ms, 1, 100)
    schedule.wake_due(9)
    assert wakes.count == 0
    schedule.wake_due(10)
    schedule.wake_due(10)
    assert wakes.count == 1
    assert delayed.take_due(10) == 2
    assert delayed.due.first == 1
    assert schedule.next_wake_ns(0, 20) == 0
    assert delayed.take_due(10) == 0


def test_so_many_at_once(delayed: DelayedEntries) -> None:
    for ordinal in range(3 * DUE_ENTRIES_MAX):
        delayed.put_aside(ordinal, 5, 1, 100)
    while delayed.not_due.entries:
        assert 0 < delayed.take_due(5) < 2 * DUE_ENTRIES_MAX
    assert delayed.due.entries == delayed.entries == 3 * DUE_ENTRIES_MAX
    assert delayed.next_due_ms == NEVER_MS


def test_few_of_many_chunks_at_once(
    delayed: DelayedEntries, schedule: DelaySchedule, wakes: Wakes
) -> None:
    chunks = 3 * DUE_CHUNKS_MAX
    for ordinal in range(chunks * CHUNK_ENTRIES):
        delayed.put_aside(ordinal, 900 if ordinal % CHUNK_ENTRIES else 5, 1, 100)
    for turn in range(1, 4):
        assert schedule.next_wake_ns(0, 5) == 0
        schedule.wake_due(5)
        assert wakes.count == turn
        assert delayed.take_due(5) == DUE_CHUNKS_MAX
    assert schedule.next_wake_ns(0, 899) == NS_PER_MS
    assert (delayed.due.entries, delayed.entries) == (chunks, chunks * CHUNK_ENTRIES)


def test_the_acknowledgement_of_the_next_one_wakes_for_nothing_but_the_next(
    delayed: DelayedEntries, schedule: DelaySchedule
) -> None:
    delayed.put_aside(0, 10, 1, 100)
    delayed.put_aside(1, 20, 1, 100)
    assert delayed.forget(0)
    assert not delayed.forget(0)
    schedule.wake_due(10)
    assert delayed.take_due(10) == 0
    assert delayed.next_due_ms == 20
    assert schedule.entries == 1


def test_what_is_delivered_ahead_is_not_found_again(delayed: DelayedEntries) -> None:
    for ordinal in (2, 4, 5):
        delayed.put_aside(ordinal, 10 if ordinal == 4 else 99, 1, 100)
    delayed.take_due(10)
    assert delayed.take(AckSet(-1), 0) == TimedEntry(4, 10, 1, 100)
    assert delayed.take(AckSet(-1), 0) is None
    assert delayed.next_unknown(0, 9) == (0, 2)
    assert delayed.next_unknown(2, 9) == (3, 4)
    assert delayed.next_unknown(4, 9) == (6, 9)
    assert delayed.next_unknown(4, 6) == (4, 5)  # it was passed: it is with its consumer
    assert delayed.next_unknown(5, 6) == (6, 6)
    assert delayed.due_since == {4: 10}
    delayed.take_due(99)
    assert delayed.take(AckSet(-1), 0) == TimedEntry(2, 99, 1, 100)
    assert delayed.ahead == {2}
    assert not delayed.forget(2)
    assert delayed.ahead == set()


def test_a_move_of_the_cursor_forgets_what_it_passed(
    delayed: DelayedEntries, schedule: DelaySchedule
) -> None:
    for ordinal in range(10):
        delayed.put_aside(ordinal, 10 + ordinal, 1, 100)
    delayed.take_due(14)
    for _ in range(4):
        delayed.take(AckSet(-1), 20)
    assert sum(delayed.passed(AckSet(5))) == 2
    assert (delayed.due.within(0, 99), delayed.due_since) == ([], {})
    assert delayed.not_due.within(0, 99) == [6, 7, 8, 9]
    assert schedule.entries == delayed.entries == 4


def test_delivered_entries_that_the_cursor_passed_are_forgotten_in_steps(
    delayed: DelayedEntries,
) -> None:
    count = 3 * CHUNK_ENTRIES
    delayed.due_since = dict.fromkeys(range(count + 1), 5)
    delayed.ahead = set(range(count + 1))
    left = count + 1
    for _ in delayed.passed(AckSet(count - 1)):
        assert left - len(delayed.due_since) <= CHUNK_ENTRIES
        left = len(delayed.due_since)
    assert (delayed.due_since, delayed.ahead) == ({count: 5}, {count})


def test_the_memory_is_bounded(
    delayed: DelayedEntries, schedule: DelaySchedule, wakes: Wakes
) -> None:
    schedule.memory_bytes_max = 2 * INDEXED_BYTES
    assert [delayed.put_aside(ordinal, 10, 1, 100) for ordinal in range(3)] == [True, True, False]
    assert delayed.is_stalled
    delayed.forget(0)
    assert (delayed.is_stalled, wakes.count) == (False, 1)


def test_nothing_is_left_of_one_that_is_closed(
    delayed: DelayedEntries, schedule: DelaySchedule
) -> None:
    delayed.put_aside(0, 10, 1, 100)
    delayed.put_aside(1, 20, 1, 100)
    delayed.take_due(10)
    delayed.close()
    assert (schedule.entries, delayed.entries, delayed.next_due_ms) == (0, 0, NEVER_MS)
    assert schedule.next_wake_ns(0, 0) is None


def test_what_is_read_with_a_due_entry(delayed: DelayedEntries) -> None:
    for ordinal in (0, 7, 14, 21, 400, READ_SPAN_ENTRIES + 5):
        delayed.put_aside(ordinal, 10, 1, 100)
    delayed.take_due(10)
    assert delayed.read_stop(0) == 22
    assert delayed.read_stop(400) == 401
    assert delayed.read_stop(READ_SPAN_ENTRIES + 5) == READ_SPAN_ENTRIES + 6
