"""Dispatch of Exclusive and Failover subscriptions: one consumer takes everything, in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Final

from headgate.base.murmur3 import HASH_MAX, murmur3_32, murmur3_32_of_each
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

PLACES_ON_RING: Final = 100
"""Places that each consumer has on the hash ring; Pulsar's number."""

_NUMBERS: Final = tuple(str(at).encode() for at in range(PLACES_ON_RING))
"""What follows a consumer's name, for each of its places."""


class SingleActiveDispatcher(Dispatcher):
    """Delivers to the active consumer, from the first unacknowledged entry on."""

    __slots__ = ("_rank", "_ranked", "_share", "active", "type")

    def __init__(
        self, subscription: DispatchedSubscription, subscription_type: SubscriptionType
    ) -> None:
        super().__init__(subscription)
        self.type = subscription_type
        self.active: Consumer | None = None
        self._ranked: list[Consumer] = []
        """The consumers of a failover subscription, by priority level and then by name, or by their
        distance on the hash ring."""
        topic = subscription.topic
        self._share = topic.partition
        """Which of the best consumers is active, if not the first one on the ring: -1."""
        if topic.partition >= 0 and topic.engine.limits.failover_hashes_partitions:
            self._share = -1
        self._rank: Callable[[Consumer], tuple[int, int, str, int, int]] = _rank_by_name
        if self._share < 0:
            self._rank = _RankOnRing(topic.name.full)

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

    def sent(
        self,
        consumer: Consumer,  # noqa: ARG002
        first: int,  # noqa: ARG002
        stop: int,
        messages: int,  # noqa: ARG002
        acked_messages: int,  # noqa: ARG002
    ) -> None:
        self.read_ordinal = stop

    def consumer_added(self, consumer: Consumer) -> None:
        if self.type is SubscriptionType.FAILOVER:
            if self._ranked:
                insort(self._ranked, consumer, key=self._rank)
            else:
                self._ranked.append(consumer)  # alone it needs no rank
        self._choose_active()
        if consumer.told_active is None:
            self._tell(consumer)

    def consumer_removed(self, consumer: Consumer) -> None:
        ranked = self._ranked
        if len(ranked) == 1:
            ranked.clear()
        elif ranked:
            place = bisect_left(ranked, self._rank(consumer), key=self._rank)
            while ranked[place] is not consumer:
                place += 1
            del ranked[place]
        self._choose_active()

    def _choose_active(self) -> None:
        """Pulsar's order: priority level, then name; a partition takes its share of the best level,
        any other topic the consumer that follows it on a hash ring of the names."""
        consumers, ranked = self.subscription.consumers, self._ranked
        previous = self.active
        if not consumers:
            self.active = None
        elif self.type is SubscriptionType.EXCLUSIVE:
            self.active = next(iter(consumers))
        elif self._share < 0:
            self.active = ranked[0]
        else:
            best_count = bisect_right(ranked, ranked[0].priority_level, key=_level)
            self.active = ranked[self._share % best_count]
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

    def messages_acked(self, consumer: Consumer, ordinal: int, messages: int) -> None:
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
        # Entries below the read position that are not acknowledged; acknowledgements of whole
        # entries above it (after a rewind) are rare and only make this an undercount.
        done = subscription.done_messages - subscription.acks.partial_messages(read, log.end)
        if read >= log.memory_first:
            return max(0, log.messages_before(read) - done)
        return max(0, log.totals_near(read)[0].messages - done)

    def to_redeliver(self) -> Amounts:
        return NO_AMOUNTS


def _rank_by_name(consumer: Consumer) -> tuple[int, int, str, int, int]:
    return consumer.priority_level, 0, consumer.name, consumer.connection_key, consumer.consumer_id


class _RankOnRing:
    """Ranks consumers by priority level, and then by how far they are behind a topic on a ring of
    hashes on which each has :data:`PLACES_ON_RING` places. So a consumer that comes or goes changes
    the active consumer of few topics."""

    __slots__ = ("_topic", "_topic_hash")

    def __init__(self, topic: str) -> None:
        self._topic, self._topic_hash = topic, -1

    def __call__(self, consumer: Consumer) -> tuple[int, int, str, int, int]:
        level, _, name, connection, number = _rank_by_name(consumer)
        if consumer.ring_distance < 0:
            if self._topic_hash < 0:
                self._topic_hash = murmur3_32(self._topic.encode())
            topic, places = self._topic_hash, murmur3_32_of_each(name.encode(), _NUMBERS)
            consumer.ring_distance = min((place - topic) & HASH_MAX for place in places)
        return level, consumer.ring_distance, name, connection, number


def _level(consumer: Consumer) -> int:
    return consumer.priority_level
