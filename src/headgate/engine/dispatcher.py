"""The dispatcher of a subscription: the loop from backlog to consumer that all types share.

A dispatcher checks in this order: is there backlog, is a consumer ready, do the budgets allow the
next entry, is the entry in memory? At the first no it waits in exactly one state of the account
(docs/telemetry.md 1), with one cause, until an event wakes it. Budgets are charged in the turn that
sends the entry (law 1.3). The two subclasses decide what differs between the types: which entry is
next, which consumer takes it, and what an acknowledgement ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import filterfalse
from typing import TYPE_CHECKING, Protocol
from weakref import proxy

from headgate.base.ack_set import AckSet
from headgate.base.ack_words import words_of
from headgate.base.chunk import Chunk
from headgate.base.names import TopicName
from headgate.base.work_units import FORGOTTEN_BYTES_PER_UNIT
from headgate.engine.cache import TopicCache
from headgate.engine.consumer import Consumer
from headgate.engine.delay_schedule import DelaySchedule
from headgate.engine.delayed_delivery import DelayedDelivery
from headgate.engine.delayed_entries import DelayedEntries, DueTimeOf
from headgate.engine.engine_limits import EngineLimits, UnackedLimits
from headgate.engine.ports import EntryLog, RunningTotals
from headgate.engine.remembered_budget import RememberedBudget
from headgate.engine.types import NotReady, SubscriptionType
from headgate.flow.account.account import LABELS, Account, Cell, throttled_cell
from headgate.flow.limits.waiter_gate import WaiterGate
from headgate.flow.quota.backlog import Amounts

if TYPE_CHECKING:
    from headgate.engine.throttled_dispatch import ThrottledDispatch

RUN_ENTRIES_MAX = 64
"""Entries that are looked up at once if nothing forbids to send them together."""

ENTRY_BYTES_PER_UNIT_BITS = 14
"""Entries of 16 KiB that are sent count as an entry more: over TLS they are encrypted, a megabyte
in a millisecond. The usual small ones cost nothing."""

READ_AHEAD_ENTRIES = 64
"""The next read of old entries starts when fewer than this many are in memory."""

READ_ALL = 1 << 30
"""As many entries as one read may bring."""

NOT_READY_CELLS = {
    NotReady.NO_CONSUMER: Cell.NO_CONSUMER,
    NotReady.UNACKED_LIMIT: Cell.UNACKED_LIMIT,
    NotReady.NO_PERMITS: Cell.NO_PERMITS,
    NotReady.SOCKET_FULL: Cell.SOCKET_FULL,
}


NO_AMOUNTS = Amounts(0, 0, 0)


class DispatchEngine(Protocol):
    """The engine, as far as dispatch needs it."""

    now_ns: int
    now_ms: int
    limits: EngineLimits
    throttle_counts_entries: bool
    throttle_spares_caught_up: bool
    due_time_of: DueTimeOf
    delays: DelaySchedule
    remembered: RememberedBudget

    def wake_at(self, when_ns: int, action: Callable[[], None], /) -> None:
        """Run ``action`` in the first flush at or after ``when_ns``."""


class DispatchedTopic(Protocol):
    """The topic of a subscription, as far as dispatch needs it."""

    name: TopicName
    partition: int
    log: EntryLog
    cache: TopicCache
    is_system: bool
    delays_stop: int
    delayed_delivery: DelayedDelivery
    unacked_limits: UnackedLimits
    terminated: bool
    chunks_stop: int

    def may_have_chunks(self) -> None:
        """Later entries may be chunks, or wait for one."""

    def chunk_of(self, ordinal: int, body: bytes, /) -> Chunk | None:
        """The chunk that an entry is; None if it is none."""

    def look(self, look: Callable[[bytes], int], ordinal: int, body: bytes, /) -> int:
        """What ``look`` finds in an entry: of a large one it is remembered."""

    @property
    def engine(self) -> DispatchEngine:
        """The engine of the topic."""

    def is_looked_up(self, action: Callable[[], object], again: Callable[[], None], /) -> bool:
        """Whether a look-up of entries succeeded; else ``again`` follows when the index is read."""


class DispatchedSubscription(Protocol):
    """The subscription that a dispatcher delivers to, as far as dispatch needs it."""

    acks: AckSet
    gate: WaiterGate
    account: Account
    consumers: dict[Consumer, None]
    throttled: bool
    throttled_dispatch: ThrottledDispatch
    fenced: bool
    removed: bool
    done_entries: int
    done_messages: int
    done_bytes: int
    messages_sent: int
    bytes_sent: int
    entries_sent: int
    last_sent_ms: int
    read_failed: str

    @property
    def topic(self) -> DispatchedTopic:
        """The topic of the subscription."""

    def wake(self) -> None:
        """Dispatch again before the turn ends."""

    def read(self, ordinal: int, /) -> None:
        """Read entries from ``ordinal`` on into the topic's cache."""

    def acked_within(self, first: int, stop: int, /) -> Amounts:
        """What is acknowledged of the entries from ``first`` to before ``stop``."""


class Dispatcher(ABC):
    """Delivers one subscription's entries to its consumers."""

    type: SubscriptionType

    __slots__ = (
        "behind",
        "delayed",
        "holders_searched_count",
        "paused_until_ns",
        "read_ordinal",
        "reading",
        "redelivery_counts",
        "subscription",
    )

    def __init__(self, subscription: DispatchedSubscription) -> None:
        self.subscription = subscription
        self.read_ordinal = subscription.acks.mark_delete + 1
        """Everything below it was delivered. Entries to redeliver are known separately."""
        self.reading = False
        self.behind = False
        """Whether entries are being read from disk ahead of delivery."""
        self.paused_until_ns = 0
        """Failover: a newly active consumer gets nothing before then."""
        self.redelivery_counts: dict[int, int] = {}
        """How often each entry was redelivered, for entries where that is not 0."""
        self.holders_searched_count = 0
        """Consumers that were searched for entries which others acknowledged: work of ACKs."""
        self.delayed: DelayedEntries | None = None
        """The entries that are put aside; created with the first of them."""

    # -- what the types decide -------------------------------------------------------------

    @abstractmethod
    def next_run(self) -> tuple[int, int]:
        """The entry to deliver next, and one past the last entry that may follow it directly to
        the same consumer; (-1, -1) if everything deliverable was delivered."""

    @abstractmethod
    def pick(self) -> Consumer | NotReady:
        """The consumer that takes the next entry, or why none is ready."""

    @abstractmethod
    def room_messages(self, consumer: Consumer) -> int:
        """How many messages the picked consumer may get now, at least 1. The last entry may exceed
        it, because entries are never split."""

    @abstractmethod
    def sent(
        self, consumer: Consumer, first: int, stop: int, messages: int, acked_messages: int
    ) -> None:
        """Account that the entries from ``first`` to before ``stop`` were sent, with ``messages``
        that are not acknowledged. ``acked_messages`` of them were, which is 0 unless it is a single
        entry."""

    def unacked_limits_changed(self) -> None:  # noqa: B027 - most types have no such limits
        """The limits on the unacknowledged messages of its topic have changed."""

    @abstractmethod
    def permits(self) -> int:
        """Permits of the eligible consumers: messages requested and not yet sent."""

    @abstractmethod
    def is_hungry(self) -> bool:
        """Whether an eligible consumer has half of its window free (docs/telemetry.md 1)."""

    @abstractmethod
    def consumer_added(self, consumer: Consumer) -> None:
        """A consumer connected."""

    @abstractmethod
    def consumer_removed(self, consumer: Consumer) -> None:
        """A consumer left; it is no longer in the subscription's list."""

    @abstractmethod
    def consumer_ready(self, consumer: Consumer) -> None:
        """A consumer may have become ready."""

    @abstractmethod
    def acked(self, consumer: Consumer | None, ordinal: int, messages: int) -> None:
        """A consumer, or an administrator (None), acknowledged an entry: perhaps not for the first
        time, perhaps without being sent, perhaps one that another consumer holds."""

    @abstractmethod
    def messages_acked(self, consumer: Consumer, ordinal: int, messages: int) -> None:
        """A consumer acknowledged ``messages`` of an entry for the first time, and the entry still
        has others. Perhaps another consumer holds it, or none."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, ordinals: list[int] | None) -> int:
        """A consumer asks for redelivery; returns how many messages will be redelivered."""

    @abstractmethod
    def cursor_moved(self) -> None:
        """An administrator or a seek moved the cursor."""

    @property
    @abstractmethod
    def needs_passed(self) -> bool:
        """Whether it has yet to look up entries that the cursor may have passed: until then none of
        the topic's entries are trimmed."""

    @property
    def remembered_bytes(self) -> int:
        """Memory of what is remembered of entries that no consumer holds."""
        return 0

    def forgotten_units(self) -> int:
        """The units that a consumer takes which leaves as the last one, because most of what is
        remembered is forgotten then; 0 while there are others."""
        if len(self.subscription.consumers) != 1:
            return 0
        return self.remembered_bytes // FORGOTTEN_BYTES_PER_UNIT

    @abstractmethod
    def in_flight_messages(self) -> int:
        """Messages delivered to connected consumers and not acknowledged."""

    @abstractmethod
    def to_redeliver(self) -> Amounts:
        """What waits for redelivery, without the acknowledged messages of partly acknowledged
        entries."""

    # -- the loop --------------------------------------------------------------------------

    def pump(self, now_ns: int, entries_max: int) -> int:
        """Deliver up to ``entries_max`` entries, fewer large ones; returns how many were sent, with
        their bytes.

        Afterwards the account stands in the state that holds at ``now_ns``.
        """
        subscription = self.subscription
        cache, gate, account = subscription.topic.cache, subscription.gate, subscription.account
        log = subscription.topic.log
        if subscription.fenced or self.paused_until_ns > now_ns:
            self._rest(Cell.TRANSITION, now_ns)
            return 0
        if gate.exempt and not self.is_exempt():
            gate.set_exempt(False, now_ns)
        sent = 0
        while True:
            first, stop = self.next_run()
            if first < 0:
                done = subscription.done_entries >= subscription.topic.log.end
                self._rest(Cell.CAUGHT_UP if done else self.cell_of_rest(), now_ns)
                if done and subscription.topic.terminated:
                    self._report_end()
                if subscription.topic.engine.throttle_spares_caught_up and not gate.exempt:
                    gate.set_exempt(self.is_exempt(), now_ns)
                return sent
            consumer = self.pick()
            if not isinstance(consumer, Consumer):
                self._rest(NOT_READY_CELLS[consumer], now_ns)
                return sent
            if gate.limited:
                stop = first + 1  # budgets are checked for each entry
                if self._refused(now_ns):
                    if first not in cache:
                        self._read(first)
                    return sent
            totals = log.running_totals(first, stop) if first in cache else None
            if totals is None:
                self._read(first)
                if gate.limited:
                    gate.defer(now_ns)
                if account.cell is not Cell.STORAGE:
                    account.move(Cell.STORAGE, now_ns)
                return sent
            if sent >= entries_max:
                if account.cell is not Cell.DISPATCHING:
                    account.move(Cell.DISPATCHING, now_ns)
                subscription.wake()
                return sent
            first_stop = first + entries_max - sent
            sent += self._hand_over(consumer, first, first_stop, totals, now_ns)

    def _hand_over(
        self, consumer: Consumer, first: int, entries_stop: int, totals: RunningTotals, now_ns: int
    ) -> int:
        """Send entries from ``first`` on, as far as ``totals`` reach and to before
        ``entries_stop``, while they are in memory and the consumer has room for them: at least
        one. Returns how many, with their bytes (:data:`ENTRY_BYTES_PER_UNIT_BITS`)."""
        subscription = self.subscription
        topic = subscription.topic
        log, cache, partition = topic.log, topic.cache, topic.partition
        messages_before, bytes_before, base, stop = totals
        before = messages_before[first - base]
        room = self.room_messages(consumer)
        stop = min(stop, entries_stop, first + room)
        while stop - first > 1 and messages_before[stop - 1 - base] - before >= room:
            stop -= 1
        acked = 0
        left: tuple[int, ...] = ()
        if subscription.acks.partials is not None:
            stop, acked, left = self._up_to_partial(first, stop)
        position, counts, send_entry = (
            log.position,
            self.redelivery_counts,
            consumer.port.send_entry,
        )
        for ordinal in range(first, stop):
            body = cache.get(ordinal)
            if body is None:
                stop = ordinal
                break
            count = counts.get(ordinal, 0) if counts else 0
            if send_entry(consumer, position(ordinal), partition, count, body, left):
                stop = ordinal + 1
                break
        entries = stop - first
        messages = messages_before[stop - base] - before
        size = bytes_before[stop - base] - bytes_before[first - base]
        if acked:
            messages -= acked
            consumer.uncharged_messages += acked
        self.sent(consumer, first, stop, messages, acked)
        engine = topic.engine
        if subscription.gate.limited:
            counted = entries if engine.throttle_counts_entries else messages
            subscription.gate.charge(now_ns, counted, size)
        consumer.account_sent(entries, messages, size, engine.now_ms)
        subscription.messages_sent += messages
        subscription.bytes_sent += size
        subscription.entries_sent += entries
        subscription.last_sent_ms = engine.now_ms
        if self.behind:
            self._read_ahead(first, stop)
        return entries + (size >> ENTRY_BYTES_PER_UNIT_BITS)

    def cell_of_rest(self) -> Cell:
        """The state while there is a backlog of which nothing can be delivered: consumers hold it,
        or a staged trim removes it."""
        return Cell.AWAITING_ACK if self.subscription.consumers else Cell.NO_CONSUMER

    def entries_to_read(self, ordinal: int) -> int:  # noqa: ARG002
        """How many entries from ``ordinal`` on a read from disk should bring at most."""
        return READ_ALL

    def close(self) -> None:
        """The subscription is gone, or another dispatcher delivers to it."""
        if self.delayed is not None:
            self.delayed.close()

    def leave(self) -> None:
        """Close, and keep the removed subscription in memory no longer: without this cycle it is
        freed at once, and with it only by a complete collection, before which one client could make
        gigabytes of them. Whoever still uses the subscription holds it."""
        self.close()
        self.subscription = proxy(self.subscription)
        if self.delayed is not None:
            self.delayed.leave(self.subscription)

    def _up_to_partial(self, first: int, stop: int) -> tuple[int, int, tuple[int, ...]]:
        """How far the entries from ``first`` on go out together: to before the next partly
        acknowledged one. If that is ``first``, it goes alone: with how many of its messages are
        acknowledged, and the words that say which are left."""
        acks = self.subscription.acks
        partials = acks.partials
        if partials is None:
            return stop, 0, ()
        left = partials.left_of(first)
        if left is not None:
            return first + 1, left[0], words_of(left[1])
        return partials.first_within(first + 1, stop), 0, ()

    def _report_end(self) -> None:
        """Everything is acknowledged and nothing follows: notify each consumer once."""
        for consumer in self.subscription.consumers:
            if not consumer.told_end:
                consumer.told_end = True
                consumer.port.end_reached(consumer.consumer_id)

    def is_exempt(self) -> bool:
        """Whether no limit applies: on the broker's own topics, and for caught-up subscriptions if
        ``dispatchThrottlingOnNonBacklogConsumerEnabled=false``.

        A subscription is caught up when everything was delivered. It stays so while it has a
        consumer and no more than ``managedLedgerCursorBackloggedThreshold`` entries wait for it.
        """
        subscription = self.subscription
        topic = subscription.topic
        if topic.is_system:
            return True
        if not topic.engine.throttle_spares_caught_up or not subscription.consumers:
            return False
        waiting = topic.log.end - max(self.read_ordinal, topic.log.first)
        waiting += self.to_redeliver().entries
        if subscription.gate.exempt:
            return waiting <= topic.engine.limits.backlogged_entries_min
        return waiting <= 0

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes that no consumer has and that are not acknowledged. While the index of
        the next entry is on the disk, with up to 127 entries before it, or, if later entries are
        acknowledged, as many bytes as the backlog has on average; so also if very many runs of
        later entries are acknowledged, because a limiter asks for this at each message that
        comes."""
        log = self.subscription.topic.log
        first = max(self.read_ordinal, log.first)
        _, messages, size = self.to_redeliver()
        if first >= log.memory_first:
            before_messages, before_bytes = log.messages_before(first), log.bytes_before(first)
        else:
            before = log.totals_near(first)[0]
            before_messages, before_bytes = before.messages, before.size_bytes
        messages += log.messages_before(log.end) - before_messages
        size += log.bytes_before(log.end) - before_bytes
        if self.delayed is not None:
            _, delayed_messages, delayed_bytes = self.delayed.unread_amounts(first)
            messages -= delayed_messages
            size -= delayed_bytes
        acks = self.subscription.acks
        holes = acks.holes_count
        partials = acks.partials
        if (partials is not None and partials.highest >= first) or (
            holes and holes > acks.holes_below(first)
        ):
            if first < log.memory_first or not acks.has_few_runs_from(first):
                return self._waiting_of_backlog()
            _, acked_messages, acked_bytes = self.subscription.acked_within(first, log.end)
            messages -= acked_messages
            size -= acked_bytes
        return messages, size

    def _waiting_of_backlog(self) -> tuple[int, int]:
        """About :meth:`waiting`, without a look-up of an entry."""
        subscription = self.subscription
        log = subscription.topic.log
        backlog_messages = log.messages_before(log.end) - subscription.done_messages
        backlog_bytes = log.bytes_before(log.end) - subscription.done_bytes
        if self.delayed is not None:
            backlog_messages -= self.delayed.not_due.messages
            backlog_bytes -= self.delayed.not_due.size_bytes
        messages = max(backlog_messages - self.in_flight_messages(), 0)
        return messages, backlog_bytes * messages // max(backlog_messages, 1)

    def _refused(self, now_ns: int) -> bool:
        """Check the budgets; if they refuse, move the account to the state of the refusing one."""
        subscription = self.subscription
        gate, account = subscription.gate, subscription.account
        waited, amounts = subscription.throttled, subscription.throttled_dispatch
        if waited:
            amounts.count_delayed(self)  # messages that came meanwhile are delayed, too
        if waited and (cause := gate.cause(now_ns)) is not None:
            if not gate.is_sole:
                # Of several binding budgets, the one that releases last caused the whole wait.
                hungry = LABELS[account.cell].consumer == "hungry"
                account.reassign(throttled_cell(cause.level, cause.dimension, hungry=hungry))
            self.count_late(now_ns)
        refusal = gate.request(now_ns)
        if refusal is None:
            subscription.throttled = False
            return False
        subscription.throttled = True
        amounts.count_delayed(self)
        cell = throttled_cell(refusal.level, refusal.dimension, hungry=self.is_hungry())
        account.move(cell, now_ns)
        return True

    def count_late(self, now_ns: int) -> None:
        """Count the part of a wait at a limiter that the broker caused: the limiter allowed the
        next entry, and the broker sent it too late to catch up (law 1.2). A busy consumer loses
        nothing by that."""
        subscription = self.subscription
        gate, account = subscription.gate, subscription.account
        late_ns = gate.late_ns(gate.cause(now_ns))
        if late_ns and LABELS[account.cell].consumer == "hungry":
            account.reassign_part(Cell.DISPATCHING, late_ns, now_ns)

    def _rest(self, cell: Cell, now_ns: int) -> None:
        """Leave the queues of the budgets: something else prevents sending."""
        subscription = self.subscription
        if subscription.gate.limited:
            subscription.gate.leave(now_ns)
        if subscription.throttled:
            subscription.throttled = False
            subscription.throttled_dispatch.count_delayed(self)
        if subscription.account.cell is not cell:
            subscription.account.move(cell, now_ns)

    def _read(self, ordinal: int) -> None:
        if not self.reading:
            self.reading = True
            # Without its index, an entry in memory is no reason to read later ones ahead.
            self.behind = self.behind or ordinal not in self.subscription.topic.cache
            self.subscription.read(ordinal)

    def _read_ahead(self, first: int, stop: int) -> None:
        """Request the next read before the entries in memory are used up; those from ``first`` to
        before ``stop`` were just sent."""
        topic = self.subscription.topic
        end, cache = topic.log.end, topic.cache
        ahead_stop = stop + READ_AHEAD_ENTRIES
        if not self.reading:
            ahead = range(first + READ_AHEAD_ENTRIES, min(ahead_stop, end))
            missing = next(filterfalse(cache.__contains__, ahead), None)
            if missing is not None:
                # Entries before it may be missing too, if the last read ended late.
                while missing > stop and missing - 1 not in cache:
                    missing -= 1
                self._read(missing)
        if ahead_stop > end:
            self.behind = False
