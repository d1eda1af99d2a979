"""From backlog to consumer: the one loop that every subscription type shares.

A dispatcher asks, in this order: is there backlog, is a consumer ready, do the budgets allow the
next entry, is it in memory. Where the answer is no it rests in exactly one state of the account
(docs/telemetry.md 1), with one cause, until an event wakes it. Budgets are charged in the turn that
hands the entry over (law 1.3). What differs between types (which entry is next, who takes it, what
an acknowledgement ends) is in the two subclasses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from headgate.engine.consumer import Consumer
from headgate.engine.types import Hold, SubscriptionType
from headgate.flow.account import LABELS, Cell, is_hungry, throttled_cell

if TYPE_CHECKING:
    from headgate.engine.subscription import Subscription

READ_AHEAD_ENTRIES = 64
"""A reader of old entries asks for the next lot when fewer than this many are in memory."""

HOLD_CELLS = {
    Hold.NO_CONSUMER: Cell.NO_CONSUMER,
    Hold.UNACKED_LIMIT: Cell.UNACKED_LIMIT,
    Hold.NO_PERMITS: Cell.NO_PERMITS,
    Hold.SOCKET_FULL: Cell.SOCKET_FULL,
}


class Dispatcher(ABC):
    """Delivers one subscription's entries to its consumers."""

    type: SubscriptionType

    __slots__ = ("behind", "paused_until_ns", "reading", "subscription")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.reading = False
        self.behind = False
        """Whether entries are being read from disk ahead of delivery."""
        self.paused_until_ns = 0
        """Failover: the newly active consumer waits until then."""

    # -- what the types decide -------------------------------------------------------------

    @abstractmethod
    def next_ordinal(self) -> int:
        """The entry to deliver next; -1 when everything deliverable was delivered."""

    @abstractmethod
    def pick(self) -> Consumer | Hold:
        """The consumer that takes it, or what stops all of them."""

    @abstractmethod
    def sent(self, consumer: Consumer, ordinal: int, messages: int) -> int:
        """Account the hand-over; return the entry's redelivery count."""

    @abstractmethod
    def eligible(self) -> list[Consumer]:
        """Consumers that could take the next entry if they were ready."""

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
    def acked(self, ordinal: int, messages: int) -> None:
        """An entry was acknowledged (perhaps again, perhaps never sent)."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, ordinals: list[int] | None) -> int:
        """Take entries back from a consumer; return how many messages that were."""

    @abstractmethod
    def cursor_moved(self) -> None:
        """The cursor was moved by an administrator or a seek."""

    @abstractmethod
    def in_flight_messages(self) -> int:
        """Messages delivered to connected consumers and not acknowledged."""

    @abstractmethod
    def replay_messages(self) -> int:
        """Messages given back and waiting to be delivered again."""

    # -- the loop --------------------------------------------------------------------------

    def pump(self, now_ns: int, entries_max: int) -> int:
        """Deliver up to ``entries_max`` entries; return how many went.

        Afterwards the account stands in the state that holds at ``now_ns``.
        """
        subscription = self.subscription
        topic = subscription.topic
        log, cache, gate = topic.log, topic.cache, subscription.gate
        account = subscription.account
        count_entries = topic.engine.throttle_counts_entries
        now_ms, partition = topic.engine.now_ms, topic.partition
        if subscription.fenced or self.paused_until_ns > now_ns:
            self._rest(Cell.TRANSITION, now_ns)
            return 0
        sent = sent_messages = sent_bytes = 0
        while True:
            ordinal = self.next_ordinal()
            if ordinal < 0:
                done = subscription.done_entries >= log.end
                self._rest(Cell.CAUGHT_UP if done else Cell.AWAITING_ACK, now_ns)
                break
            consumer = self.pick()
            if not isinstance(consumer, Consumer):
                self._rest(HOLD_CELLS[consumer], now_ns)
                break
            if gate.limited and self._refused(now_ns):
                if ordinal not in cache:
                    self._read(ordinal)
                break
            body = cache.get(ordinal)
            if body is None:
                self._read(ordinal)
                if gate.limited:
                    gate.defer(now_ns)
                if account.cell is not Cell.STORAGE:
                    account.move(Cell.STORAGE, now_ns)
                break
            if sent >= entries_max:
                if account.cell is not Cell.DISPATCHING:
                    account.move(Cell.DISPATCHING, now_ns)
                subscription.wake()
                break
            messages = log.message_count(ordinal)
            size = len(body)
            count = self.sent(consumer, ordinal, messages)
            if gate.limited:
                gate.charge(now_ns, 1 if count_entries else messages, size)
            consumer.permits -= messages
            consumer.messages_sent += messages
            consumer.bytes_sent += size
            consumer.entries_sent += 1
            consumer.last_sent_ms = now_ms
            consumer.port.send_entry(consumer, log.position(ordinal), partition, count, body)
            sent += 1
            sent_messages += messages
            sent_bytes += size
            if self.behind:
                self._read_ahead(ordinal + READ_AHEAD_ENTRIES)
        if sent:
            subscription.messages_sent += sent_messages
            subscription.bytes_sent += sent_bytes
            subscription.entries_sent += sent
            subscription.last_sent_ms = now_ms
        return sent

    def _refused(self, now_ns: int) -> bool:
        """Ask the budgets; when they refuse, the account says which, and who waits for whom."""
        subscription = self.subscription
        gate, account = subscription.gate, subscription.account
        waited = subscription.throttled
        if waited and (cause := gate.cause(now_ns)) is not None:
            # Of several budgets that bind, the one that releases last caused all of the wait.
            hungry = LABELS[account.cell].consumer == "hungry"
            account.retell(throttled_cell(cause.level, cause.dimension, hungry=hungry))
        refusal = gate.request(now_ns)
        if refusal is None:
            subscription.throttled = False
            return False
        subscription.throttled = True
        hungry = any(is_hungry(c.permits, c.window) for c in self.eligible())
        account.move(throttled_cell(refusal.level, refusal.dimension, hungry=hungry), now_ns)
        return True

    def _rest(self, cell: Cell, now_ns: int) -> None:
        """Nothing more can go for a reason that no budget has: stop waiting at the budgets."""
        subscription = self.subscription
        if subscription.gate.limited:
            subscription.gate.leave(now_ns)
        subscription.throttled = False
        if subscription.account.cell is not cell:
            subscription.account.move(cell, now_ns)

    def _read(self, ordinal: int) -> None:
        if not self.reading:
            self.reading = self.behind = True
            self.subscription.topic.engine.effects.read(self.subscription, ordinal)

    def _read_ahead(self, ordinal: int) -> None:
        """Ask for the next lot before the present one is used up."""
        topic = self.subscription.topic
        if ordinal >= topic.log.end:
            self.behind = False
        elif not self.reading and ordinal not in topic.cache:
            self._read(ordinal)
