"""A subscription: its cursor, its consumers, its account of time.

The subscription moves the cursor (:mod:`headgate.engine.cursor`); its dispatcher, chosen by type,
delivers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headgate.base.ack_places import after_unacked
from headgate.base.ack_set import AckSet
from headgate.base.errors import InputError, invariant
from headgate.base.partial_acks import PartialEntry, check_batch
from headgate.base.work_units import CLIENT_CLOSED
from headgate.engine.consumer import Consumer
from headgate.engine.cursor import Cursor
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.dispatch_single import SingleActiveDispatcher
from headgate.engine.dispatcher import Dispatcher
from headgate.engine.errors import (
    ConsumerBusyError,
    DamagedError,
    SubscriptionBusyError,
    TopicFencedError,
)
from headgate.engine.partial_budget import PARTS_BATCH_MAX
from headgate.engine.rate_meter import RateMeter
from headgate.engine.throttled_dispatch import ThrottledDispatch
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import Account, Cell
from headgate.flow.limits.gate_node import GateStatistics
from headgate.flow.limits.rate_limit import Level, RateLimit
from headgate.flow.limits.waiter_gate import WaiterGate

if TYPE_CHECKING:
    from headgate.engine.topic import Topic
    from headgate.flow.expiry import MessageTtl
    from headgate.flow.quota.backlog_quota import Quota


class Subscription(Cursor):
    """State of one subscription of one topic."""

    topic: Topic

    __slots__ = (
        "account",
        "acked_messages",
        "acks_dirty",
        "bytes_sent",
        "consumers",
        "created_ms",
        "cursor_id",
        "damage",
        "damaged_entry",
        "dirty",
        "dispatcher",
        "entries_sent",
        "evicted_by",
        "evicted_messages",
        "expired_by",
        "expired_messages",
        "fenced",
        "gate",
        "idle_since_ms",
        "last_acked_ms",
        "last_expire_ms",
        "last_flow_ms",
        "last_mark_delete_ms",
        "last_sent_ms",
        "limit",
        "messages_sent",
        "name",
        "properties",
        "rates",
        "read_failed",
        "redelivered_messages",
        "removed",
        "resets_count",
        "rewound_messages",
        "skipped_messages",
        "throttled",
        "throttled_dispatch",
        "type_known",
    )

    def __init__(
        self,
        topic: Topic,
        name: str,
        acks: AckSet,
        gate: WaiterGate,
        *,
        cursor_id: int | None,
        properties: dict[str, str] | None = None,
        now_ns: int,
        now_ms: int,
    ) -> None:
        from_end = topic.log.end
        super().__init__(topic, acks)
        self.name = name
        self.gate = gate
        gate.owner = self
        self.cursor_id = cursor_id
        self.properties = properties or {}
        self.created_ms = now_ms
        self.idle_since_ms = topic.engine.log_ms
        """Time of the log at which its last consumer left, if it has none; what was stored of that
        before the topic was loaded."""
        self.consumers: dict[Consumer, None] = {}
        """In the order in which they connected."""
        self.type_known = False
        self.fenced = False
        self.removed = False
        self.resets_count = 0
        """How often a seek or an administrator reset the cursor."""
        self.dirty = False
        self.acks_dirty = False
        self.acked_messages = 0
        self.skipped_messages = 0
        self.rewound_messages = 0
        self.expired_messages = 0
        self.expired_by: MessageTtl | None = None
        """The TTL that expired messages last; None if none did, or a request did."""
        self.evicted_messages = 0
        self.evicted_by: Quota | None = None
        """The backlog quota that evicted last."""
        self.redelivered_messages = 0
        self.messages_sent = 0
        self.bytes_sent = 0
        self.entries_sent = 0
        self.last_acked_ms = 0
        self.last_flow_ms = 0
        self.last_sent_ms = 0
        self.last_expire_ms = 0
        self.last_mark_delete_ms = 0
        self.rates = RateMeter(5)
        self.read_failed = ""
        """Why its next entry cannot be read; empty if it can."""
        self.damage = ""
        """Which acknowledgements the disk lost; empty if none."""
        self.damaged_entry = ""
        """Where its next entry is damaged, so that it cannot go on; empty if it is not."""
        self.throttled = False
        """Whether it waits at a budget now."""
        self.throttled_dispatch = ThrottledDispatch()
        self.limit: RateLimit | None = None
        """The dispatch limit as it is set; the gate has the amounts in force."""
        self.account = Account(
            now_ns, Cell.CAUGHT_UP if self.done_entries >= from_end else Cell.NO_CONSUMER
        )
        self.dispatcher: Dispatcher = SingleActiveDispatcher(self, SubscriptionType.EXCLUSIVE)

    # -- its backlog -----------------------------------------------------------------------

    @property
    def is_durable(self) -> bool:
        """Whether its cursor is stored; a reader's is not."""
        return self.cursor_id is not None

    @property
    def type(self) -> SubscriptionType:
        """The type of its connected consumers, or of the last ones."""
        return self.dispatcher.type

    def oldest_age_ms(self) -> int | None:
        """Age of the oldest unacknowledged message; None without backlog."""
        received_ms = self.oldest_unacked_ms()
        return None if received_ms is None else max(self.topic.engine.log_ms - received_ms, 0)

    def deliverable_age_ms(self) -> int | None:
        """Age of the oldest unacknowledged message that could be delivered: since it was received
        or, if it was delayed, since it is due. None if there is none."""
        delayed = self.dispatcher.delayed
        if delayed is None:
            return self.oldest_age_ms()
        engine = self.topic.engine
        return delayed.deliverable_age_ms(self.acks, self.topic.log, engine.now_ms, engine.log_ms)

    @property
    def delayed_messages(self) -> int:
        """Messages that are not due yet, as far as the broker has looked at the backlog."""
        delayed = self.dispatcher.delayed
        return 0 if delayed is None else delayed.not_due.messages

    @property
    def delayed_index_bytes(self) -> int:
        """About the memory of the index of its delayed messages."""
        delayed = self.dispatcher.delayed
        return 0 if delayed is None else delayed.memory_bytes

    # -- consumers -------------------------------------------------------------------------

    def add_consumer(self, consumer: Consumer, subscription_type: SubscriptionType) -> None:
        """Connect a consumer.

        Raises:
            TopicFencedError: the subscription is being moved or closed; try again.
            DamagedError: it lost data, and nobody has accepted that.
            ConsumerBusyError: the connected consumers have another type, or exclude others.
        """
        self.topic.check_not_fenced()
        if self.fenced:
            raise TopicFencedError(f"Subscription {self.name} is fenced")
        self.topic.check_not_damaged()
        if self.damage:
            raise DamagedError(f"{self.topic.name}, subscription {self.name},", self.damage)
        if self.consumers and subscription_type is not self.type:
            raise ConsumerBusyError("Subscription is of different type")
        if self.consumers and subscription_type is SubscriptionType.EXCLUSIVE:
            raise ConsumerBusyError("Exclusive consumer is already connected")
        if subscription_type is not self.type:
            self.dispatcher.close()
            self.dispatcher = _dispatcher_of(self, subscription_type)
        self.type_known = True
        self.consumers[consumer] = None
        self.topic.consumers_count += 1
        self.topic.engine.client_observer.consumer_added(self, consumer)
        self.dispatcher.consumer_added(consumer)
        self.wake()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Disconnect a consumer: its unacknowledged messages are redelivered."""
        if consumer not in self.consumers:
            return
        self.count_throttling()
        del self.consumers[consumer]
        self.topic.consumers_count -= 1
        self.topic.engine.client_observer.consumer_removed(self, consumer)
        self.idle_since_ms = self.topic.engine.log_ms
        self.topic.touch_idle()
        self.dispatcher.consumer_removed(consumer)
        self.throttled_dispatch.forget()
        if not self.consumers and not self.is_durable and not self.fenced:
            # The reader of a fenced subscription seeks, and comes back to it.
            self.topic.remove_subscription(self.name)
            return
        self.wake()

    def disconnect_consumers(self) -> None:
        """Close every consumer; their clients reconnect."""
        for _ in self.disconnect_in_steps():
            pass

    def disconnect_in_steps(self) -> Iterator[int]:
        """:meth:`disconnect_consumers` in steps, which yield their units."""
        for consumer in list(self.consumers):
            yield self.disconnect_consumer(consumer)

    def disconnect_consumer(self, consumer: Consumer) -> int:
        """Close one consumer, unless it has left; its client reconnects. Returns the units."""
        units = CLIENT_CLOSED + self.dispatcher.forgotten_units()
        if consumer in self.consumers:
            consumer.port.close_consumer(consumer.consumer_id)
            self.remove_consumer(consumer)
        return units

    # -- events from consumers -------------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        """A consumer requested ``permits`` more messages, at least 1 (the shell checks that)."""
        engine = self.topic.engine
        consumer.add_permits(permits, engine.now_ms)
        self.last_flow_ms = engine.now_ms
        self.dispatcher.consumer_ready(consumer)
        self.wake()

    def consumer_ready(self, consumer: Consumer) -> None:
        """A consumer's connection takes entries again."""
        self.dispatcher.consumer_ready(consumer)
        self.wake()

    def ack_entry(self, consumer: Consumer, ordinal: int) -> None:
        """A consumer acknowledged one entry. Entries that are not stored are ignored; acknowledging
        twice, or what was never sent, is harmless."""
        log = self.topic.log
        if not log.first <= ordinal < log.end:
            return
        messages = of_entry = log.message_count(ordinal)
        self.dispatcher.acked(consumer, ordinal, messages)
        acks = self.acks
        mark_delete = acks.mark_delete
        if acks.partials is not None:
            messages -= acks.partly_acked(ordinal)
        if not acks.ack(ordinal):
            return
        self.count_entry(ordinal, of_entry, messages)
        self.acked_messages += messages
        consumer.messages_acked += messages
        self._acks_moved(consumer, mark_delete)

    def ack_messages(self, consumer: Consumer, ordinal: int, indexes_mask: int) -> None:
        """A consumer acknowledged some messages of one entry: bit i of the mask stands for message
        i of its batch. The last of them acknowledges the entry.

        Until then the entry stays with its consumer, and counts there and for the limits on
        unacknowledged messages with those that are left. Entries that are not stored are ignored,
        as in :meth:`ack_entry`.

        Raises:
            InputError: the mask names a message beyond the batch, the batch is too large, or the
                subscription has too many partly acknowledged ones; nothing changed.
        """
        log, acks = self.topic.log, self.acks
        if not log.first <= ordinal < log.end or acks.is_acked(ordinal):
            return
        batch_size = log.message_count(ordinal)
        check_batch(ordinal, indexes_mask, batch_size)
        known = acks.acked_mask(ordinal, batch_size)
        acked = known | indexes_mask
        if acked == (1 << batch_size) - 1:
            self.ack_entry(consumer, ordinal)
            return
        if batch_size > PARTS_BATCH_MAX:
            raise InputError(
                f"entry {ordinal} is a batch of {batch_size:,} messages; those of up to "
                f"{PARTS_BATCH_MAX:,} are acknowledged in part"
            )
        if acked == known:
            return
        budget = self.topic.engine.partials
        if not known:
            budget.check_room(self)
        acks.put_partial(PartialEntry(ordinal, acked, batch_size), known)
        if not known:
            budget.measure(self)
        new = (acked ^ known).bit_count()
        self.dispatcher.messages_acked(consumer, ordinal, new)
        self.done_messages += new
        self.acked_messages += new
        consumer.messages_acked += new
        self._acks_moved(consumer, acks.mark_delete)

    def ack_through(self, consumer: Consumer, ordinal: int) -> None:
        """A consumer acknowledged every entry up to and including ``ordinal``."""
        last = min(ordinal, self.topic.log.end - 1)
        mark_delete = self.acks.mark_delete
        if last <= mark_delete:
            return
        acked = self.finish_through(last)
        self.acked_messages += acked
        consumer.messages_acked += acked
        self._acks_moved(consumer, mark_delete)

    def _acks_moved(self, consumer: Consumer, mark_delete_before: int) -> None:
        engine = self.topic.engine
        now_ms = engine.now_ms
        consumer.last_acked_ms = self.last_acked_ms = now_ms
        mark_delete = self.acks.mark_delete
        if mark_delete != mark_delete_before:
            self.last_mark_delete_ms = now_ms
            if mark_delete < self.topic.log.memory_first:
                self.remember_oldest()  # later its index may no longer be in memory
        self._acks_changed()
        if self.done_entries >= self.topic.log.end and self.account.cell is not Cell.CAUGHT_UP:
            # Whatever it waited for: an entry may be acknowledged while it waits for redelivery,
            # for a budget or a permit.
            self.wake()

    def redeliver(self, consumer: Consumer, ordinals: list[int] | None, epoch: int) -> None:
        """A consumer asks for redelivery, of all its entries if ``ordinals`` is None."""
        if epoch >= 0:
            consumer.epoch = epoch
        count = self.dispatcher.redeliver(consumer, ordinals)
        self.throttled_dispatch.forget()
        self.redelivered_messages += count
        consumer.messages_redelivered += count
        self.wake()

    # -- moves by administrators and seeks -------------------------------------------------

    def skip_to(self, ordinal: int) -> int:
        """Skip everything below ``ordinal``; returns how many messages that were."""
        last = min(ordinal, self.topic.log.end) - 1
        if last <= self.acks.mark_delete:
            return 0
        skipped = self.finish_through(last)
        self.skipped_messages += skipped
        self._moved()
        return skipped

    def expire_to(self, ordinal: int, ttl: MessageTtl | None) -> int:
        """Skip everything below ``ordinal`` because of its age; returns how many messages that
        were. ``ttl`` is None if an administrator asked for it. They are not counted as skipped."""
        last = min(ordinal, self.topic.log.end) - 1
        if last <= self.acks.mark_delete:
            return 0
        expired = self.finish_through(last)
        if expired:
            self.expired_messages += expired
            self.expired_by = ttl
            self.last_expire_ms = self.topic.engine.now_ms
        self._moved()
        return expired

    def evict_to(self, ordinal: int, quota: Quota) -> tuple[int, int]:
        """Skip everything below ``ordinal`` for a backlog quota; returns the messages and bytes
        that were lost."""
        last = min(ordinal, self.topic.log.end) - 1
        if last <= self.acks.mark_delete:
            return 0, 0
        before_bytes = self.done_bytes
        messages = self.finish_through(last)
        if messages:
            self.evicted_messages += messages
            self.evicted_by = quota
        self._moved()
        return messages, self.done_bytes - before_bytes

    def skip_messages(self, count: int) -> int:
        """Skip the next ``count`` unacknowledged entries; returns how many messages that were."""
        return self.skip_to(self.after_messages(count))

    def after_messages(self, count: int) -> int:
        """The ordinal behind the next ``count`` unacknowledged entries."""
        log = self.topic.log
        start = max(self.acks.mark_delete + 1, log.first)
        return after_unacked(self.acks, start, count, log.end)

    def skip_lost(self, ordinal: int) -> None:
        """Skip one entry that the disk lost, after an administrator accepted that."""
        log, acks = self.topic.log, self.acks
        if not log.first <= ordinal < log.end or acks.is_acked(ordinal):
            return
        messages = of_entry = log.message_count(ordinal)
        self.dispatcher.acked(None, ordinal, messages)
        if acks.partials is not None:
            messages -= acks.partly_acked(ordinal)
        acks.ack(ordinal)
        self.count_entry(ordinal, of_entry, messages)
        self.skipped_messages += messages
        self._acks_changed()

    def damage_accepted(self) -> None:
        """An administrator accepted the damage: go on with what is left."""
        self.damage = self.damaged_entry = self.read_failed = ""
        self.read_completed()

    def reset(self, ordinal: int, acked_mask: int = 0) -> None:
        """Seek: deliver ``ordinal`` next; entries below it count as done, entries above do not.
        Nor do messages of it, but those in ``acked_mask``, which are not all, if there is room.

        The shell has fenced the subscription and disconnected its consumers.
        """
        invariant(not self.consumers, "a subscription is reset without consumers")
        log = self.topic.log
        target = min(max(ordinal, log.first), log.end)
        before = self.done_messages
        self.resets_count += 1
        self.acks.reset(target - 1)
        budget = self.topic.engine.partials
        budget.measure(self)
        if acked_mask and target == ordinal < log.end:
            batch_size = log.message_count(ordinal)
            if batch_size <= PARTS_BATCH_MAX and budget.has_room(self):
                self.acks.ack_messages(ordinal, acked_mask, batch_size)
                budget.measure(self)
        self.topic.cursors.changed(self)
        self.damage = ""  # its old acknowledgements no longer matter
        self.count_done()
        moved = self.done_messages - before
        if moved >= 0:
            self.skipped_messages += moved
        else:
            self.rewound_messages -= moved
        self._moved()
        if self.topic.quota is not None:
            self.topic.quota.subscription_changed(self)

    def _moved(self) -> None:
        engine = self.topic.engine
        self.topic.touch_idle()
        self.damaged_entry = self.read_failed = ""
        self.last_mark_delete_ms = engine.now_ms
        self.dispatcher.cursor_moved()
        self.throttled_dispatch.forget()
        self._acks_changed()
        self.wake()

    def _acks_changed(self) -> None:
        """Store the acknowledgements soon; a backlog quota may have room now."""
        topic = self.topic
        if self.cursor_id is None:
            self.acks.forget_changes()
        elif not self.acks_dirty:
            self.acks_dirty = True
            topic.engine.acks_changed(self)
        quota = topic.quota
        if quota is not None and quota.awaits_acks:
            topic.engine.quotas.touch(quota)

    def trimmed(self) -> None:
        """The topic trimmed entries: a cursor that is still before them moves on.

        A reader may not have acknowledged them, and a durable cursor may have been created at them,
        or moved back to them, after the decision to trim.
        """
        if self.acks.mark_delete + 1 < self.topic.log.first:
            self.skip_to(self.topic.log.first)

    # -- dispatch --------------------------------------------------------------------------

    def wake(self) -> None:
        """Have the engine dispatch to this subscription before the turn ends."""
        if not self.dirty:
            self.dirty = True
            self.topic.engine.dirty_subscription(self)

    def read(self, ordinal: int) -> None:
        """Cache the topic's entries from ``ordinal`` on; it ends in :meth:`read_completed`."""
        self.topic.engine.read(self, ordinal)

    def next_ordinal(self) -> int:
        """The entry to deliver next; -1 if everything deliverable was delivered."""
        return self.dispatcher.next_run()[0]

    def entries_to_read(self, ordinal: int) -> int:
        """How many entries from ``ordinal`` on a read from disk should bring at most."""
        return self.dispatcher.entries_to_read(ordinal)

    def read_completed(self) -> None:
        """The dispatcher's read has ended; its entries are cached unless it failed."""
        self.dispatcher.reading = False
        self.wake()

    def read_abandoned(self) -> None:
        """The dispatcher's read has ended at once: it would begin at a damaged entry."""
        self.dispatcher.reading = False

    def count_throttling(self) -> None:
        """Count a wait at a limiter up to now, so that events and amounts are exact."""
        self.gate.count_until(self.topic.engine.now_ns)
        if self.throttled:
            self.throttled_dispatch.count_delayed(self.dispatcher)

    def close(self, now_ns: int) -> None:
        """Take it out of every queue, without consumers.

        Raises:
            SubscriptionBusyError: it has consumers.
        """
        if self.consumers:
            raise SubscriptionBusyError("Subscription has active connected consumers")
        self.forget(now_ns, is_gone=True)

    def forget(self, now_ns: int, *, is_gone: bool) -> None:
        """Remove it; only what it spent of its limit stays known (law 1.1). ``is_gone`` unless it
        is unloaded with its topic."""
        self.fenced = self.removed = True
        self.dispatcher.leave()
        self.topic.engine.subscription_ended(self)
        is_reader, retired = not self.is_durable, self.topic.gate.retired
        retired.keep(self.name, self.gate, now_ns, is_reader=is_reader, is_gone=is_gone)

    def counters(self) -> tuple[int, int, int, int, int]:
        """Messages and bytes sent; messages acknowledged, redelivered, expired: for the rates."""
        return (
            self.messages_sent,
            self.bytes_sent,
            self.acked_messages,
            self.redelivered_messages,
            self.expired_messages,
        )

    def current_rates(self) -> tuple[float, ...]:
        """Rates of what :meth:`counters` counts, per second."""
        return self.rates.per_second(self.counters(), self.topic.engine.now_ns)

    def limits_set(self) -> tuple[RateLimit | None, RateLimit | None, RateLimit | None]:
        """The dispatch limits that are set and apply to it, indexed by :class:`Level`."""
        return self.limit, self.topic.limit, self.topic.engine.broker_limit

    def limit_statistics(self) -> GateStatistics:
        """The figures of its own dispatch limit."""
        return self.gate.statistics(self.topic.engine.now_ns)

    def waiting_subscriptions(self, level: Level) -> int:
        """Subscriptions that wait now at the topic's or the broker's limit; 0 for its own limit,
        which it shares with nobody."""
        if level is Level.BROKER:
            return self.topic.engine.gate.demand
        return self.topic.gate.demand if level is Level.TOPIC else 0


def _dispatcher_of(subscription: Subscription, kind: SubscriptionType) -> Dispatcher:
    if kind is SubscriptionType.SHARED:
        return SharedDispatcher(subscription)
    return SingleActiveDispatcher(subscription, kind)
