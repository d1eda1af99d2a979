"""Dispatch of Exclusive and Failover subscriptions: one consumer takes everything, in order."""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right, insort

from headgate.engine.consumer import Consumer
from headgate.engine.dispatcher import (
    NO_AMOUNTS,
    RUN_ENTRIES_MAX,
    DispatchedSubscription,
    Dispatcher,
)
from headgate.engine.types import NotReady, SubscriptionType
from headgate.flow.account.account import is_hungry
from headgate.flow.quota.backlog import Amounts


class SingleActiveDispatcher(Dispatcher):
    """Delivers to the active consumer, from the first unacknowledged entry on."""

    __slots__ = ("_ranked", "active", "type")

    def __init__(
        self, subscription: DispatchedSubscription, subscription_type: SubscriptionType
    ) -> None:
        super().__init__(subscription)
        self.type = subscription_type
        self.active: Consumer | None = None
        self._ranked: list[Consumer] = []
        """The consumers of a failover subscription, by priority level and name."""

    def next_run(self) -> tuple[int, int]:
        subscription = self.subscription
        log = subscription.topic.log
        ordinal = self.read_ordinal
        if ordinal < log.first:
            ordinal = log.first
        first, stop = subscription.acks.unacked_run(ordinal, log.end, RUN_ENTRIES_MAX)
        self.read_ordinal = first
        return (first, stop) if first < stop else (-1, -1)

    def pick(self) -> Consumer | NotReady:
        active = self.active
        if active is None:
            return NotReady.NO_CONSUMER
        if active.permits <= 0:
            return NotReady.NO_PERMITS
        if not active.port.writable:
            return NotReady.SOCKET_FULL
        return active

    def permits(self) -> int:
        return 0 if self.active is None else max(0, self.active.permits)

    def is_hungry(self) -> bool:
        active = self.active
        return active is not None and is_hungry(active.permits, active.window)

    def room_messages(self, consumer: Consumer) -> int:
        return consumer.permits

    def sent(self, consumer: Consumer, first: int, stop: int, messages: int) -> None:  # noqa: ARG002
        self.read_ordinal = stop

    def consumer_added(self, consumer: Consumer) -> None:
        if self.type is SubscriptionType.FAILOVER:
            insort(self._ranked, consumer, key=_rank)
        self._choose_active()
        if consumer.told_active is None:
            self._tell(consumer)

    def consumer_removed(self, consumer: Consumer) -> None:
        ranked = self._ranked
        if ranked:
            place = bisect_left(ranked, _rank(consumer), key=_rank)
            while ranked[place] is not consumer:
                place += 1
            del ranked[place]
        self._choose_active()

    def _choose_active(self) -> None:
        """Pulsar's order: priority level, then name; a partition takes its share of the best
        level, any other topic a place given by its name."""
        consumers, ranked = self.subscription.consumers, self._ranked
        previous = self.active
        if not consumers:
            self.active = None
        elif self.type is SubscriptionType.EXCLUSIVE:
            self.active = next(iter(consumers))
        else:
            best_count = bisect_right(ranked, ranked[0].priority_level, key=_level)
            topic = self.subscription.topic
            place = topic.partition
            if place < 0:
                place = zlib.crc32(topic.name.full.encode())
            self.active = ranked[place % best_count]
        if self.active is not previous:
            self._activate(previous)

    def _activate(self, previous: Consumer | None) -> None:
        """Start the active consumer; of the others, only the previous one learns anything new."""
        engine = self.subscription.topic.engine
        held_something = self.read_ordinal > self.subscription.acks.mark_delete + 1
        self.rewind()
        if self.type is not SubscriptionType.FAILOVER or self.active is None:
            return
        if previous is not None and held_something:
            # The previous consumer may be processing what it got: its acknowledgements of the
            # next moment spare the new one duplicates.
            self.paused_until_ns = engine.now_ns + engine.limits.failover_delay_ns
            engine.wake_at(self.paused_until_ns, self.subscription.wake)
        if previous is not None and previous in self.subscription.consumers:
            self._tell(previous)
        self._tell(self.active)

    def _tell(self, consumer: Consumer) -> None:
        """Send a consumer whether it is the active one, if it does not know that already."""
        is_active = consumer is self.active
        if self.type is SubscriptionType.FAILOVER and consumer.told_active is not is_active:
            consumer.told_active = is_active
            consumer.port.active_consumer_changed(consumer.consumer_id, is_active)

    def rewind(self) -> None:
        """Deliver again from the first unacknowledged entry."""
        self.read_ordinal = self.subscription.acks.mark_delete + 1

    def consumer_ready(self, consumer: Consumer) -> None:
        """Nothing to do: readiness is checked at each entry."""

    def acked(self, consumer: Consumer | None, ordinal: int, messages: int) -> None:
        """Nothing to do: the cursor has all state."""

    def redeliver(self, consumer: Consumer, ordinals: list[int] | None) -> int:  # noqa: ARG002
        if consumer is not self.active:
            return 0
        count = self.in_flight_messages()
        self.rewind()
        return count

    def cursor_moved(self) -> None:
        acks = self.subscription.acks
        if not self.subscription.consumers:
            self.rewind()
        elif self.read_ordinal <= acks.mark_delete:
            self.read_ordinal = acks.mark_delete + 1

    @property
    def needs_passed(self) -> bool:
        return False  # the cursor has all state

    def in_flight_messages(self) -> int:
        subscription = self.subscription
        if self.active is None:
            return 0
        log = subscription.topic.log
        read = max(min(self.read_ordinal, log.end), log.first)
        # Entries below the read position that are not acknowledged; acknowledgements above it
        # (after a rewind) are rare and only make this an undercount.
        if read >= log.memory_first:
            return max(0, log.messages_before(read) - subscription.done_messages)
        return max(0, log.totals_near(read)[0].messages - subscription.done_messages)

    def to_redeliver(self) -> Amounts:
        return NO_AMOUNTS


def _rank(consumer: Consumer) -> tuple[int, str, int, int]:
    return consumer.priority_level, consumer.name, consumer.connection_key, consumer.consumer_id


def _level(consumer: Consumer) -> int:
    return consumer.priority_level
