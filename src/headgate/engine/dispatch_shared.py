"""Dispatch of Shared subscriptions: any ready consumer takes the next entry."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import islice

from headgate.base.work_units import (
    BECAME_DUE,
    CONSUMERS_PER_UNIT,
    JOB_STEP_UNITS_MAX,
    MOVED_PER_UNIT,
)
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_chunks import ROUND_ENTRIES, ChunkingDispatcher
from headgate.engine.dispatcher import DispatchedSubscription
from headgate.engine.ports import IndexPart
from headgate.engine.returned_entries import ReturnedEntries
from headgate.engine.types import NotReady, SubscriptionType
from headgate.flow.account.account import Cell, is_hungry
from headgate.flow.quota.backlog import Amounts

GIVE_BACK_ENTRIES = 64
"""Entries that are queued for redelivery at once; if a consumer gives back more, the next turns
queue the rest."""


QUEUED_BYTES = 240
"""What an entry takes that waits for redelivery: its amounts, and its places in table and heap."""

NOTED_BYTES = 110
"""What a number takes that is remembered of an entry: of its redeliveries, or when it was due."""


class SharedDispatcher(ChunkingDispatcher):
    """Round robin among the ready consumers of the best priority level.

    Each consumer has the entries that it holds. What it gives back all at once passes through
    ``_returned``, in turns. ``replay`` is a heap of entries that wait for redelivery, valid while
    they are in ``replaying``, which has their messages and bytes. What the cursor passed is
    forgotten in turns, too, if it is much; until then it counts as delivered.
    """

    type = SubscriptionType.SHARED

    __slots__ = (
        "_awaits_index",
        "_held_index",
        "_levels",
        "_moved",
        "_not_ready_counts",
        "_ready",
        "_returned",
        "_returned_messages",
        "_to_redeliver",
        "_turn_entries",
        "blocked_on_unacked",
        "replay",
        "unacked_messages",
    )

    def __init__(self, subscription: DispatchedSubscription) -> None:
        super().__init__(subscription)
        self._returned: deque[ReturnedEntries] = deque()
        self._returned_messages: dict[Consumer, int] = {}
        """Messages in ``_returned`` that are not acknowledged, by their holder."""
        self._moved: Iterator[int] | None = None
        """The rest of what a move of the cursor has to look at; it yields units."""
        self.replay: list[int] = []
        self._to_redeliver = (0, 0)
        self.unacked_messages = 0
        self.blocked_on_unacked = False
        self._ready: dict[int, OrderedDict[Consumer, None]] = {}
        """By priority level, the consumers that were ready when they were last looked at, if there
        are some: consumers that are not ready may have thousands of levels."""
        self._levels: list[int] = []
        """The same levels, the best first."""
        self._not_ready_counts = dict.fromkeys(NotReady, 0)
        """The other consumers, by why they were not ready then: each event that changes that has
        them looked at again. If they are many, nobody asks all of them."""
        self._turn_entries = 0
        self._awaits_index = False
        """Whether the index of the next entry that a consumer gave back is being read."""
        self._held_index: Sequence[IndexPart] = ()
        """What was read for that; it stays in memory until it is used."""

    def next_run(self) -> tuple[int, int]:
        acks, topic = self.subscription.acks, self.subscription.topic
        replay = self.replay
        self._chosen = None
        while True:
            while replay:
                ordinal = replay[0]
                if ordinal in self.replaying:
                    if not acks.is_acked(ordinal):
                        if ordinal >= topic.chunks_stop or self._is_deliverable(ordinal):
                            return ordinal, ordinal + 1
                    else:
                        self._no_replay(ordinal)  # the cursor has just passed it
                heappop(replay)
            if self.delayed is None:
                break
            if self._moved is not None and self.delayed.is_next_passed(acks):
                return -1, -1  # the next turns forget what the cursor passed
            if not self._queue_due():
                break
        log = topic.log
        if self.read_ordinal < log.first:
            self.read_ordinal = log.first
        if self.read_ordinal < log.trim_end:
            self.read_ordinal = log.trim_end  # giving entries back takes their index
        left = ROUND_ENTRIES - self._turn_entries
        first, stop = acks.unacked_run(self.read_ordinal, log.end, left)
        self.read_ordinal = first
        if first < topic.delays_stop:
            first, stop = self._undelayed(first, stop, left)
        if first < topic.chunks_stop:
            return self._next_with_chunks(first, stop)
        return (first, stop) if first < stop else (-1, -1)

    def pick(self) -> Consumer | NotReady:
        if self._chosen is not None:
            chosen, self._chosen = self._chosen, None
            if not self.blocked_on_unacked:
                return chosen if chosen.is_ready else _not_ready_why(chosen)
        if not self.blocked_on_unacked:
            while self._levels:
                ready = self._ready[self._levels[0]]
                while ready:
                    consumer = next(iter(ready))
                    if consumer.is_ready:
                        return consumer
                    del ready[consumer]
                    consumer.in_ready = False
                    why = consumer.not_ready = _not_ready_why(consumer)
                    self._not_ready_counts[why] += 1
                del self._ready[self._levels.pop(0)]
        consumers = self.subscription.consumers
        if not consumers:
            return NotReady.NO_CONSUMER
        if self.blocked_on_unacked:
            return NotReady.UNACKED_LIMIT
        if len(consumers) <= CONSUMERS_PER_UNIT:
            return max((_not_ready_why(c) for c in consumers), key=lambda why: why.value)
        for why in (NotReady.SOCKET_FULL, NotReady.NO_PERMITS):
            if self._not_ready_counts[why]:
                return why
        return NotReady.UNACKED_LIMIT

    def permits(self) -> int:
        consumers = self.subscription.consumers
        return sum([c.permits for c in consumers if c.permits > 0 and not c.blocked_on_unacked])

    def is_hungry(self) -> bool:
        return any(is_hungry(c.permits, c.window) for c in self.subscription.consumers)

    def room_messages(self, consumer: Consumer) -> int:
        limits = self.subscription.topic.unacked_limits
        room = consumer.permits
        if limits.unacked_per_consumer_max > 0:
            room = min(room, limits.unacked_per_consumer_max - consumer.unacked_messages)
        if limits.unacked_per_subscription_max > 0:
            room = min(room, limits.unacked_per_subscription_max - self.unacked_messages)
        return max(room, 1)

    def sent(
        self, consumer: Consumer, first: int, stop: int, messages: int, acked_messages: int
    ) -> None:
        if first in self.replaying:
            heappop(self.replay)
            self._no_replay(first)
        else:
            self.read_ordinal = stop
        held = consumer.held
        for ordinal in range(first, stop):
            held[ordinal] = acked_messages
        limits = self.subscription.topic.unacked_limits
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
        became_due = self._take_due()
        returned = became_due * BECAME_DUE
        if self._moved is not None:
            returned += self._forget_passed(entries_max)
        if self._returned and returned < entries_max:
            returned += self._queue_returned(entries_max - returned)
        sent = super().pump(now_ns, entries_max)
        if sent and self._turn_entries and self._levels:
            self._next_turn(next(iter(self._ready[self._levels[0]])))
        if self._returned or self._moved is not None:
            account = self.subscription.account
            if account.cell is Cell.AWAITING_ACK:
                account.move(Cell.DISPATCHING, now_ns)
            if not self._awaits_index:
                self.subscription.wake()
        else:
            self._held_index = ()
        if self.delayed is not None:
            returned += self._rest_of_delayed(became_due, now_ns)
        return sent + returned

    def _next_turn(self, consumer: Consumer) -> None:
        self._turn_entries = 0
        ready = self._ready.get(consumer.priority_level)
        if ready:
            ready.move_to_end(next(iter(ready)))

    def consumer_added(self, consumer: Consumer) -> None:
        if len(self.subscription.consumers) == 1:
            self._recover()
        self.consumer_ready(consumer)

    def consumer_removed(self, consumer: Consumer) -> None:
        if consumer.in_ready:
            level = consumer.priority_level
            del self._ready[level][consumer]
            consumer.in_ready = False
            if not self._ready[level]:
                del self._ready[level], self._levels[bisect_left(self._levels, level)]
        elif consumer.not_ready is not None:
            self._not_ready_counts[consumer.not_ready] -= 1
        if self._chunks.aside_count:
            self._requeue_chunks(consumer)
        self._chunks.left(consumer)
        if self.subscription.consumers:
            self._return_all(consumer, counted=False)
        else:
            consumer.held = {}  # an acknowledgement that waits for the index may name it later
            self._recover()

    def consumer_ready(self, consumer: Consumer) -> None:
        if self._chunks.aside_count:
            self._requeue_chunks(consumer)
        if not consumer.in_ready and consumer in self.subscription.consumers:
            consumer.in_ready = True
            if consumer.not_ready is not None:
                self._not_ready_counts[consumer.not_ready] -= 1
                consumer.not_ready = None
            level = consumer.priority_level
            if level not in self._ready:
                self._ready[level] = OrderedDict()
                insort(self._levels, level)
            self._ready[level][consumer] = None

    def _requeue_chunks(self, consumer: Consumer) -> None:
        """Queue the chunks again that waited for a consumer, which may be ready or is gone."""
        for ordinal in self._chunks.take(consumer):
            if ordinal in self.replaying:  # else it was acknowledged meanwhile
                heappush(self.replay, ordinal)

    def acked(self, consumer: Consumer | None, ordinal: int, messages: int) -> None:
        if self.redelivery_counts:
            self.redelivery_counts.pop(ordinal, None)
        if self.delayed is not None and self.delayed.forget(ordinal):
            return
        if consumer is not None and ordinal in consumer.held:
            self._released(consumer, messages - consumer.held.pop(ordinal))
        elif ordinal in self.replaying:
            self._no_replay(ordinal)
        elif self._is_delivered(ordinal) and not self.subscription.acks.is_acked(ordinal):
            self._acked_elsewhere(ordinal, messages)

    def _acked_elsewhere(self, ordinal: int, messages: int) -> None:
        """An entry was acknowledged that the acknowledging consumer does not hold."""
        part = self._returned_with(ordinal)
        if part is not None:
            self._released(part.holder, self._take_back(part, ordinal, messages))
            return
        holder = self._holder_of(ordinal)
        if holder is not None:
            self._released(holder, messages - holder.held.pop(ordinal))

    def messages_acked(self, consumer: Consumer, ordinal: int, messages: int) -> None:
        if ordinal in consumer.held:
            consumer.held[ordinal] += messages
            self._released(consumer, messages)
        elif ordinal in self.replaying:
            left, size = self.replaying[ordinal]
            self.replaying[ordinal] = left - messages, size
            self._to_redeliver = self._to_redeliver[0] - messages, self._to_redeliver[1]
        elif ordinal < self.read_ordinal:
            part = self._returned_with(ordinal)
            holder = self._holder_of(ordinal) if part is None else part.holder
            if part is not None:
                part.held[ordinal] += messages
                self._returned_messages[part.holder] -= messages
            elif holder is not None:
                holder.held[ordinal] += messages
            if holder is not None:
                self._released(holder, messages)

    def _returned_with(self, ordinal: int) -> ReturnedEntries | None:
        """What a consumer gave back with this entry in it."""
        for part in self._returned:
            self.holders_searched_count += 1
            if ordinal in part.held:
                return part
        return None

    def _holder_of(self, ordinal: int) -> Consumer | None:
        """The consumer that holds an entry."""
        for holder in self.subscription.consumers:
            self.holders_searched_count += 1
            if ordinal in holder.held:
                return holder
        return None

    def delivered(self) -> Iterator[tuple[Consumer, dict[int, int]]]:
        """What is delivered, not acknowledged and not queued for redelivery, with its holder."""
        for part in self._returned:
            yield part.holder, part.held
        for consumer in self.subscription.consumers:
            yield consumer, consumer.held

    @property
    def needs_passed(self) -> bool:
        return self._moved is not None or bool(self._returned)

    def unacked_limits_changed(self) -> None:
        limits = self.subscription.topic.unacked_limits
        for consumer in self.subscription.consumers:
            maximum = limits.unacked_per_consumer_max
            consumer.blocked_on_unacked = 0 < maximum <= consumer.unacked_messages
            self.consumer_ready(consumer)
        maximum = limits.unacked_per_subscription_max
        self.blocked_on_unacked = 0 < maximum <= self.unacked_messages
        self.subscription.wake()

    def _released(self, holder: Consumer, messages: int) -> None:
        """``messages`` are no longer with ``holder``; unblock what this brings below its limit."""
        holder.unacked_messages -= messages
        self.unacked_messages -= messages
        if self.delayed is not None and not self.unacked_messages:
            self.subscription.wake()  # what is left may not be due
        limits = self.subscription.topic.unacked_limits
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
                acked = held.pop(ordinal)
                messages += self._give_back(consumer, ordinal, acked, counted=True)
        return messages

    def _return_all(self, consumer: Consumer, *, counted: bool) -> int:
        """A consumer gives back everything that it holds; returns how many messages."""
        if not consumer.held:
            return 0
        # Some of these may have been given back before: count only what it got since.
        given_back = self._returned_messages.get(consumer, 0)
        messages = consumer.unacked_messages - given_back
        self._returned_messages[consumer] = given_back + messages
        last = self._returned[-1] if self._returned else None
        if last is not None and last.holder is consumer and last.counted is counted:
            last.extend(consumer.held)
        else:
            self._returned.append(ReturnedEntries(consumer, counted))
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
                ordinal = ordinals[0]
                if ordinal in held:  # not acknowledged meanwhile
                    if ordinal < log.memory_first and not self._is_indexed(ordinal, ordinals):
                        return used
                    acked = held[ordinal]
                    left = self._give_back(part.holder, ordinal, acked, counted=part.counted)
                    self._take_back(part, ordinal, left + acked)
                ordinals.popleft()
            self._returned.popleft()
        return used

    def _is_indexed(self, ordinal: int, following: Iterable[int]) -> bool:
        """Whether the index of an entry is in memory. Else it is read with those of the next ones,
        and the subscription continues after that."""
        subscription = self.subscription
        if self._awaits_index:
            return False
        if subscription.topic.log.is_indexed(ordinal):
            return True
        wanted = tuple(islice(following, GIVE_BACK_ENTRIES))
        look_up = partial(self._hold_index, wanted)
        again = partial(self._index_read, subscription)  # which is needed until then
        self._awaits_index = not subscription.topic.is_looked_up(look_up, again)
        return not self._awaits_index

    def _hold_index(self, ordinals: Sequence[int]) -> None:
        """Hold the index of entries, so that reads of others do not evict it before it is used."""
        self._held_index = self.subscription.topic.log.index_of(ordinals)

    def _index_read(self, subscription: DispatchedSubscription) -> None:
        self._awaits_index = False
        subscription.wake()

    def _take_back(self, part: ReturnedEntries, ordinal: int, messages: int) -> int:
        """An entry of so many messages leaves what its holder gave back; returns how many of them
        counted there."""
        counted = messages - part.held.pop(ordinal)
        left = self._returned_messages[part.holder] - counted
        if left:
            self._returned_messages[part.holder] = left
        else:
            del self._returned_messages[part.holder]
        return counted

    def _give_back(self, holder: Consumer, ordinal: int, acked: int, *, counted: bool) -> int:
        """Queue an entry that its holder gave back for redelivery, ``acked`` of its messages
        acknowledged; returns how many are left."""
        log = self.subscription.topic.log
        messages, size = log.message_count(ordinal) - acked, log.size_bytes(ordinal)
        self._released(holder, messages)
        if self.subscription.acks.is_acked(ordinal):
            return messages  # the cursor passed it: it is forgotten, not queued
        if counted:
            self.redelivery_counts[ordinal] = self.redelivery_counts.get(ordinal, 0) + 1
        self._queue_again(ordinal, messages, size)
        return messages

    def _queue_again(self, ordinal: int, messages: int, size_bytes: int) -> None:
        self._queue(ordinal, messages, size_bytes)
        heappush(self.replay, ordinal)

    def _queue(self, ordinal: int, messages: int, size_bytes: int) -> None:
        """Count an entry that waits to be delivered although later ones were."""
        self.replaying[ordinal] = messages, size_bytes
        self._to_redeliver = self._to_redeliver[0] + messages, self._to_redeliver[1] + size_bytes

    def _no_replay(self, ordinal: int) -> None:
        """An entry no longer waits for redelivery."""
        amounts = self.replaying.pop(ordinal, None)
        if amounts is not None:
            messages, size = self._to_redeliver
            self._to_redeliver = messages - amounts[0], size - amounts[1]

    def cursor_moved(self) -> None:
        if not self.subscription.consumers:
            self._recover()
        self._moved = self._passed()
        self._forget_passed(JOB_STEP_UNITS_MAX)

    def _forget_passed(self, units_max: int) -> int:
        """Forget what the cursor passed, for up to ``units_max``; returns the units of that."""
        used = 0
        while self._moved is not None and used < units_max and not self._awaits_index:
            units = next(self._moved, None)
            if units is None:
                self._moved = None
            else:
                used += units
        return used

    def _passed(self) -> Iterator[int]:
        """Look at each entry that is delivered or waits for redelivery; yields units, and 0 to wait
        for the index of an entry."""
        for part in list(self._returned):
            yield from self._passed_of(list(part.held), partial(self._passed_returned, part))
        for consumer in list(self.subscription.consumers):
            if consumer.held:
                passed = partial(self._passed_held, consumer)
                yield from self._passed_of(list(consumer.held), passed)
        yield from self._passed_of(list(self.replaying), self._no_replay)
        if self.delayed is not None:
            for _ in self.delayed.passed(self.subscription.acks):
                yield 1
        forget = self.redelivery_counts.pop
        yield from self._passed_of(list(self.redelivery_counts), lambda o: forget(o, None))

    def _passed_of(self, ordinals: list[int], forget: Callable[[int], object]) -> Iterator[int]:
        acks, log = self.subscription.acks, self.subscription.topic.log
        for start in range(0, len(ordinals), MOVED_PER_UNIT):
            piece = [o for o in ordinals[start : start + MOVED_PER_UNIT] if acks.is_acked(o)]
            for at, ordinal in enumerate(piece):
                while ordinal < log.memory_first and not self._is_indexed(ordinal, piece[at:]):
                    yield 0
                forget(ordinal)
            yield 1

    def _passed_returned(self, part: ReturnedEntries, ordinal: int) -> None:
        if ordinal in part.held:
            messages = self.subscription.topic.log.message_count(ordinal)
            self._released(part.holder, self._take_back(part, ordinal, messages))

    def _passed_held(self, holder: Consumer, ordinal: int) -> None:
        acked = holder.held.pop(ordinal, None)
        if acked is not None:
            messages = self.subscription.topic.log.message_count(ordinal)
            self._released(holder, messages - acked)

    @property
    def remembered_bytes(self) -> int:
        noted = len(self.redelivery_counts)
        if self.delayed is not None:
            noted += self.delayed.delivered_count
        return QUEUED_BYTES * len(self.replaying) + NOTED_BYTES * noted

    def close(self) -> None:
        self.subscription.topic.engine.remembered.forget(self)
        super().close()

    def leave(self) -> None:
        super().leave()
        self._moved = None  # a generator that holds the dispatcher

    def _recover(self) -> None:
        """No consumer holds an entry: start again at the first unacknowledged entry."""
        self._returned.clear()
        self._returned_messages.clear()
        self.replay.clear()
        self.replaying.clear()
        self._to_redeliver = (0, 0)
        self._chunks.clear()
        self._chosen = None
        self._no_chunks_stop = 0
        self.unacked_messages = 0
        self.blocked_on_unacked = False
        self.read_ordinal = self.subscription.acks.mark_delete + 1
        self._undelayed_stop = 0
        if self.delayed is not None:
            self.delayed.ahead.clear()
        if self._moved is not None:
            self._moved = self._passed()  # what it had yet to look at is no longer held
        remembered = self.subscription.topic.engine.remembered
        if self.subscription.consumers:
            remembered.forget(self)  # their connections are charged with it
        elif not self.subscription.removed and not remembered.keeps(self):
            self.redelivery_counts = {}
            if self.delayed is not None:
                self.delayed.forget_delivered()

    def in_flight_messages(self) -> int:
        return self.unacked_messages

    def to_redeliver(self) -> Amounts:
        messages, size = self._to_redeliver
        entries = len(self.replaying)
        if self.delayed is not None:
            due = self.delayed.due
            return Amounts(entries + due.entries, messages + due.messages, size + due.size_bytes)
        return Amounts(entries, messages, size)


def _not_ready_why(consumer: Consumer) -> NotReady:
    """Why one consumer is not ready."""
    if consumer.blocked_on_unacked:
        return NotReady.UNACKED_LIMIT
    if consumer.permits <= 0:
        return NotReady.NO_PERMITS
    return NotReady.SOCKET_FULL
