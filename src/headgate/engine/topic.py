"""A topic: its producers, its subscriptions and its life from load to unload."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeVar
from weakref import proxy

from headgate.base.ack_set import AckSet
from headgate.base.chunk import Chunk
from headgate.base.drained import drained
from headgate.base.names import TopicName
from headgate.base.work_units import CLIENT_CLOSED, WOKEN_AT_ONCE_MAX
from headgate.engine.block_budget import BlockBudget
from headgate.engine.cache import TopicCache
from headgate.engine.client_observer import ClientObserver
from headgate.engine.cursor_order import CursorOrder
from headgate.engine.delay_schedule import DelaySchedule
from headgate.engine.delayed_delivery import DEFAULT_DELAYED_DELIVERY
from headgate.engine.delayed_entries import DueTimeOf
from headgate.engine.engine_limits import UnackedLimits
from headgate.engine.entry_appender import EntryAppender
from headgate.engine.errors import (
    DamagedError,
    ProducerBusyError,
    SubscriptionBusyError,
    TopicFencedError,
    TopicTerminatedError,
)
from headgate.engine.eviction import Eviction
from headgate.engine.exclusive_access import ExclusiveAccess
from headgate.engine.large_entry_looks import SMALL_BYTES, LargeEntryLooks
from headgate.engine.memory_part import MemoryPart
from headgate.engine.partial_budget import PartialBudget
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer
from headgate.engine.property_budget import PropertyBudget
from headgate.engine.publishing import ALL_ENTRIES, PublishingEngine, TopicPublishing
from headgate.engine.rate_meter import RateMeter
from headgate.engine.remembered_budget import RememberedBudget
from headgate.engine.send_rules import SendRules
from headgate.engine.subscription import Subscription
from headgate.engine.topic_quota import ParkedSendBounds, QuotaSchedule, TopicQuota
from headgate.engine.types import AccessMode
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.gate_node import GateStatistics
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.limits.relative import PublishRate
from headgate.flow.quota.backlog_quota import Quota

T = TypeVar("T")


class RelativeLimitListener(Protocol):
    """The relative limits, as far as a topic needs them."""

    def published(self, topic: Topic, first: int, /) -> None:
        """Entries from ``first`` on were published to a topic whose publish rate is followed."""

    def limits_set(self, topic: Topic, /) -> None:
        """Limits that concern the topic were set or removed."""


class TopicEffects(EntryAppender, Protocol):
    """The shell, as far as a topic needs it."""

    def chunk_of(self, body: bytes, /) -> Chunk | None:
        """The chunk that an entry is; None if it is none."""


_UNAVAILABLE: Final = "Topic is temporarily unavailable"
"""Pulsar's text."""


class TopicEngine(PublishingEngine, Protocol):
    """The engine, as far as its topics and their subscriptions need it."""

    written_ns: int
    partials: PartialBudget
    ack_blocks: BlockBudget
    properties: PropertyBudget
    memory_part: MemoryPart
    gate: BrokerGate
    broker_limit: RateLimit | None
    published: dict[Topic, None] | None
    by_number: dict[int, Topic]
    throttle_counts_entries: bool
    throttle_spares_caught_up: bool
    due_time_of: DueTimeOf
    delays: DelaySchedule
    remembered: RememberedBudget
    client_observer: ClientObserver

    @property
    def effects(self) -> TopicEffects:
        """Where entries are appended, and what knows their content."""

    @property
    def parked(self) -> ParkedSendBounds:
        """The bounds on parked SENDs."""

    @property
    def quotas(self) -> QuotaSchedule:
        """The work that backlog quotas do in each turn."""

    def wake_subscriptions(self, topic: Topic, /) -> None:
        """Have the next flushes dispatch to all subscriptions of a topic with very many."""

    @property
    def relative(self) -> RelativeLimitListener:
        """The limits that are relative to a publish rate."""

    def wake_at(self, when_ns: int, action: Callable[[], None], /) -> None:
        """Run ``action`` in the first flush at or after ``when_ns``."""

    def dirty_subscription(self, subscription: Subscription, /) -> None:
        """Have the next flush dispatch to a subscription."""

    def read(self, subscription: Subscription, ordinal: int, /) -> None:
        """Read entries into the topic's cache."""

    def is_looked_up(
        self, topic: Topic, action: Callable[[], object], again: Callable[[], None], /
    ) -> bool:
        """Whether a look-up of entries succeeded; else ``again`` follows when the index is read."""

    def may_release(self, topic: Topic, /) -> None:
        """Look soon whether entries of a topic can be trimmed."""

    def acks_changed(self, subscription: Subscription, /) -> None:
        """Store a subscription's acknowledgements soon."""

    def subscription_added(self, subscription: Subscription, /) -> None:
        """A subscription became live: apply its limit and tell the observer."""

    def subscription_removed(self, subscription: Subscription, /) -> None:
        """Tell the observer that a subscription is about to be removed."""

    def subscription_ended(self, subscription: Subscription, /) -> None:
        """A subscription was removed, or unloaded: count nothing of it any more."""

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None:
        """Report that a quota stops producers, or no longer does."""

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None:
        """Report that a quota took messages from subscriptions."""


class Topic:
    """One loaded topic (one partition, if it is partitioned)."""

    __slots__ = (
        "__weakref__", "_looks", "access", "bytes_in_before_load", "bytes_out_removed", "cache",
        "chunk", "chunks_stop", "consumers_count", "created_ms", "cursors", "delayed_delivery",
        "delays_ignored", "delays_refused", "delays_stop", "durable_count", "engine",
        "entries_in_before_load", "entries_read", "fenced", "gate", "idle_since_ns", "incarnation",
        "is_system", "limit", "loaded_ms", "log", "messages_in_before_load",
        "messages_out_removed", "name", "partition", "producers", "publish_rate", "publishing",
        "quota", "rates", "send_rules", "subscriptions", "terminated", "terminating",
        "unacked_limits",
    )  # fmt: skip

    def __init__(
        self,
        engine: TopicEngine,
        name: TopicName,
        log: EntryLog,
        gate: TopicGate,
        *,
        incarnation: int = 0,
        created_ms: int = 0,
        is_system: bool = False,
        epoch: int | None = None,
        terminated: bool = False,
    ) -> None:
        self.engine = engine
        self.name = name
        self.partition = name.partition
        self.log = log
        self.gate = gate
        """The budget of its dispatch limit."""
        gate.owner = self
        self.incarnation = incarnation
        self.created_ms = created_ms
        self.loaded_ms = engine.now_ms
        """When it was loaded; its counters start then."""
        self.is_system = is_system
        self.chunk = 0
        """Its place in the engine's order of topics."""
        self.cache: TopicCache = {}
        self.producers: dict[str, Producer] = {}
        self.access = None if epoch is None else ExclusiveAccess(epoch)
        """Exclusive access; created when a producer first asks for it."""
        self.terminated = terminated
        """Whether it takes no more messages, for good."""
        self.fenced = self.terminating = False
        """Whether it is being closed; or terminated, when it takes no producers, too."""
        self.subscriptions: dict[str, Subscription] = {}
        self.cursors = CursorOrder(self.subscriptions)
        self.consumers_count = self.durable_count = 0
        """Connected consumers of all subscriptions; subscriptions that are not of readers."""
        self.unacked_limits: UnackedLimits = engine.limits
        """Those of its policies, else of the settings."""
        self.quota: TopicQuota | None = None
        """Created when the topic first has a backlog quota."""
        self.publishing = TopicPublishing(self)
        self.idle_since_ns = engine.now_ns
        """When it was last known to be used."""
        self.messages_in_before_load = log.messages_before(log.end)
        self.bytes_in_before_load = log.bytes_before(log.end)
        self.entries_in_before_load = log.end
        self.entries_read = 0
        """Entries read from disk since the topic was loaded."""
        self.messages_out_removed = self.bytes_out_removed = 0
        self.chunks_stop = log.end
        """Entries below it may be chunks of messages: all that are stored when the topic is loaded,
        and all entries once a producer sent a chunk."""
        self.delays_ignored = self.delays_refused = 0
        """Messages that were delivered at once; SENDs that asked for too long a delay."""
        self.delayed_delivery = DEFAULT_DELAYED_DELIVERY
        """The effective policy of delayed delivery."""
        self.delays_stop = log.end
        """Entries below it may be delayed: all that are stored when the topic is loaded, and all
        entries once a producer sent a delayed one."""
        self._looks: LargeEntryLooks | None = None  # until the first look at a large entry
        self.send_rules: SendRules | None = None
        """What is asked of its messages; None for nothing."""
        self.rates = RateMeter(4)
        self.limit: RateLimit | None = None
        """The dispatch limit as it is set; the gate has the amounts in force."""
        self.publish_rate: PublishRate | None = None
        """The measured publish rate, while a relative limit depends on it."""

    def leave(self) -> None:
        """It is unloaded, and its subscriptions have ended. Nothing that it has keeps it in memory:
        so it is freed when nobody uses it. A cycle would be freed by a complete collection only,
        before which one client could make gigabytes of them."""
        self.subscriptions.clear()
        self.cursors = CursorOrder(self.subscriptions)  # the old one holds their cursors
        self.gate.owner = None
        if self.publishing.gate is not None:
            self.publishing.gate.owner = None
        self.quota = None
        if (parking := self.publishing.parking) is not None:
            parking.hold_timer_ns = 0  # the timer of a hold, which knows it, does nothing
        if not self.producers and not self.publishing.pending_count:  # else they need it
            self.publishing.topic = proxy(self)

    # -- producers -------------------------------------------------------------------------

    def add_producer(self, producer: Producer) -> None:
        """Connect a producer.

        Raises:
            TopicFencedError: the topic is being closed; the client may try again.
            TopicTerminatedError: the topic takes no more messages.
            DamagedError: the topic lost data, and nobody has accepted that.
            ProducerFencedError: it wants exclusive access, and the topic has producers.
            ProducerBusyError: its name is taken, or another producer has exclusive access.
        """
        self.check_takes_messages()
        if producer.access_mode is not AccessMode.SHARED:
            self.exclusive_access().confirm(producer, self.producers)
        elif self.access is not None:
            self.access.check_shared()
        if producer.name in self.producers:
            raise ProducerBusyError(
                f"Producer with name '{producer.name}' is already connected to topic"
            )
        self.producers[producer.name] = producer
        producer.publishing = self.publishing
        self.engine.client_observer.producer_added(self, producer)
        if self.publishing.deduplication is not None:
            self.publishing.deduplication.connected(producer)

    def exclusive_access(self) -> ExclusiveAccess:
        """Exclusive access to the topic; created when a producer first asks for it."""
        if self.access is None:
            self.access = ExclusiveAccess()
        return self.access

    def check_takes_messages(self) -> None:
        """Check that the topic is not being closed, and that producers may join it.

        Raises:
            TopicFencedError: the topic is being closed or terminated; the client may try again.
            TopicTerminatedError: it is terminated.
            DamagedError: it lost data, and nobody has accepted that.
        """
        self.check_not_fenced()
        if self.terminated:
            raise TopicTerminatedError("Topic was already terminated")
        if self.terminating:
            raise TopicFencedError(_UNAVAILABLE)
        self.check_not_damaged()

    def check_not_fenced(self) -> None:
        """Raise :class:`TopicFencedError` if the topic is being closed."""
        if self.fenced:
            raise TopicFencedError(_UNAVAILABLE)

    def check_loaded(self) -> None:
        """Raise :class:`TopicFencedError` if the topic is no longer loaded."""
        if not self.is_live:
            raise TopicFencedError(_UNAVAILABLE)

    def check_not_damaged(self) -> None:
        """Raise :class:`DamagedError` if the topic lost data and nobody has accepted that."""
        if self.log.damage:
            raise DamagedError(str(self.name), self.log.damage)

    def may_be_delayed(self) -> None:
        """A producer sends a delayed message: subscriptions look at each entry from now on."""
        self.delays_stop = ALL_ENTRIES

    def may_have_chunks(self) -> None:
        """A producer sends a chunk, or one waits for its consumer: subscriptions look at each
        entry from now on."""
        self.chunks_stop = ALL_ENTRIES

    def chunk_of(self, ordinal: int, body: bytes) -> Chunk | None:
        """The chunk that an entry is; None if it is none."""
        return self.look(self.engine.effects.chunk_of, ordinal, body)

    def look(self, look: Callable[[bytes], T], ordinal: int, body: bytes) -> T:
        """What ``look`` finds in an entry: of a large one it is remembered."""
        if len(body) <= SMALL_BYTES:
            return look(body)
        if self._looks is None:
            self._looks = LargeEntryLooks()
        return self._looks.of(look, ordinal, body)

    def remove_producer(self, producer: Producer) -> None:
        """Disconnect a producer. What it staged is still stored, without receipts; what it parked
        is dropped."""
        producer.closed = True
        self.publishing.producer_left(producer)
        producer.publishing = None
        if self.producers.get(producer.name) is producer:
            del self.producers[producer.name]
            self.engine.client_observer.producer_removed(self, producer)
            if self.access is not None:
                self.access.left(producer, self.producers)
            if self.publishing.deduplication is not None:
                self.publishing.deduplication.disconnected(producer)
            self.touch_idle()

    def entries_visible(self, first: int) -> None:
        """Entries from ``first`` on are durable: dispatch them."""
        engine = self.engine
        if self.publish_rate is not None:
            engine.relative.published(self, first)
        if len(self.subscriptions) > WOKEN_AT_ONCE_MAX:
            engine.wake_subscriptions(self)
        else:
            for subscription in self.subscriptions.values():
                if not subscription.throttled:
                    subscription.wake()
        if not self.is_system and first < self.log.end:
            engine.written_ns = engine.now_ns
            if engine.published is not None:
                engine.published[self] = None

    # -- backlog quota ---------------------------------------------------------------------

    def quota_state_changed(self, quota: Quota, exceeded: bool) -> None:
        """Report that a quota stops producers, or no longer does."""
        self.engine.quota_state_changed(self, quota, exceeded)

    def evicted(self, eviction: Eviction) -> None:
        """Report that a quota took messages from subscriptions."""
        self.engine.evicted(self, eviction)

    def is_looked_up(self, action: Callable[[], object], again: Callable[[], None]) -> bool:
        """Whether a look-up of entries succeeded; else ``again`` follows when the index is read."""
        return self.engine.is_looked_up(self, action, again)

    # -- subscriptions ---------------------------------------------------------------------

    def add_subscription(
        self,
        name: str,
        acks: AckSet,
        *,
        cursor_id: int | None,
        properties: dict[str, str] | None = None,
    ) -> Subscription:
        """Create a subscription with the cursor ``acks``; ``cursor_id`` is None for a reader."""
        gate = self.gate.retired.take(name, self.engine.now_ns, is_reader=cursor_id is None)
        subscription = Subscription(
            self,
            name,
            acks,
            gate or self.gate.waiter(),
            cursor_id=cursor_id,
            properties=properties,
            now_ns=self.engine.now_ns,
            now_ms=self.engine.now_ms,
        )
        self.subscriptions[name] = subscription
        self.durable_count += cursor_id is not None
        self.cursors.changed(subscription)
        self.engine.subscription_added(subscription)
        subscription.trimmed()
        subscription.wake()
        if self.quota is not None:
            self.quota.subscription_changed(subscription)
        return subscription

    def remove_subscription(self, name: str) -> None:
        """Remove a subscription without consumers.

        Raises:
            SubscriptionBusyError: it has consumers.
        """
        subscription = self.subscriptions[name]
        if subscription.consumers:
            raise SubscriptionBusyError("Subscription has active connected consumers")
        self.engine.subscription_removed(subscription)
        subscription.close(self.engine.now_ns)
        del self.subscriptions[name]
        self.durable_count -= subscription.is_durable
        self.cursors.removed(subscription)
        self.messages_out_removed += subscription.messages_sent
        self.bytes_out_removed += subscription.bytes_sent
        if subscription.limit is not None and subscription.limit.relative:
            self.engine.relative.limits_set(self)
        if self.quota is not None:
            self.quota.subscription_changed(subscription)
        self.touch_idle()

    def slowest_durable_ordinal(self) -> int:
        """The first entry that a durable subscription has not acknowledged; the end without any."""
        oldest = self.cursors.oldest_durable()
        return self.log.end if oldest is None else oldest.acks.mark_delete + 1

    def first_needed_ordinal(self) -> int:
        """:meth:`slowest_durable_ordinal`, within the retained entries."""
        return min(max(self.slowest_durable_ordinal(), self.log.first), self.log.end)

    def oldest_unacked(self) -> tuple[int, str] | None:
        """When the broker received the oldest message that a durable subscription has not
        acknowledged, and the name of that subscription; None without backlog."""
        return min(
            (
                (received_ms, s.name)
                for s in self.subscriptions.values()
                if s.is_durable and (received_ms := s.oldest_unacked_ms()) is not None
            ),
            default=None,
        )

    def trimmed(self) -> None:
        """The log trimmed entries: no subscription waits for them any longer."""
        for subscription in self.cursors.before(self.log.first):
            subscription.trimmed()

    # -- life ------------------------------------------------------------------------------

    @property
    def is_live(self) -> bool:
        """Whether it is still loaded. Check this after every wait."""
        return self.engine.by_number.get(self.log.number) is self

    def has_clients(self) -> bool:
        """Whether it has producers, consumers, producers that wait for access, or entries of
        producers that are to be stored."""
        if self.access is not None and not self.access.is_idle:
            return True
        return bool(self.producers or self.consumers_count or self.publishing.pending_count)

    def touch_idle(self) -> None:
        """A producer, consumer or subscription has left, or something else shows that it is
        used."""
        self.idle_since_ns = self.engine.now_ns

    def fence(self) -> None:
        """Refuse new clients and close all present ones: the topic is unloaded or deleted next."""
        self.fenced = True
        for _ in self.disconnect_clients():
            pass

    def disconnect_clients(self) -> Iterator[int]:
        """Close all producers and consumers of a fenced topic, in steps; each yields how many, or
        what takes as long."""
        if self.access is not None:
            for waiter in drained(self.access.take_waiters()):
                waiter.refused(TopicFencedError(_UNAVAILABLE))
                yield 1
        for producer in list(self.producers.values()):
            if not producer.closed:
                producer.port.close_producer(producer.producer_id)
                self.remove_producer(producer)
                yield 1
        for subscription in list(self.subscriptions.values()):
            yield 0
            for consumer in list(subscription.consumers):
                yield subscription.disconnect_consumer(consumer) // CLIENT_CLOSED

    # -- what reports read -----------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        """The monotonic time of this turn."""
        return self.engine.now_ns

    @property
    def now_ms(self) -> int:
        """The wall clock of this turn."""
        return self.engine.now_ms

    @property
    def log_ms(self) -> int:
        """The time of the log in this turn, which dates messages."""
        return self.engine.log_ms

    @property
    def batches_count_as_one(self) -> bool:
        """Whether a batch counts as one message for dispatch limits."""
        return self.engine.throttle_counts_entries

    def limit_statistics(self) -> GateStatistics:
        """The figures of its dispatch limit."""
        return self.gate.statistics(self.engine.now_ns)

    def current_rates(self) -> tuple[float, ...]:
        """Rates of what :meth:`counters` counts, per second."""
        return self.rates.per_second(self.counters(), self.engine.now_ns)

    def messages_in(self) -> int:
        """Messages stored since the topic was loaded."""
        return self.log.messages_before(self.log.end) - self.messages_in_before_load

    def bytes_in(self) -> int:
        """Bytes stored since the topic was loaded."""
        return self.log.bytes_before(self.log.end) - self.bytes_in_before_load

    def counters(self) -> tuple[int, int, int, int]:
        """Messages, bytes and entries stored and entries read from disk since the load, for the
        rates."""
        entries_in = self.log.end - self.entries_in_before_load
        return self.messages_in(), self.bytes_in(), entries_in, self.entries_read

    def backlog_bytes(self) -> int:
        """The largest exact backlog of a durable subscription."""
        return max(
            (s.backlog_bytes for s in self.subscriptions.values() if s.is_durable), default=0
        )

    def storage_bytes(self) -> int:
        """Bytes of all entries held."""
        return self.log.bytes_before(self.log.end) - self.log.bytes_before(self.log.first)
