"""Dispatch of Shared subscriptions: any ready consumer takes the next entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from heapq import heappop, heappush

from headgate.engine.consumer import Consumer
from headgate.engine.dispatcher import DispatchedSubscription, Dispatcher
from headgate.engine.types import NotReady, SubscriptionType
from headgate.flow.account.account import Cell, is_hungry
from headgate.flow.quota.backlog import Amounts

GIVE_BACK_ENTRIES = 64
"""Entries that are queued for redelivery at once; if a consumer gives back more, the next turns
queue the rest."""

ROUND_ENTRIES = 20
"""Entries that one consumer takes before the next one's turn (dispatcherMaxRoundRobinBatchSize)."""


class SharedDispatcher(Dispatcher):
    """Round robin among the ready consumers of the best priority level.

    Each consumer has the entries that it holds. What it gives back all at once passes through
    ``_returned``, in turns. ``replay`` is a heap of entries that wait for redelivery, valid while
    they are in ``replaying``, which has their messages and bytes.
    """

    type = SubscriptionType.SHARED

    __slots__ = (
        "_awaits_index",
        "_level_counts",
        "_levels",
        "_ready",
        "_returned",
        "_to_redeliver",
        "_turn_entries",
        "blocked_on_unacked",
        "replay",
        "replaying",
        "unacked_messages",
    )

    def __init__(self, subscription: DispatchedSubscription) -> None:
        super().__init__(subscription)
        self._returned: deque[_Returned] = deque()
        self.replay: list[int] = []
        self.replaying: dict[int, tuple[int, int]] = {}
        self._to_redeliver = (0, 0)
        self.unacked_messages = 0
        self.blocked_on_unacked = False
        self._ready: dict[int, deque[Consumer]] = {}
        self._levels: list[int] = []
        self._level_counts: dict[int, int] = {}
        """Connected consumers by priority level."""
        self._turn_entries = 0
        self._awaits_index = False
        """Whether the index of the next entry that a consumer gave back is being read."""

    def next_run(self) -> tuple[int, int]:
        acks = self.subscription.acks
        replay = self.replay
        while replay:
            ordinal = replay[0]
            if ordinal in self.replaying:
                return ordinal, ordinal + 1
            heappop(replay)
        log = self.subscription.topic.log
        if self.read_ordinal < log.first:
            self.read_ordinal = log.first
        left = ROUND_ENTRIES - self._turn_entries
        first, stop = acks.unacked_run(self.read_ordinal, log.end, left)
        self.read_ordinal = first
        return (first, stop) if first < stop else (-1, -1)

    def pick(self) -> Consumer | NotReady:
        if not self.blocked_on_unacked:
            for level in self._levels:
                ready = self._ready[level]
                while ready:
                    consumer = ready[0]
                    if consumer.is_ready:
                        return consumer
                    ready.popleft()
                    consumer.in_ready = False
        consumers = self.subscription.consumers
        if not consumers:
            return NotReady.NO_CONSUMER
        if self.blocked_on_unacked:
            return NotReady.UNACKED_LIMIT
        return max((_not_ready_why(c) for c in consumers), key=lambda why: why.value)

    def permits(self) -> int:
        consumers = self.subscription.consumers
        return sum([c.permits for c in consumers if c.permits > 0 and not c.blocked_on_unacked])

    def is_hungry(self) -> bool:
        return any(is_hungry(c.permits, c.window) for c in self.subscription.consumers)

    def room_messages(self, consumer: Consumer) -> int:
        limits = self.subscription.topic.engine.limits
        room = consumer.permits
        if limits.unacked_per_consumer_max > 0:
            room = min(room, limits.unacked_per_consumer_max - consumer.unacked_messages)
        if limits.unacked_per_subscription_max > 0:
            room = min(room, limits.unacked_per_subscription_max - self.unacked_messages)
        return max(room, 1)

    def sent(self, consumer: Consumer, first: int, stop: int, messages: int) -> None:
        if first in self.replaying:
            heappop(self.replay)
            self._no_replay(first)
        else:
            self.read_ordinal = stop
        held = consumer.held
        for ordinal in range(first, stop):
            held[ordinal] = None
        limits = self.subscription.topic.engine.limits
        consumer.unacked_messages += messages
        self.unacked_messages += messages
        if 0 < limits.unacked_per_consumer_max <= consumer.unacked_messages:
            consumer.blocked_on_unacked = True
        if 0 < limits.unacked_per_subscription_max <= self.unacked_messages:
            self.blocked_on_unacked = True
        self._turn_entries += stop - first
        if self._turn_entries >= ROUND_ENTRIES:
            self._next_turn(consumer)

    def pump(self, now_ns: int, entries_max: int) -> int:
        returned = self._queue_returned(entries_max) if self._returned else 0
        sent = super().pump(now_ns, entries_max)
        if sent and self._turn_entries:
            for ready in self._ready.values():
                if ready:
                    self._next_turn(ready[0])
        if self._returned:
            account = self.subscription.account
            if account.cell is Cell.AWAITING_ACK:
                account.move(Cell.DISPATCHING, now_ns)
            if not self._awaits_index:
                self.subscription.wake()
        return sent + returned

    def _next_turn(self, consumer: Consumer) -> None:
        self._turn_entries = 0
        self._ready[consumer.priority_level].rotate(-1)

    def consumer_added(self, consumer: Consumer) -> None:
        level = consumer.priority_level
        if level not in self._ready:
            self._ready[level] = deque()
            self._levels = sorted(self._ready)
            self._level_counts[level] = 0
        self._level_counts[level] += 1
        if len(self.subscription.consumers) == 1:
            self._recover()
        self.consumer_ready(consumer)

    def consumer_removed(self, consumer: Consumer) -> None:
        if consumer.in_ready:
            self._ready[consumer.priority_level].remove(consumer)
            consumer.in_ready = False
        level = consumer.priority_level
        self._level_counts[level] -= 1
        if not self._level_counts[level]:
            del self._ready[level], self._level_counts[level]
            self._levels.remove(level)
        if self.subscription.consumers:
            self._return_all(consumer, counted=False)
        else:
            self._recover()

    def consumer_ready(self, consumer: Consumer) -> None:
        if not consumer.in_ready and consumer in self.subscription.consumers:
            consumer.in_ready = True
            self._ready[consumer.priority_level].append(consumer)

    def acked(self, consumer: Consumer | None, ordinal: int, messages: int) -> None:
        if self.redelivery_counts:
            self.redelivery_counts.pop(ordinal, None)
        if consumer is not None and ordinal in consumer.held:
            del consumer.held[ordinal]
            self._released(consumer, messages)
        elif ordinal in self.replaying:
            self._no_replay(ordinal)
        elif ordinal < self.read_ordinal and not self.subscription.acks.is_acked(ordinal):
            self._acked_elsewhere(ordinal, messages)

    def _acked_elsewhere(self, ordinal: int, messages: int) -> None:
        """An entry was acknowledged that the acknowledging consumer does not hold."""
        for holder, held in self.delivered():
            self.holders_searched_count += 1
            if ordinal in held:
                del held[ordinal]
                self._released(holder, messages)
                return

    def delivered(self) -> Iterator[tuple[Consumer, dict[int, None]]]:
        """What is delivered, not acknowledged and not queued for redelivery, with its holder."""
        for part in self._returned:
            yield part.holder, part.held
        for consumer in self.subscription.consumers:
            yield consumer, consumer.held

    def delivered_through(self, last: int) -> list[int]:
        return [ordinal for _, held in self.delivered() for ordinal in held if ordinal <= last]

    def _released(self, holder: Consumer, messages: int) -> None:
        """``messages`` are no longer with ``holder``; unblock what this brings below its limit."""
        holder.unacked_messages -= messages
        self.unacked_messages -= messages
        limits = self.subscription.topic.engine.limits
        if (
            holder.blocked_on_unacked
            and holder.unacked_messages <= limits.unacked_per_consumer_max // 2
        ):
            holder.blocked_on_unacked = False
            self.consumer_ready(holder)
            self.subscription.wake()
        if (
            self.blocked_on_unacked
            and self.unacked_messages <= limits.unacked_per_subscription_max // 2
        ):
            self.blocked_on_unacked = False
            self.subscription.wake()

    def redeliver(self, consumer: Consumer, ordinals: list[int] | None) -> int:
        if ordinals is None:
            return self._return_all(consumer, counted=True)
        # Only entries that it holds itself: other consumers keep theirs.
        held, messages = consumer.held, 0
        for ordinal in ordinals:
            if ordinal in held:
                del held[ordinal]
                messages += self._give_back(consumer, ordinal, counted=True)
        return messages

    def _return_all(self, consumer: Consumer, *, counted: bool) -> int:
        """A consumer gives back everything that it holds; returns how many messages."""
        if not consumer.held:
            return 0
        messages = consumer.unacked_messages
        if any(part.holder is consumer for part in self._returned):
            # Some of these were given back before: count only what it got since.
            messages = sum(map(self.subscription.topic.log.message_count, consumer.held))
        self._returned.append(_Returned(consumer, counted))
        consumer.held = {}
        self._queue_returned(GIVE_BACK_ENTRIES)
        return messages

    def _queue_returned(self, entries_max: int) -> int:
        """Queue up to ``entries_max`` entries that consumers gave back; returns how many."""
        used = 0
        log = self.subscription.topic.log
        self.subscription.throttled_dispatch.forget()
        while self._returned:
            part = self._returned[0]
            held, ordinals = part.held, part.ordinals
            while ordinals:
                if used >= entries_max:
                    return used
                used += 1
                ordinal = ordinals.pop()
                if ordinal not in held:
                    continue  # it was acknowledged meanwhile
                if ordinal < log.memory_first and not self._is_indexed(ordinal, ordinals):
                    ordinals.append(ordinal)
                    return used
                del held[ordinal]
                self._give_back(part.holder, ordinal, counted=part.counted)
            self._returned.popleft()
        return used

    def _is_indexed(self, ordinal: int, following: list[int]) -> bool:
        """Whether the index of an entry is in memory. Else it is read with those of the next ones,
        and the subscription continues after that."""
        subscription = self.subscription
        if self._awaits_index:
            return False
        if subscription.topic.log.is_indexed(ordinal):
            return True
        wanted = (ordinal, *following[-GIVE_BACK_ENTRIES:])
        look_up = partial(subscription.topic.log.index_of, wanted)
        self._awaits_index = not subscription.topic.is_looked_up(look_up, self._index_read)
        return not self._awaits_index

    def _index_read(self) -> None:
        self._awaits_index = False
        self.subscription.wake()

    def _give_back(self, holder: Consumer, ordinal: int, *, counted: bool) -> int:
        """Queue an entry that its holder gave back for redelivery; returns its messages."""
        log = self.subscription.topic.log
        messages, size = log.message_count(ordinal), log.size_bytes(ordinal)
        self._released(holder, messages)
        if counted:
            self.redelivery_counts[ordinal] = self.redelivery_counts.get(ordinal, 0) + 1
        self.replaying[ordinal] = messages, size
        self._to_redeliver = self._to_redeliver[0] + messages, self._to_redeliver[1] + size
        heappush(self.replay, ordinal)
        return messages

    def _no_replay(self, ordinal: int) -> None:
        """An entry no longer waits for redelivery."""
        amounts = self.replaying.pop(ordinal, None)
        if amounts is not None:
            messages, size = self._to_redeliver
            self._to_redeliver = messages - amounts[0], size - amounts[1]

    def cursor_moved(self) -> None:
        acks = self.subscription.acks
        log = self.subscription.topic.log
        for holder, held in self.delivered():
            for ordinal in [o for o in held if acks.is_acked(o)]:
                del held[ordinal]
                self._released(holder, log.message_count(ordinal))
        for ordinal in [o for o in self.replaying if acks.is_acked(o)]:
            self._no_replay(ordinal)
        counts = self.redelivery_counts
        self.redelivery_counts = {o: n for o, n in counts.items() if not acks.is_acked(o)}
        if not self.subscription.consumers:
            self._recover()

    def _recover(self) -> None:
        """No consumer holds an entry: start again at the first unacknowledged entry."""
        self._returned.clear()
        self.replay.clear()
        self.replaying.clear()
        self._to_redeliver = (0, 0)
        self.unacked_messages = 0
        self.blocked_on_unacked = False
        self.read_ordinal = self.subscription.acks.mark_delete + 1

    def in_flight_messages(self) -> int:
        return self.unacked_messages

    def to_redeliver(self) -> Amounts:
        messages, size = self._to_redeliver
        acks = self.subscription.acks
        if acks.partials is not None:
            messages -= sum(map(acks.partly_acked, self.replaying))
        return Amounts(len(self.replaying), messages, size)


class _Returned:
    """Everything that one consumer gave back at once, until it is queued for redelivery."""

    __slots__ = ("counted", "held", "holder", "ordinals")

    def __init__(self, holder: Consumer, counted: bool) -> None:
        self.holder = holder
        self.held = holder.held
        self.counted = counted
        """Whether it counts as a redelivery."""
        self.ordinals = list(holder.held)
        """Its entries, the next one last; an acknowledged one is no longer in ``held``."""
        self.ordinals.reverse()


def _not_ready_why(consumer: Consumer) -> NotReady:
    """Why one consumer is not ready."""
    if consumer.blocked_on_unacked:
        return NotReady.UNACKED_LIMIT
    if consumer.permits <= 0:
        return NotReady.NO_PERMITS
    return NotReady.SOCKET_FULL
