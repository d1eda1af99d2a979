"""The engine of one broker: its topics, and the turn in which their work is done.

The shell sets the time at the start of a turn (:meth:`Engine.begin_turn`) and calls events. Before
the loop rests it calls :meth:`Engine.flush`, which dispatches for every subscription that an event
touched and for every budget that has room again. A flush is bounded; if work is left over, it asks
for another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple, cast

from headgate.base.chunks import Chunks
from headgate.base.fair_queue import FairQueue
from headgate.base.names import TopicName
from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import MIB
from headgate.base.work_units import CONSUMERS_PER_UNIT, FLUSH_UNITS
from headgate.engine.admission import AdmissionControl
from headgate.engine.block_budget import BlockBudget
from headgate.engine.cache import EntryCache
from headgate.engine.client_observer import ClientObserver, NoClientObserver
from headgate.engine.deduplication import SequenceTotals
from headgate.engine.delay_schedule import DelaySchedule
from headgate.engine.disk_full_hold import DiskFullHold
from headgate.engine.effects import Effects
from headgate.engine.engine_limits import EngineLimits, UnackedLimits
from headgate.engine.engine_policies import EnginePolicies
from headgate.engine.eviction import Eviction
from headgate.engine.memory_part import MemoryPart
from headgate.engine.observer import NoObserver, Observer
from headgate.engine.parked_bounds import ParkedBounds
from headgate.engine.partial_budget import PartialBudget
from headgate.engine.ports import EntryLog
from headgate.engine.property_budget import PropertyBudget
from headgate.engine.quota_scheduler import QuotaScheduler
from headgate.engine.relative import RelativeLimits
from headgate.engine.remembered_budget import RememberedBudget
from headgate.engine.subscription import Subscription
from headgate.engine.tenant_storage import TenantStorage
from headgate.engine.topic import Topic
from headgate.engine.topic_quota import TopicQuota
from headgate.engine.waking_topics import WakingTopics
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.gate_node import GateStatistics
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.limits.relative import PublishRate
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota

FLUSH_ENTRIES_MAX = FLUSH_UNITS
"""Entries sent in one flush: less than a millisecond of work, also where limits apply."""

PUMP_ENTRIES_MAX = 64
"""Entries that one subscription sends before the next one's turn."""

WAITING_ENTRIES_MIN = FLUSH_ENTRIES_MAX // 2
"""How many of a flush's entries are reserved for waiters whose budgets have room again."""

TOUCHED_UNITS_MIN = FLUSH_ENTRIES_MAX // 4
"""What is left of a flush for subscriptions that events touched: one large entry of a waiter may
use up a whole one."""

WOKEN_UNITS_MAX = FLUSH_ENTRIES_MAX // 4
"""What a flush does of :meth:`Engine.wake_subscriptions`: it dispatches to fewer in its time."""

FEW_DIRTY: Final = FLUSH_ENTRIES_MAX // 8
CROWDED_MAX: Final = 1_024
"""If more than a few subscriptions were touched, a flush puts so many into the turns of their
tenants: about a millisecond. A single one is cheaper without turns, by 1.5 us."""

CONSUMERS_PER_UNIT_BITS = CONSUMERS_PER_UNIT.bit_length() - 1


class _Unloaded(NamedTuple):
    """What is kept of an unloaded topic: its budgets and publish rate, and how many durable
    subscriptions it has in the log, which count for its tenant."""

    gate: TopicGate | None = None
    publish_gate: TopicGate | None = None
    publish_rate: PublishRate | None = None
    durable_count: int = 0


class Engine:
    """One broker's topics, budgets and turn."""

    def __init__(
        self,
        effects: Effects,
        *,
        limits: EngineLimits | None = None,
        cache_bytes_max: int = 64 * MIB,
        policies: EnginePolicies | None = None,
        now_ns: int = 0,
        now_ms: int = 0,
        log_ms: int = 0,
    ) -> None:
        self.effects = effects
        self.work_pending = effects.work_pending
        self.observer: Observer = NoObserver()
        """Receives the engine's events; assign another to observe."""
        self.client_observer: ClientObserver = NoClientObserver()
        """Receives the coming and going of clients; assign another to observe."""
        self.limits = limits or EngineLimits()
        self.policies = policies or EnginePolicies()
        self.cache = EntryCache(cache_bytes_max)
        self.gate = BrokerGate()
        self.ended_count = 0
        """Topics that were unloaded and subscriptions that were removed since the start."""
        self.topics: dict[str, Topic] = {}
        self.loaded: Chunks[Topic] = Chunks()
        """The same topics in the order in which they were loaded, for walks."""
        self.by_number: dict[int, Topic] = {}
        self.by_namespace: dict[str, dict[Topic, None]] = {}
        self.by_base: dict[str, dict[Topic, None]] = {}
        """Topics named like a partition, by the full name without the partition."""
        self.duplicates_dropped = 0
        """Messages of all topics that deduplication did not store."""
        self.damaged_topics: set[int] = set()
        """Numbers of topics that have lost data, or whose subscriptions have."""
        self.now_ns = now_ns
        self.now_ms = now_ms
        self.log_ms = log_ms
        self.throttle_counts_entries = False
        """dispatchThrottlingOnBatchMessageEnabled: a batch counts as one message."""
        self.throttle_spares_caught_up = False
        """dispatchThrottlingOnNonBacklogConsumerEnabled=false: caught up means unlimited."""
        self.broker_limit: RateLimit | None = None
        """The broker-wide limit as it is set."""
        self.relative = RelativeLimits(self)
        self.partials, self.ack_blocks = PartialBudget(), BlockBudget()
        """What partly acknowledged batches take, and what is acknowledged out of order."""
        self.properties, self.sequence_totals = PropertyBudget(), SequenceTotals()
        self.durable_by_tenant: SparseCounter[str] = SparseCounter()
        """Durable subscriptions of the loaded topics of each tenant that has some."""
        self.remembered = RememberedBudget()
        """What subscriptions without consumers remember of entries."""
        self.due_time_of, self.delays = self.policies.due_time_of, DelaySchedule()
        self.memory_part = MemoryPart(self)
        self.quotas = QuotaScheduler(self)
        self.admission = AdmissionControl(self)
        self.parked = ParkedBounds(self)
        self.disk_full_hold, self.tenant_storage = DiskFullHold(self), TenantStorage()
        self.published: dict[Topic, None] | None = None
        """Users' topics that published since the last adaptive cycle; None without one."""
        self.written_ns = now_ns
        """When an entry of a user's topic last became durable."""
        self._unloaded: dict[int, _Unloaded] = {}
        """Unloaded topics by their numbers: an unload forgives nothing (law 1.1)."""
        self._dirty: deque[Subscription] = deque()
        """Subscriptions in the order in which events touched them."""
        self._crowd: FairQueue[Subscription] = FairQueue()
        """The first of them while they are many, so that tenants take turns."""
        self._waking = WakingTopics()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._timer_sequence = 0

    # -- the turn --------------------------------------------------------------------------

    def begin_turn(self, now_ns: int, now_ms: int, log_ms: int) -> None:
        """Set the time for everything that happens until the next call.

        ``now_ns`` is for durations and rates, ``now_ms`` the wall clock, to be shown, ``log_ms``
        the time of the log (see headgate.base.log_time), for receive times and ages.
        """
        self.now_ns = now_ns
        self.now_ms = now_ms
        self.log_ms = log_ms

    def dirty_subscription(self, subscription: Subscription) -> None:
        """Have the next flush dispatch to ``subscription``."""
        if not self._dirty:
            self.work_pending()
        self._dirty.append(subscription)

    def wake_subscriptions(self, topic: Topic) -> None:
        """Have the next flushes dispatch to all subscriptions of ``topic``: so many that one event
        cannot touch them all."""
        self._waking.add(topic)
        self.work_pending()

    def flush(self) -> bool:
        """Dispatch what events and time made possible; returns whether work is left over."""
        now_ns = self.now_ns
        timers = self._timers
        while timers and timers[0][0] <= now_ns:
            heappop(timers)[2]()
        self.delays.wake_due(self.now_ms)
        budget = FLUSH_ENTRIES_MAX - self.quotas.work(WAITING_ENTRIES_MIN)
        budget -= self.admission.work(WAITING_ENTRIES_MIN)
        budget -= self._serve_waiting(WAITING_ENTRIES_MIN)
        if self._waking:
            budget -= self._waking.wake_some(WOKEN_UNITS_MAX)
        budget = max(budget, TOUCHED_UNITS_MIN)
        dirty, crowd = self._dirty, self._crowd
        if crowd or len(dirty) > FEW_DIRTY:
            for _ in range(min(len(dirty), CROWDED_MAX)):
                subscription = dirty.popleft()
                crowd.add(subscription.topic.name.tenant, subscription)
            take, count = crowd.take, len(crowd)
        else:
            take, count = dirty.popleft, len(dirty)
        for _ in range(count):
            if budget <= 0:
                return True
            subscription = take()
            subscription.dirty = False
            if subscription.removed:
                continue  # its budgets may serve a successor already
            if subscription.topic.fenced and subscription.consumers:
                continue  # they are disconnected: what one gives back is not for the next one
            budget -= 1 + subscription.dispatcher.pump(now_ns, PUMP_ENTRIES_MAX)
            budget -= len(subscription.consumers) >> CONSUMERS_PER_UNIT_BITS
        if self._serve_waiting(budget) >= budget or dirty or crowd or self._waking:
            return True
        return self.quotas.is_busy or self.admission.is_busy

    def _serve_waiting(self, entries_max: int) -> int:
        """Dispatch to waiters whose budgets have room again, in their fair order, one entry each.

        Returns how many of ``entries_max`` that took; all of them if waiters are left.
        """
        now_ns = self.now_ns
        used = 0
        while used < entries_max:
            ready = self.gate.pop_ready(now_ns)
            if ready is None:
                break
            owner = cast(Subscription, ready.owner)
            used += 1 + owner.dispatcher.pump(now_ns, 1)
            used += len(owner.consumers) >> CONSUMERS_PER_UNIT_BITS
        return used

    def next_wake_ns(self) -> int | None:
        """When :meth:`flush` has something to do without any event; None for never."""
        wakes = [self.gate.next_wake_ns(), self.admission.gate.next_wake_ns()]
        if self._timers:
            wakes.append(self._timers[0][0])
        wakes.append(self.delays.next_wake_ns(self.now_ns, self.now_ms))
        return min((wake_ns for wake_ns in wakes if wake_ns is not None), default=None)

    def wake_at(self, when_ns: int, action: Callable[[], None]) -> None:
        """Run ``action`` in the first flush at or after ``when_ns``."""
        self._timer_sequence += 1
        heappush(self._timers, (when_ns, self._timer_sequence, action))
        self.work_pending()

    # -- topics ----------------------------------------------------------------------------

    def live_topics(self) -> Iterator[Topic]:
        """The topics that are loaded now, in the order in which they were loaded.

        The caller may let others run between two of them. A topic that is unloaded before the walk
        reaches it is left out; one that is loaded after the walk began is not part of it.
        """
        for topics in self.loaded.walk():
            for topic in topics:
                if topic.is_live:
                    yield topic

    def load_topic(
        self,
        name: TopicName,
        log: EntryLog,
        *,
        incarnation: int = 0,
        created_ms: int = 0,
        is_system: bool = False,
        epoch: int | None = None,
        terminated: bool = False,
    ) -> Topic:
        """Load a stored topic. The caller adds its subscriptions."""
        if not is_system:
            self.tenant_storage.join(log, name)
        kept = self._unloaded.pop(log.number, _Unloaded())
        topic = Topic(
            self,
            name,
            log,
            kept.gate or self.gate.topic(tenant=name.tenant),
            incarnation=incarnation,
            created_ms=created_ms,
            is_system=is_system,
            epoch=epoch,
            terminated=terminated,
        )
        self.topics[name.full] = topic
        self.properties.loaded_or_deleted(name, log.number)
        self.partials.loaded_or_deleted(name, log.number)
        self.ack_blocks.loaded_or_deleted(name, log.number)
        self._count_durable(topic, -kept.durable_count)
        topic.chunk = self.loaded.add(topic)
        self.by_number[log.number] = topic
        for group, key in self._groups_of(name):
            group.setdefault(key, {})[topic] = None
        if kept.publish_gate is not None:
            topic.publishing.gate = kept.publish_gate
            kept.publish_gate.owner = topic
        self.observer.topic_loaded(topic)
        self.reload_limits(topic)
        self.reload_publish_limit(topic)
        self.reload_quotas(topic)
        self.reload_deduplication(topic)
        self.reload_delayed_delivery(topic)
        topic.send_rules = self.policies.send_rules_of(topic)
        self.relative.loaded(topic, kept.publish_rate)
        for _ in self.policies_in_steps(topic):
            pass
        return topic

    def end_subscriptions(self, topic: Topic) -> Iterator[Subscription]:
        """End the subscriptions of a fenced topic, which is to be unloaded, one by one.
        :meth:`unload_topic` ends those that are left. All still hold back what they retain."""
        for subscription in list(topic.subscriptions.values()):
            if not subscription.removed:
                self.observer.subscription_removed(subscription)
                if subscription.is_durable:
                    subscription.keep_counts()
                    self.properties.unloaded(subscription)
                    self.partials.unloaded(subscription, topic.log.number)
                    self.ack_blocks.unloaded(subscription, topic.log.number)
                subscription.forget(self.now_ns, is_gone=not subscription.is_durable)
                yield subscription

    def unload_topic(self, topic: Topic, *, deleted: bool = False) -> None:
        """Unload a fenced topic. Unless it was ``deleted``, what it spent of its limits is kept."""
        for _ in self.end_subscriptions(topic):
            pass
        self.ended_count += 1
        self.observer.topic_unloaded(topic)
        self.effects.topic_unloaded(topic)
        if topic.quota is not None:
            self.quotas.disarm(topic.quota)
        topic.subscriptions.clear()
        publish_rate = self.relative.unloaded(topic)
        if deleted:
            if topic.log.sequences is not None:
                topic.log.sequences.leave()
            self.properties.loaded_or_deleted(topic.name, topic.log.number)
            self.partials.loaded_or_deleted(topic.name, topic.log.number)
            self.ack_blocks.loaded_or_deleted(topic.name, topic.log.number)
            self._count_durable(topic, -topic.durable_count)
            topic.gate.close(self.now_ns)
            if topic.publishing.gate is not None:
                topic.publishing.gate.close(self.now_ns)
        else:
            gates = topic.gate, topic.publishing.gate
            self._unloaded[topic.log.number] = _Unloaded(*gates, publish_rate, topic.durable_count)
        topic.cache.clear()
        self.by_number.pop(topic.log.number, None)
        self.release_name(topic)
        topic.leave()

    def release_name(self, topic: Topic) -> None:
        """Free the name of a deleted topic that is not unloaded yet: another topic may be created
        and loaded by that name meanwhile."""
        if self.topics.get(topic.name.full) is topic:
            del self.topics[topic.name.full]
            self.loaded.remove(topic, topic.chunk)
        for group, key in self._groups_of(topic.name):
            if (members := group.get(key)) is not None:
                members.pop(topic, None)
                if not members:
                    del group[key]

    def _groups_of(self, name: TopicName) -> Iterator[tuple[dict[str, dict[Topic, None]], str]]:
        """The groups of topics that a name belongs to, each with its key."""
        yield self.by_namespace, str(name.namespace)
        if name.partition >= 0:
            yield self.by_base, name.base.full

    # -- what topics and subscriptions ask -------------------------------------------------

    def read(self, subscription: Subscription, ordinal: int) -> None:
        """Read entries into the topic's cache."""
        self.effects.read(subscription, ordinal)

    def is_looked_up(
        self, topic: Topic, action: Callable[[], object], again: Callable[[], None]
    ) -> bool:
        """Whether a look-up of entries succeeded; else ``again`` follows when the index is read."""
        return self.effects.is_looked_up(topic, action, again)

    def acks_changed(self, subscription: Subscription) -> None:
        """Store a subscription's acknowledgements soon."""
        self.effects.acks_changed(subscription)

    def subscription_added(self, subscription: Subscription) -> None:
        """A subscription became live: apply its limit and tell the observer."""
        self.observer.subscription_added(subscription)
        self._count_durable(subscription.topic, int(subscription.is_durable))
        self.properties.measure(subscription)
        if subscription.acks.partials is not None:
            self.partials.measure(subscription)
        if subscription.acks.blocks_bytes:
            self.ack_blocks.measure(subscription)
        topic = subscription.topic
        if subscription.is_durable and subscription.acks.mark_delete >= topic.log.first:
            # What was kept because nobody had subscribed is acknowledged now.
            self.effects.may_release(topic)
        self.reload_subscription_limit(subscription)

    def subscription_removed(self, subscription: Subscription) -> None:
        """A subscription is about to be removed: tell the observer, and trim what only this
        subscription needs."""
        self.observer.subscription_removed(subscription)
        self._count_durable(subscription.topic, -int(subscription.is_durable))
        self.may_release(subscription.topic)

    def subscription_ended(self, subscription: Subscription) -> None:
        """A subscription was removed, or unloaded: count nothing of it any more."""
        self.ended_count += 1
        self.partials.forget(subscription)
        self.ack_blocks.forget(subscription)
        self.properties.forget(subscription)
        if not subscription.is_durable:
            # Something may remember a reader for a while, and nobody is charged with it then.
            subscription.acks.reset(subscription.acks.mark_delete)

    def _count_durable(self, topic: Topic, more: int) -> None:
        self.durable_by_tenant[topic.name.tenant] += more

    def may_release(self, topic: Topic) -> None:
        """Look soon whether entries of a topic can be trimmed."""
        self.effects.may_release(topic)

    def policies_in_steps(self, topic: Topic) -> Iterator[int]:
        """Apply the policies that no other method applies: the limits on unacknowledged messages,
        and what releases entries with time. Each step yields how many subscriptions it looked
        at."""
        limits = self.policies.unacked_limits_of(topic)
        if limits is None or limits == self._unacked_limits:
            limits = self.limits
        if limits is not topic.unacked_limits:
            topic.unacked_limits = limits
            for subscription in list(topic.subscriptions.values()):
                subscription.dispatcher.unacked_limits_changed()
                yield 1 + len(subscription.consumers)
        self.effects.policies_changed(topic)

    @property
    def _unacked_limits(self) -> UnackedLimits:
        """Those of topics without a policy."""
        limits = self.limits
        return UnackedLimits(limits.unacked_per_consumer_max, limits.unacked_per_subscription_max)

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool) -> None:
        """Report that a quota stops producers, or no longer does."""
        self.observer.quota_state_changed(topic, quota, exceeded)
        self.effects.quota_state_changed(topic, quota, exceeded)

    def evicted(self, topic: Topic, eviction: Eviction) -> None:
        """Report that a quota took messages from subscriptions."""
        self.quotas.count_eviction(topic, eviction)
        self.observer.evicted(topic, eviction)
        self.effects.evicted(topic, eviction)

    # -- limits ----------------------------------------------------------------------------

    def reload_limits(self, topic: Topic) -> None:
        """Ask again for the limits of a topic and its subscriptions, and apply them (law 1.5)."""
        for _ in self.limits_in_steps(topic):
            pass

    def limits_in_steps(self, topic: Topic) -> Iterator[None]:
        """:meth:`reload_limits` in steps, two for each subscription, with pauses between. It ends
        early if the topic is unloaded in a pause.

        Until its second step a subscription keeps to the limits that it had.
        """
        topic.limit = _same_or_new(topic.limit, self.policies.limit_of(topic, None))
        for subscription in list(topic.subscriptions.values()):
            limit = self.policies.limit_of(topic, subscription.name)
            subscription.limit = _same_or_new(subscription.limit, limit)
            # Count what the old limits delayed before they change.
            subscription.count_throttling()
            yield
        if not topic.is_live:
            return
        self.relative.limits_set(topic)
        topic.gate.install(self.relative.of_topic(topic), self.now_ns)
        self.observer.limits_changed(topic, None)
        for subscription in list(topic.subscriptions.values()):
            if not topic.is_live:
                return
            if not subscription.removed:
                self._put_in_force(subscription)
            yield
        self.work_pending()

    def reload_publish_limit(self, topic: Topic) -> None:
        """Ask again for the publish limit of a topic, and apply it (law 3.3)."""
        for _ in self.publish_limit_in_steps(topic):
            pass

    def publish_limit_in_steps(self, topic: Topic) -> Iterator[None]:
        """:meth:`reload_publish_limit` in steps, one for each producer whose limits change."""
        limit = self.policies.publish_limit_of(topic)
        topic.publishing.limit = _same_or_new(topic.publishing.limit, limit)
        return self.admission.limit_in_steps(topic, forgives=True)

    def reload_quotas(self, topic: Topic) -> None:
        """Ask again for the backlog quotas of a topic, and apply them within this turn."""
        for _ in self.quotas_in_steps(topic):
            pass

    def reload_delayed_delivery(self, topic: Topic) -> None:
        """Ask again for the policy of delayed delivery of a topic. Messages that are delayed stay
        so until they are due, as in Pulsar."""
        topic.delayed_delivery = self.policies.delayed_delivery_of(topic)

    def quotas_in_steps(self, topic: Topic) -> Iterator[int]:
        """:meth:`reload_quotas` in steps, each of so many subscriptions, with pauses between; none
        unless there are very many. Until the last step the quotas are those that the topic had.

        It ends early if the topic is unloaded in a pause.
        """
        if topic.quota is None:
            if not self.policies.quotas_of(topic).any:
                return
            topic.quota = TopicQuota(topic, NO_QUOTAS)
        yield from topic.quota.index_in_steps()
        if topic.is_live:
            topic.quota.set_quotas(self.policies.quotas_of(topic))

    def reload_deduplication(self, topic: Topic) -> None:
        """Ask again whether a topic has message deduplication, and begin or end it."""
        known = topic.log.sequences
        topic.publishing.set_deduplication(self.policies.deduplicates(topic))
        if known is not None and known is not topic.log.sequences:
            known.leave()
        if topic.log.sequences is not None:
            self.sequence_totals.join(topic.log.sequences, topic.name)

    def send_rules_in_steps(self, topic: Topic) -> Iterator[None]:
        """Ask again for the rules for the SENDs of a topic, and apply them. If messages must be
        encrypted, this closes the producers that do not encrypt, one in each step."""
        rules = topic.send_rules = self.policies.send_rules_of(topic)
        if rules is None or not rules.encrypted:
            return
        for producer in list(topic.producers.values()):
            if not producer.is_encrypting and not producer.closed:
                topic.publishing.close_when_answered(producer)
                yield

    def reload_subscription_limit(self, subscription: Subscription) -> None:
        """Ask again for the limit of one subscription, and apply it."""
        topic = subscription.topic
        limit = subscription.limit = self.policies.limit_of(topic, subscription.name)
        if limit is not None and limit.relative:
            self.relative.follow(topic)
        self._put_in_force(subscription)

    def _put_in_force(self, subscription: Subscription) -> None:
        gate = subscription.gate
        gate.set_exempt(subscription.dispatcher.is_exempt(), self.now_ns)
        gate.set_limit(self.relative.of_subscription(subscription), self.now_ns)
        self.observer.limits_changed(subscription.topic, subscription)
        if subscription.throttled:
            subscription.wake()  # another limit may delay it now; the account says which

    def set_broker_limit(self, limit: RateLimit | None) -> None:
        """Limit everything that the broker dispatches; None for no limit.

        Another amount is in force at once. A limit of another kind (messages, bytes, relative,
        none) is in force on a topic from its next :meth:`limits_in_steps` on; see
        :meth:`BrokerGate.install`.
        """
        self.broker_limit = _same_or_new(self.broker_limit, limit)
        self.gate.install(self.relative.of_broker(), self.now_ns)
        self.observer.limits_changed(None, None)
        self.work_pending()

    def limit_statistics(self) -> GateStatistics:
        """The figures of the broker's dispatch limit."""
        return self.gate.statistics(self.now_ns)


def _same_or_new(before: RateLimit | None, now: RateLimit | None) -> RateLimit | None:
    """The present object if it is equal: later comparisons are then quick."""
    return before if before == now else now
