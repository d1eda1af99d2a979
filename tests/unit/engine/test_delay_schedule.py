"""One wake for all subscriptions with delayed entries, and the bound on what they hold."""

from __future__ import annotations

from headgate.base.units import NS_PER_MS
from headgate.engine.delay_schedule import NEVER_MS, ROOM_TOLD_MAX, TOLD_MAX, DelaySchedule
from headgate.engine.delayed_index import INDEXED_BYTES

MINE = "acme"
OTHER = "globex"


class Part:
    """A subscription that notes what it is told."""

    def __init__(self, next_due_ms: int = NEVER_MS) -> None:
        self.next_due_ms = next_due_ms
        self.due_count = self.room_count = 0

    def became_due(self) -> None:
        self.due_count += 1
        self.next_due_ms = NEVER_MS

    def has_room(self) -> None:
        self.room_count += 1


def test_without_subscriptions_nothing_wakes() -> None:
    schedule = DelaySchedule()
    assert schedule.next_wake_ns(5, 7) is None
    schedule.wake_due(1 << 61)


def test_the_next_wake_is_that_of_the_earliest() -> None:
    schedule, parts = DelaySchedule(), [Part(300), Part(200), Part(400)]
    for part in parts:
        schedule.changed(part)
    assert schedule.next_wake_ns(1_000, 150) == 1_000 + 50 * NS_PER_MS
    assert schedule.next_wake_ns(1_000, 250) == 1_000  # the clock was set forward
    schedule.wake_due(299)
    assert [part.due_count for part in parts] == [0, 1, 0]
    assert schedule.next_wake_ns(0, 299) == NS_PER_MS
    schedule.unschedule(parts[0])
    schedule.wake_due(399)
    assert [part.due_count for part in parts] == [0, 1, 0]
    parts[1].next_due_ms = 350
    schedule.changed(parts[1])
    assert schedule.next_wake_ns(0, 350) == 0
    schedule.wake_due(400)
    assert [part.due_count for part in parts] == [0, 2, 1]
    assert schedule.next_wake_ns(0, 400) is None


def test_crowds_that_are_due_at_one_instant_are_told_a_few_at_once() -> None:
    """A message that became due for 79,200 subscriptions was one turn of 0.16 s."""
    schedule, parts = DelaySchedule(), [Part(300) for _ in range(TOLD_MAX + 1)]
    for part in parts:
        schedule.changed(part)
    schedule.wake_due(300)
    assert sum(part.due_count for part in parts) == TOLD_MAX
    assert schedule.next_wake_ns(1_000, 300) == 1_000, "the rest follows at once"
    schedule.wake_due(300)
    assert [part.due_count for part in parts] == [1] * len(parts)
    assert schedule.next_wake_ns(1_000, 300) is None


def test_a_full_memory_has_room_again() -> None:
    schedule = DelaySchedule()
    schedule.memory_bytes_max = 10 * INDEXED_BYTES
    one, gone = Part(), Part()
    schedule.count(9, MINE)
    assert not schedule.is_full
    schedule.count(1, MINE)
    assert schedule.is_full
    schedule.stall(one)
    schedule.stall(gone)
    schedule.forget(gone)
    schedule.count(-1, MINE)
    assert (one.room_count, gone.room_count) == (1, 0)
    schedule.count(-1, MINE)
    assert one.room_count == 1


def test_crowds_that_found_the_memory_full_are_told_a_few_at_once() -> None:
    """Each entry that was delivered woke all of 20,000, and one of them found room."""
    schedule = DelaySchedule()
    schedule.memory_bytes_max = 10 * INDEXED_BYTES
    parts = [Part() for _ in range(TOLD_MAX + 2 * ROOM_TOLD_MAX)]
    schedule.count(10, MINE)
    for part in parts:
        schedule.stall(part)
    assert schedule.next_wake_ns(1_000, 0) is None
    schedule.count(-1, MINE)
    assert sum(part.room_count for part in parts) == ROOM_TOLD_MAX
    assert schedule.next_wake_ns(1_000, 0) == 1_000, "the rest follows at once, if there is room"
    schedule.count(1, MINE)
    assert schedule.next_wake_ns(1_000, 0) is None
    schedule.wake_due(0)
    assert sum(part.room_count for part in parts) == ROOM_TOLD_MAX, "it is full again"
    schedule.count(-1, MINE)
    schedule.wake_due(0)
    assert [part.room_count for part in parts] == [1] * len(parts)
    assert schedule.next_wake_ns(1_000, 0) is None


def test_few_entries_find_room_beside_a_subscription_that_fills_the_memory() -> None:
    schedule = DelaySchedule()
    schedule.memory_bytes_max = 32 * INDEXED_BYTES
    schedule.count(31, MINE)
    assert schedule.has_room_for(31, MINE)
    schedule.count(1, MINE)
    assert not schedule.has_room_for(32, MINE)
    assert schedule.has_room_for(1, MINE)
    assert not schedule.has_room_for(2, MINE)
    schedule.count(15, MINE)
    assert schedule.has_room_for(1, MINE)
    schedule.count(1, MINE)
    assert not schedule.has_room_for(0, MINE)


def test_many_small_subscriptions_of_a_tenant_leave_room_to_others() -> None:
    schedule = DelaySchedule()
    schedule.memory_bytes_max = 32 * INDEXED_BYTES
    while schedule.has_room_for(0, MINE):
        schedule.count(1, MINE)
    assert schedule.entries == 48
    assert schedule.has_room_for(100, OTHER)
    schedule.count(15, OTHER)
    assert schedule.has_room_for(15, OTHER)
    schedule.count(1, OTHER)
    assert not schedule.has_room_for(16, OTHER)
