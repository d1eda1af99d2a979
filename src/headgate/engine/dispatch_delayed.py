"""Dispatch of delayed entries: a dispatcher puts aside what is not due.

It looks at each entry of a topic that may hold delayed ones, when it is next and in memory. A topic
without delayed messages pays one comparison for each run of entries.
"""

from __future__ import annotations

from abc import abstractmethod

from headgate.base.work_units import PUT_ASIDE
from headgate.engine.delayed_entries import DUE_ENTRIES_MAX, DelayedEntries
from headgate.engine.dispatcher import READ_ALL, DispatchedSubscription, Dispatcher
from headgate.engine.large_entry_looks import SMALL_BYTES
from headgate.engine.ports import RunningTotals
from headgate.flow.account.account import Cell

PUT_ASIDE_MAX = 64
"""Delayed entries that are put aside at once; if more follow one another, the next turns put them
aside."""

DELAYS_FULL = (
    "the memory for delayed messages is full (headgateDelayedIndexMemoryMB): messages behind them "
    "wait until some are due"
)


class DelayingDispatcher(Dispatcher):
    """A dispatcher that delivers delayed entries when they are due."""

    __slots__ = ("_aside_count", "_undelayed_stop")

    def __init__(self, subscription: DispatchedSubscription) -> None:
        super().__init__(subscription)
        self._aside_count = 0
        """Entries that were put aside in this turn."""
        self._undelayed_stop = 0
        """The entries from the one that is delivered next to before this one are not delayed."""

    def _take_due(self) -> int:
        """Begin a turn: returns how many entries became due."""
        self._aside_count = 0
        if self.delayed is None:
            return 0
        return self.delayed.take_due(self.subscription.topic.engine.now_ms)

    @abstractmethod
    def _queue_again(self, ordinal: int, messages: int, size_bytes: int) -> None:
        """Queue an entry for delivery although later ones were delivered."""

    def _queue_due(self) -> bool:
        """Queue the next delayed entry that is due; False if there is none."""
        delayed = self.delayed
        entry = None if delayed is None else delayed.take(self.subscription.acks, self.read_ordinal)
        if entry is None:
            return False
        self._queue_again(entry.ordinal, entry.messages, entry.size_bytes)
        return True

    def _undelayed(self, first: int, stop: int, length_max: int) -> tuple[int, int]:
        """The first run, from a run of unacknowledged entries on, that is due, not delayed or not
        in memory; twice -1 if there is none. It puts aside the entries before it."""
        if first < self._undelayed_stop:
            return first, min(stop, self._undelayed_stop)
        return self._after_delayed(first, stop, length_max)

    def _after_delayed(self, first: int, stop: int, length_max: int) -> tuple[int, int]:
        subscription = self.subscription
        acks, topic = subscription.acks, subscription.topic
        log, cache = topic.log, topic.cache
        while True:
            if self.delayed is not None:
                first, stop = self.delayed.next_unknown(first, stop)
            self.read_ordinal = first
            if first >= stop:
                first, stop = acks.unacked_run(first, log.end, length_max)
                if first >= stop:
                    self.read_ordinal = first
                    return -1, -1
                if self._aside_count >= PUT_ASIDE_MAX:
                    return -1, -1
                self._aside_count += 1  # also what is aside already takes a step
                continue
            totals = log.running_totals(first, stop) if first in cache else None
            if totals is None:
                return first, stop
            deliverable_stop, due_ms = self._deliverable_stop(first, min(stop, totals[3]))
            if deliverable_stop > first:
                self._undelayed_stop = deliverable_stop
                return first, deliverable_stop
            if self._aside_count >= PUT_ASIDE_MAX or not self._put_aside(first, due_ms, totals):
                return -1, -1
            self._aside_count += 1
            first += 1

    def _deliverable_stop(self, first: int, stop: int) -> tuple[int, int]:
        """One past the last entry in memory that is due or not delayed, from ``first`` on, and when
        the one behind it is due; 0 if it is not delayed or not in memory."""
        topic = self.subscription.topic
        engine, cache = topic.engine, topic.cache
        due_time_of, now_ms = engine.due_time_of, engine.now_ms
        is_active = topic.delayed_delivery.active
        for ordinal in range(first, stop):
            body = cache.get(ordinal)
            if body is None:
                return ordinal, 0
            is_small = len(body) <= SMALL_BYTES
            due_ms = due_time_of(body) if is_small else topic.look(due_time_of, ordinal, body)
            if due_ms and is_active:
                if due_ms > now_ms:
                    return ordinal, due_ms
                self._ensure_delayed().due_since[ordinal] = due_ms
        return stop, 0

    def _put_aside(self, ordinal: int, due_ms: int, totals: RunningTotals) -> bool:
        """Put aside an entry that is not due; False if there is no memory for it."""
        messages_before, bytes_before, base, _ = totals
        place = ordinal - base
        messages = messages_before[place + 1] - messages_before[place]
        size_bytes = bytes_before[place + 1] - bytes_before[place]
        return self._ensure_delayed().put_aside(ordinal, due_ms, messages, size_bytes)

    def _ensure_delayed(self) -> DelayedEntries:
        if self.delayed is None:
            topic = self.subscription.topic
            tenant = topic.name.tenant
            self.delayed = DelayedEntries(topic.engine.delays, self.subscription, tenant)
        return self.delayed

    def cell_of_rest(self) -> Cell:
        delayed = self.delayed
        if delayed is not None and delayed.not_due.entries and not self.in_flight_messages():
            return Cell.NOT_DUE
        return super().cell_of_rest()

    def entries_to_read(self, ordinal: int) -> int:
        if self.delayed is None or ordinal not in self.delayed.due_since:
            return READ_ALL
        return self.delayed.read_stop(ordinal) - ordinal

    def _is_delivered(self, ordinal: int) -> bool:
        """Whether an entry that does not wait for redelivery may be with a consumer."""
        if ordinal < self.read_ordinal:
            return True
        return self.delayed is not None and ordinal in self.delayed.ahead

    def _rest_of_delayed(self, became_due: int, now_ns: int) -> int:
        """Continue with delayed entries in the next turn, or say why that is not possible; returns
        the units of those that were put aside."""
        subscription, account = self.subscription, self.subscription.account
        is_idle = account.cell in (Cell.AWAITING_ACK, Cell.NOT_DUE)
        if self.delayed is not None and self.delayed.is_stalled and is_idle:
            subscription.read_failed = DELAYS_FULL
            account.move(Cell.STORAGE, now_ns)
        elif subscription.read_failed is DELAYS_FULL:
            subscription.read_failed = ""
        if self._aside_count >= PUT_ASIDE_MAX or became_due >= DUE_ENTRIES_MAX:
            if is_idle:
                account.move(Cell.DISPATCHING, now_ns)
            subscription.wake()
        return self._aside_count * PUT_ASIDE
