"""The delayed entries of one Shared subscription: which are not due, which wait for a consumer.

The dispatcher looks at each entry before it delivers it. An entry that is not due is put aside: it
is known by its ordinal, and read again when it is due. So after a restart the entries of the
backlog are found by reading it once, and none is delivered early meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from headgate.base.ack_set import AckSet
from headgate.engine.delay_schedule import NEVER_MS, DelaySchedule
from headgate.engine.delayed_index import CHUNK_ENTRIES, DelayedIndex, TimedEntry
from headgate.engine.ports import EntryLog
from headgate.flow.quota.backlog import Amounts

DUE_ENTRIES_MAX = CHUNK_ENTRIES
"""Entries that a subscription moves from "not due" to "due" at once, about; a turn of the loop more
if there are more."""

DUE_CHUNKS_MAX = 8
"""Chunks of the index that are looked at for that: if due times are spread over many chunks, each
look finds few entries and costs some 50 us. What is left is due at once, in the next turn."""

READ_SPAN_ENTRIES = 512
"""How far behind a due entry others are looked for, to be read with it."""

DENSE_SHARE = 8
"""They are read with it if at least one of so many entries in between is due."""

AGE_STEPS_MAX = 256
"""Steps of one search for the oldest message that was never delayed."""


class Waker(Protocol):
    """The subscription, as far as delayed entries need it."""

    def wake(self) -> None:
        """Dispatch again before the turn ends."""


class DelayedEntries:
    """What one subscription has put aside. Implements
    :class:`headgate.engine.delay_schedule.DelayedSubscription`."""

    __slots__ = (
        "_age_ordinal",
        "_schedule",
        "_tenant",
        "_waker",
        "ahead",
        "due",
        "due_since",
        "is_stalled",
        "next_due_ms",
        "not_due",
    )

    def __init__(self, schedule: DelaySchedule, waker: Waker, tenant: str) -> None:
        """``tenant`` is that of the subscription."""
        self._schedule = schedule
        self._waker = waker
        self._tenant = tenant
        self.not_due = DelayedIndex()
        """Entries that are not due; their time is when they are."""
        self.due = DelayedIndex()
        """Entries that were put aside, are due and are not delivered since."""
        self.due_since: dict[int, int] = {}
        """When entries became due that were delayed and are delivered, until they are
        acknowledged."""
        self.ahead: set[int] = set()
        """Entries that were delivered because they became due while the dispatcher, which started
        again at the first unacknowledged entry, has not come to them yet."""
        self.next_due_ms = NEVER_MS
        self.is_stalled = False
        """Whether an entry could not be put aside because the memory is full."""
        self._age_ordinal = 0
        """Below it, every entry is acknowledged or was delayed."""

    # -- putting aside, becoming due -------------------------------------------------------

    def put_aside(self, ordinal: int, due_ms: int, messages: int, size_bytes: int) -> bool:
        """Put an entry aside that is not due; False if the memory is full. Then the subscription is
        woken when there is room, or when the entry is due, which needs none."""
        has_room = self._schedule.has_room_for(self.not_due.entries, self._tenant)
        if not has_room:
            self.is_stalled = True
            self._schedule.stall(self)
        else:
            self.not_due.add(ordinal, due_ms, messages, size_bytes)
            self._schedule.count(1, self._tenant)
        if due_ms < self.next_due_ms:
            self._due_at(due_ms)
        return has_room

    def _due_at(self, due_ms: int) -> None:
        self.next_due_ms = due_ms
        self._schedule.changed(self)

    def became_due(self) -> None:
        self.next_due_ms = NEVER_MS
        self._waker.wake()

    def has_room(self) -> None:
        self.is_stalled = False
        self._waker.wake()

    def take_due(self, now_ms: int) -> int:
        """Begin a turn: move what is due to the entries that wait for a consumer; returns how many,
        at least :data:`DUE_ENTRIES_MAX` if there may be more, unless that is scheduled at once."""
        self.is_stalled = False  # until this turn finds an entry without room
        taken = 0
        for _ in range(DUE_CHUNKS_MAX):
            entries = self.not_due.take_until(now_ms)
            for entry in entries:
                self.due.add(*entry)
            taken += len(entries)
            if not entries or taken >= DUE_ENTRIES_MAX:
                break
        if taken or self.next_due_ms == NEVER_MS:
            self._schedule_next()
        return taken

    def _schedule_next(self) -> None:
        earliest_ms = self.not_due.earliest_ms
        if earliest_ms is None:
            self.next_due_ms = NEVER_MS
            self._schedule.unschedule(self)
        elif earliest_ms != self.next_due_ms:
            self._due_at(earliest_ms)

    # -- delivery and acknowledgement ------------------------------------------------------

    def take(self, acks: AckSet, read_ordinal: int) -> TimedEntry | None:
        """Take the first entry that is due and waits for a consumer, to deliver it; None if there
        is none. The dispatcher comes to ``read_ordinal`` next."""
        while (ordinal := self.due.first) >= 0:
            entry = self._remove_due(ordinal)
            if entry is None or acks.is_acked(ordinal):
                continue  # the cursor has just passed it
            self.due_since[ordinal] = entry.time_ms
            if ordinal >= read_ordinal:
                self.ahead.add(ordinal)
            return entry
        return None

    def is_next_passed(self, acks: AckSet) -> bool:
        """Whether the cursor passed the entry that :meth:`take` would look at first."""
        ordinal = self.due.first
        return ordinal >= 0 and acks.is_acked(ordinal)

    def read_stop(self, ordinal: int) -> int:
        """One past the last entry to read together with a due entry: the others that are due are
        near, or it is read alone."""
        near = [ordinal, *self.due.within(ordinal + 1, ordinal + READ_SPAN_ENTRIES)]
        for count in range(len(near), 1, -1):
            if near[count - 1] - ordinal < DENSE_SHARE * count:
                return near[count - 1] + 1
        return ordinal + 1

    def _remove_due(self, ordinal: int) -> TimedEntry | None:
        entry = self.due.remove(ordinal)
        if entry is not None:
            self._schedule.count(-1, self._tenant)
        return entry

    def forget(self, ordinal: int) -> bool:
        """An entry was acknowledged; returns whether it had been put aside and not delivered."""
        self.due_since.pop(ordinal, None)
        self.ahead.discard(ordinal)  # the dispatcher passes what is acknowledged
        if self.not_due.remove(ordinal) is not None:
            self._schedule.count(-1, self._tenant)
            return True  # if it was the next one, the wake finds none and sets the next
        return self._remove_due(ordinal) is not None

    def passed(self, acks: AckSet) -> Iterator[int]:
        """Forget what a move of the cursor passed; yields after each step how many entries."""
        for index in (self.not_due, self.due):
            for count in index.remove_below(acks.mark_delete + 1):
                self._schedule.count(-count, self._tenant)
                yield count
        delivered, ahead = list(self.due_since), list(self.ahead)
        for start in range(0, max(len(delivered), len(ahead)), CHUNK_ENTRIES):
            yield 0
            stop = start + CHUNK_ENTRIES
            for ordinal in delivered[start:stop]:
                if acks.is_acked(ordinal):
                    self.due_since.pop(ordinal, None)
            self.ahead.difference_update(
                [each for each in ahead[start:stop] if acks.is_acked(each)]
            )
        self._age_ordinal = 0
        self._schedule_next()

    @property
    def delivered_count(self) -> int:
        """How many delivered entries it remembers, not acknowledged since."""
        return len(self.due_since) + len(self.ahead)

    def forget_delivered(self) -> None:
        """Forget since when delivered entries were due, as a restart does: until they are delivered
        again they count as never delayed."""
        self.due_since, self.ahead = {}, set()
        self._age_ordinal = 0

    def close(self) -> None:
        """The subscription is gone, or another dispatcher delivers to it."""
        self._schedule.count(-self.not_due.entries - self.due.entries, self._tenant)
        self._schedule.forget(self)
        self.not_due, self.due = DelayedIndex(), DelayedIndex()
        self.due_since, self.ahead = {}, set()
        self.next_due_ms = NEVER_MS

    def leave(self, waker: Waker) -> None:
        """The subscription was removed: know it by a weak reference from now on."""
        self._waker = waker

    # -- what the dispatcher and reports read ----------------------------------------------

    @property
    def entries(self) -> int:
        """Entries that are put aside and not delivered since, due or not."""
        return self.not_due.entries + self.due.entries

    @property
    def memory_bytes(self) -> int:
        """About the memory of the indexes."""
        return self.not_due.memory_bytes + self.due.memory_bytes

    def next_unknown(self, first: int, stop: int) -> tuple[int, int]:
        """The first run of entries from ``first`` to before ``stop`` that are neither put aside nor
        delivered ahead; twice ``stop`` if there is none."""
        not_due, ahead = self.not_due, self.ahead
        while first < stop:
            after = not_due.run_stop(first, stop) if first <= not_due.last else first
            if after == first:
                if first not in ahead:
                    break
                ahead.discard(first)
                after += 1
            first = after
        if first <= not_due.last and (aside := not_due.within(first, stop)):
            stop = aside[0]
        if ahead:
            stop = next(filter(ahead.__contains__, range(first, stop)), stop)
        return first, stop

    def unread_amounts(self, ordinal: int) -> Amounts:
        """What is put aside of the entries from ``ordinal`` on, which are yet to be looked at, and
        is not due."""
        return self.not_due.amounts_from(ordinal)

    def deliverable_age_ms(
        self, acks: AckSet, log: EntryLog, now_ms: int, log_ms: int
    ) -> int | None:
        """For how long the oldest message could have been delivered: since it was received or, if
        it was delayed, since it is due. None if none can be delivered.

        The search for the oldest message that was never delayed continues where it ended; while
        that takes more than one call, it counts as young.
        """
        ages = []
        if (received_ms := self._oldest_undelayed_ms(acks, log)) is not None:
            ages.append(log_ms - received_ms)
        if (due_ms := self.due.earliest_ms) is not None:
            ages.append(now_ms - due_ms)
        if self.due_since:
            ages.append(now_ms - next(iter(self.due_since.values())))
        return max(max(ages), 0) if ages else None

    def _oldest_undelayed_ms(self, acks: AckSet, log: EntryLog) -> int | None:
        ordinal = max(self._age_ordinal, acks.mark_delete + 1, log.first)
        for _ in range(AGE_STEPS_MAX):
            ordinal = acks.next_unacked(ordinal, log.end)
            if ordinal >= log.end:
                self._age_ordinal = log.end
                return None
            after = ordinal
            if ordinal <= self.not_due.last:
                after = self.not_due.run_stop(ordinal, min(ordinal + CHUNK_ENTRIES, log.end))
            if after == ordinal and (ordinal in self.due or ordinal in self.due_since):
                after += 1
            self._age_ordinal = ordinal
            if after == ordinal:
                return log.received_latest_ms(ordinal)
            ordinal = after
        self._age_ordinal = ordinal
        return None


DueTimeOf = Callable[[bytes], int]
"""When an entry is to be delivered, in milliseconds since the epoch; 0 if it is not delayed."""


def never_delayed(_: bytes) -> int:
    """No entry is delayed: a :data:`DueTimeOf`."""
    return 0
