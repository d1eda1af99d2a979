"""The backlog quotas of one topic, enforced at each append (law 4).

An append costs one comparison: while fewer than :attr:`TopicQuota.safe_below` bytes were ever
staged, no quota can be exceeded. What the slowest subscription has acknowledged only grows, so this
bound is never too high; an append beyond it evaluates the quotas. The bound is -1 while every
append must do so: without a backlog, while a quota is exceeded, and while a producer waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from headgate.base.lazy_min_heap import LazyMinHeap
from headgate.base.names import TopicName
from headgate.base.park_cause import ParkCause
from headgate.base.units import MS_PER_S
from headgate.engine.cursor_order import SCANNED_MAX
from headgate.engine.errors import ProducersHeldError, ProducersRefusedError
from headgate.engine.eviction import (
    NOTHING_EVICTED,
    EvictedAmounts,
    Eviction,
    EvictionPass,
    QuotaSubscription,
    TopicEvictions,
)
from headgate.engine.ports import EntryLog
from headgate.engine.producer_stops import ProducerStops
from headgate.engine.publishing import ADMIT_ALL, ADMIT_NONE
from headgate.flow.quota.backlog_quota import (
    NO_QUOTAS,
    RELEASE_PERCENT,
    Approach,
    Quota,
    QuotaPolicy,
    Quotas,
    QuotaType,
    SlowedBy,
    age_exceeded,
    age_ms,
    age_released,
    size_exceeded,
    size_released,
)
from headgate.flow.quota.pace_band import Band

if TYPE_CHECKING:
    from headgate.engine.producer import Producer, ProducerTurns
    from headgate.engine.publishing import TopicPublishing
    from headgate.engine.types import Bucket

_done_bytes: Final = attrgetter("done_bytes")
_mark_delete: Final = attrgetter("acks.mark_delete")

SAMPLED_PART = 64
"""The fill rate is sampled from this part of the limit on: 1/64."""

INDEXED_IN_STEP: Final = 64
"""Subscriptions that one step of the index of many looks at."""


class ParkedSendBounds(Protocol):
    """The bounds on parked SENDs, as far as backlog quotas need them."""

    def hold_began(self, publishing: TopicPublishing, /) -> None:
        """From now on a quota, the disk or the adaptive limit holds what a topic parks."""


class QuotaSchedule(Protocol):
    """The work that backlog quotas do in each turn, as far as one topic's quotas need it."""

    def touch(self, quota: TopicQuota, /) -> None:
        """Evaluate these quotas in this turn's flush."""

    def commit_ended(self, quota: TopicQuota, /) -> None:
        """Entries of the topic are durable or lost: evaluate these quotas."""

    def follow(self, quota: TopicQuota, /) -> None:
        """Sample from now on how fast the topic fills."""

    def arm(self, quota: TopicQuota, limit_ms: int, /) -> None:
        """Evaluate these quotas when the topic's oldest message gets too old."""

    def disarm(self, quota: TopicQuota, /) -> None:
        """Cancel what :meth:`arm` planned."""


class QuotaEngine(Protocol):
    """The engine, as far as backlog quotas need it."""

    now_ns: int
    log_ms: int

    @property
    def quotas(self) -> QuotaSchedule:
        """The work of each turn."""

    @property
    def parked(self) -> ParkedSendBounds:
        """The bounds on parked SENDs."""


class QuotaTopic(Protocol):
    """The topic, as far as its backlog quotas need it."""

    name: TopicName
    log: EntryLog
    fenced: bool
    publishing: TopicPublishing

    @property
    def engine(self) -> QuotaEngine:
        """The engine of the topic."""

    @property
    def now_ns(self) -> int:
        """The monotonic time of this turn."""

    @property
    def is_live(self) -> bool:
        """Whether the topic is still loaded."""

    @property
    def producers(self) -> Mapping[str, Producer]:
        """The connected producers by name."""

    @property
    def subscriptions(self) -> Mapping[str, QuotaSubscription]:
        """The topic's subscriptions by name."""

    def quota_state_changed(self, quota: Quota, exceeded: bool, /) -> None:
        """Report that a quota stops producers, or no longer does."""

    def evicted(self, eviction: Eviction, /) -> None:
        """Report that a quota took messages from subscriptions."""

    def is_looked_up(self, action: Callable[[], object], again: Callable[[], None], /) -> bool:
        """Whether a look-up of entries succeeded; else ``again`` follows when the index is read."""


class TopicQuota:
    """The effective quotas of one loaded topic.

    Created with its first quota and kept as long as the topic is loaded, so that its counters do
    not fall.
    """

    __slots__ = (
        "_approaches",
        "_evicting",
        "_evictions",
        "_heaps",
        "_heaps_in_making",
        "_rests",
        "awaits_acks",
        "awaits_durable",
        "due",
        "exceeded",
        "exceeded_by_type",
        "is_active",
        "is_dirty",
        "moved_count",
        "quotas",
        "safe_below",
        "stops",
        "topic",
    )

    def __init__(self, topic: QuotaTopic, quotas: Quotas) -> None:
        self.topic = topic
        self.quotas = quotas
        self.exceeded: Quota | None = None
        """The quota that stops producers now; of two, the size quota."""
        self.exceeded_by_type = NO_QUOTAS
        """The exceeded quotas, each until the backlog is below its release level."""
        self.is_dirty = False
        """Whether the scheduler evaluates it in this turn."""
        self.is_active = False
        """Whether the scheduler samples how fast it fills: while there is a backlog."""
        self.due: Bucket | None = None
        """When the scheduler checks whether the oldest message is too old."""
        self.safe_below = ADMIT_NONE
        """While fewer bytes are staged, no quota can be exceeded."""
        self.awaits_acks = False
        """Whether acknowledgements may change its state: exceeded, or producers wait."""
        self.awaits_durable = False
        """Set by the scheduler: staged entries are too old; evaluate when they are durable."""
        self.stops: ProducerStops | None = None
        """How the quotas stopped producers; None if they never did."""
        self._heaps: tuple[LazyMinHeap[QuotaSubscription], ...] | None = None
        self._heaps_in_making: tuple[LazyMinHeap[QuotaSubscription], ...] | None = None
        self._evictions: TopicEvictions | None = None
        """What it evicted; None while it never did."""
        self._evicting: tuple[EvictionPass, int, int] | None = None
        """The eviction that waits for the index, with the backlog in bytes and the age before."""
        self._rests: Quota | None = None
        """The next evaluation begins no eviction for it: one has ended that left nothing."""
        self.moved_count = 0
        """Subscriptions that evictions passed: work of evaluations."""
        self._approaches: list[Approach | None] | None = None

    # -- how full it is --------------------------------------------------------------------

    def slowest(self) -> QuotaSubscription | None:
        """The durable subscription with the largest backlog in bytes; None without any."""
        if self._heaps is not None:
            return self._heaps[QuotaType.SIZE].top()
        return min(self._durable(), key=_done_bytes, default=None)

    def oldest(self) -> QuotaSubscription | None:
        """The durable subscription with the oldest unacknowledged message; None without backlog."""
        if self._heaps is not None:
            found = self._heaps[QuotaType.TIME].top()
        else:
            found = min(self._durable(), key=_mark_delete, default=None)
        return None if found is None or found.oldest_unacked_ms() is None else found

    @property
    def has_heaps(self) -> bool:
        """Whether heaps find the slowest and the oldest, because there are many subscriptions."""
        return self._heaps is not None

    def _durable(self) -> Iterable[QuotaSubscription]:
        return [s for s in self.topic.subscriptions.values() if s.cursor_id is not None]

    def backlog_bytes(self) -> int:
        """The backlog of the slowest subscription, staged entries included; 0 without any."""
        slowest = self.slowest()
        return 0 if slowest is None else self.topic.publishing.staged_bytes - slowest.done_bytes

    def age_ms(self) -> int:
        """Age of the oldest message in a durable subscription's backlog; -1 without backlog."""
        oldest = self.oldest()
        received_ms = None if oldest is None else oldest.oldest_unacked_ms()
        return age_ms(self.topic.engine.log_ms, received_ms)

    def evictions(self, kind: QuotaType) -> EvictedAmounts:
        """What one type of quota evicted since the topic was loaded."""
        return NOTHING_EVICTED if self._evictions is None else self._evictions.amounts[kind]

    def last_enforced_ns(self, kind: QuotaType) -> int | None:
        """When a quota of one type last evicted, or released producers that it had stopped; None if
        it never did."""
        ends = (
            None if self._evictions is None else self._evictions.last_ns[kind],
            None if self.stops is None else self.stops.ended_ns(kind),
        )
        return max((at for at in ends if at is not None), default=None)

    def seconds_to_breach(self, kind: QuotaType) -> float | None:
        """Seconds until the limit is reached at the present smoothed fill rate.

        None if the backlog does not grow towards it, or needs more than a day; 0 while it is
        reached or still stops producers.
        """
        quota = self.quotas[kind]
        if quota is None:
            return None
        level = self.backlog_bytes() if kind is QuotaType.SIZE else self.age_ms()
        if level >= quota.limit or self.exceeded_by_type[kind] is not None:
            return 0.0
        approach = None if self._approaches is None else self._approaches[kind]
        return None if approach is None else approach.seconds_to(quota.limit, level)

    def breach_band(self, kind: QuotaType) -> Band | None:
        """Between which seconds from now the limit is reached, by how much the pace has changed in
        the last hour; None if :meth:`seconds_to_breach` is None or 0, or in the first minute."""
        quota = self.quotas[kind]
        approach = None if self._approaches is None else self._approaches[kind]
        if quota is None or approach is None or not self.seconds_to_breach(kind):
            return None
        if kind is QuotaType.SIZE:
            return approach.band_to(quota.limit, self.backlog_bytes())
        return approach.band_to(quota.limit, self.age_ms(), MS_PER_S)

    def is_exceeded(self, kind: QuotaType) -> bool:
        """Whether the quota of one type stops producers now, or would if the other did not."""
        quota = self.quotas[kind]
        if quota is None or not quota.policy.stops_producers:
            return False
        return self.exceeded_by_type[kind] is not None or self._is_exceeded(quota, None)

    def sample(self) -> bool:
        """Sample how fast it fills, about once a second.

        Returns False if there is no backlog, so that no sample is needed until the next append.
        """
        backlog_bytes, age = self.backlog_bytes(), self.age_ms()
        if not backlog_bytes and not self.queue and self.exceeded is None:
            self.is_active = False
            self._approaches = None
            self._set_safe_below(ADMIT_NONE)
            return False
        for kind, level in ((QuotaType.SIZE, backlog_bytes), (QuotaType.TIME, max(age, 0))):
            self._sample_level(kind, level)
        return True

    def _sample_level(self, kind: QuotaType, level: int) -> None:
        quota = self.quotas[kind]
        if quota is None or level * SAMPLED_PART < quota.limit:
            # Far from the limit: a hundred thousand such topics should take no memory for samples.
            if self._approaches is not None:
                self._approaches[kind] = None
            return
        now_ns = self.topic.engine.now_ns
        # Who publishes slower does not make the oldest message younger.
        is_size = kind is QuotaType.SIZE
        slowed_by = _slowed_by(self.topic.publishing) if is_size else SlowedBy.NOTHING
        if self._approaches is None:
            self._approaches = [None, None]
        approach = self._approaches[kind]
        if approach is None:
            self._approaches[kind] = Approach(level, now_ns)
        else:
            approach.observe(level, now_ns, slowed_by)

    # -- the law ---------------------------------------------------------------------------

    def set_quotas(self, quotas: Quotas) -> None:
        """Apply other quotas."""
        if quotas != self.quotas:
            self.quotas = quotas
            self._approaches = None
            self._index()
            self.reevaluate()

    def reevaluate(self) -> None:
        """Evaluate before the next append and before the turn ends: earlier results are void."""
        if self._evicting is not None:
            self._evicting[0].is_outdated = True
        self.topic.engine.quotas.disarm(self)
        self._set_safe_below(ADMIT_NONE)
        self.topic.engine.quotas.touch(self)

    def subscription_changed(self, subscription: QuotaSubscription) -> None:
        """A subscription was added, removed, or moved back."""
        is_counted = subscription.cursor_id is not None and not subscription.removed
        for heap in self._heaps or self._heaps_in_making or ():
            if is_counted:
                heap.changed(subscription)
            else:
                heap.discard(subscription)
        self._index()
        self.reevaluate()

    def index_in_steps(self) -> Iterator[int]:
        """Make the heaps of many subscriptions before the first quota; yields how many it saw."""
        if self._heaps is not None or len(self.topic.subscriptions) <= INDEXED_IN_STEP:
            return
        if self._heaps_in_making is None:
            self._heaps_in_making = LazyMinHeap(_done_bytes, ()), LazyMinHeap(_mark_delete, ())
        heaps = self._heaps_in_making
        for at, subscription in enumerate(list(self.topic.subscriptions.values()), 1):
            if subscription.cursor_id is not None and not subscription.removed:
                for heap in heaps:
                    heap.changed(subscription)
            if at % INDEXED_IN_STEP == 0:
                yield INDEXED_IN_STEP
        self._heaps, self._heaps_in_making = heaps, None

    def _index(self) -> None:
        """Use heaps from now on if there are many subscriptions."""
        is_in_making = self._heaps_in_making is not None
        if self._heaps is None and not is_in_making and len(self.topic.subscriptions) > SCANNED_MAX:
            durable = self._durable()
            self._heaps = LazyMinHeap(_done_bytes, durable), LazyMinHeap(_mark_delete, durable)

    def evaluate(self) -> None:
        """Enforce the quotas now: evict, stop producers or release them."""
        if self.eviction is not None and not self.eviction.awaits_index:
            self._evict_on()
        size, time = self.quotas
        before = self.exceeded_by_type
        if size is None or size.policy.stops_producers:
            late = self._enforce_time(time, before.time)
            full = self._enforce(size, before.size)
        else:  # its eviction may take what is too old
            full = self._enforce(size, before.size)
            late = self._enforce_time(time, before.time)
        self.exceeded = full or late
        self.awaits_durable, self._rests = False, None
        if (full, late) != before:
            self.exceeded_by_type = Quotas(full, late) if self.exceeded is not None else NO_QUOTAS
            self._report(before)
        self.update_safe_below()
        topic = self.topic
        keeper = topic.engine.quotas
        parking = topic.publishing.parking
        if parking is not None:
            parking.set_quota_exceeded(self.exceeded is not None, topic.engine.now_ns)
            if self.exceeded is not None:
                topic.engine.parked.hold_began(topic.publishing)
        if self.exceeded is None:
            if self.queue:
                keeper.touch(self)
        elif self.exceeded.policy is QuotaPolicy.EXCEPTION and self.stopping().end_all(topic):
            self._evaluate_later()  # it goes on
        if self.quotas.any and not self.is_active:
            self.is_active = True
            keeper.follow(self)
        if time is not None and self.due is None:
            keeper.arm(self, time.limit)
            if self.awaits_durable:
                self._set_safe_below(ADMIT_NONE)

    def _knows_oldest(self) -> bool:
        """Whether the age of the oldest message is exact. Else its index is read, and the quotas
        are evaluated after that."""
        oldest = self.oldest()
        return oldest is None or oldest.is_oldest_known(self._evaluate_later)

    def evaluate_when_due(self) -> None:
        """Evaluate: the oldest message may be too old. Without a backlog, the next append does."""
        topic = self.topic
        is_quiet = self.exceeded is None and not self.queue and not topic.publishing.pending_count
        if is_quiet and self.oldest() is None:
            self._set_safe_below(ADMIT_NONE)
        else:
            self.evaluate()

    def _enforce(self, quota: Quota | None, before: Quota | None) -> Quota | None:
        """Enforce one quota; returns it if it stops producers now. An evicting quota evicts
        first."""
        if quota is None or not self._is_exceeded(quota, before):
            return None
        if quota.policy.stops_producers:
            return quota
        self._evict(quota)
        # Staged entries cannot be evicted: SENDs wait until they are durable.
        return quota if quota.type is QuotaType.SIZE and self._is_exceeded(quota, None) else None

    def _enforce_time(self, quota: Quota | None, before: Quota | None) -> Quota | None:
        """:meth:`_enforce` for the time quota. While the age is not known, its state stays."""
        if quota is not None and not self._knows_oldest():
            return before if before == quota else None
        return self._enforce(quota, before)

    def _is_exceeded(self, quota: Quota, before: Quota | None) -> bool:
        """Whether the limit is reached, or was reached and the release level is not."""
        # Under another limit or policy a hold has to start anew.
        holds_on = (
            before is not None
            and quota.policy.stops_producers
            and (before.policy, before.limit) == (quota.policy, quota.limit)
        )
        if quota.type is QuotaType.SIZE:
            backlog_bytes = self.backlog_bytes()
            if size_exceeded(backlog_bytes, quota.limit):
                return backlog_bytes > 0 or quota.policy.stops_producers
            return holds_on and not size_released(backlog_bytes, quota.limit, self.next_bytes())
        age = self.age_ms()
        return age_exceeded(age, quota.limit) or (holds_on and not age_released(age, quota.limit))

    def _evict(self, quota: Quota) -> None:
        if self._evicting is not None or quota == self._rests:
            return  # it evaluates when it is done
        topic = self.topic
        bounds = topic.publishing.staged_bytes, topic.engine.log_ms
        evicting = EvictionPass(topic.log, self._durable(), quota, *bounds)
        self._evicting = evicting, self.backlog_bytes(), self.age_ms()
        if self._is_evicted(evicting):
            self._evicted()

    def _is_evicted(self, evicting: EvictionPass) -> bool:
        """Go on with an eviction for a step; whether that was its end."""
        before = evicting.moved_count
        is_over = evicting.run(self.topic, self._evict_on)
        self.moved_count += evicting.moved_count - before
        if not (is_over or evicting.awaits_index):
            self._evaluate_later()
        return is_over

    @property
    def eviction(self) -> EvictionPass | None:
        """The one that has begun and goes on, if any."""
        return None if self._evicting is None else self._evicting[0]

    def _evict_on(self) -> None:
        """Continue an eviction: its next subscription's index was read, or many are left."""
        topic, evicting = self.topic, self._evicting
        if evicting is None:
            return
        is_wanted = topic.is_live and evicting[0].quota in self.quotas
        if is_wanted and not self._is_evicted(evicting[0]):
            return
        self._rests = evicting[0].satisfied(topic.publishing.staged_bytes, topic.engine.log_ms)
        self._evicted()
        self._evaluate_later()

    def _evicted(self) -> None:
        """An eviction is over: report what it took."""
        if self._evicting is None:
            return
        (evicting, backlog_bytes, age), self._evicting = self._evicting, None
        if not evicting.losses:
            return
        losses = sorted(evicting.losses, key=lambda loss: -loss.bytes)
        arrived_bytes = self.topic.publishing.staged_bytes - evicting.left_bytes
        after = self.backlog_bytes(), self.age_ms(), arrived_bytes
        act = Eviction(evicting.quota, backlog_bytes, age, losses, *after)
        if self._evictions is None:
            self._evictions = TopicEvictions()
        self._evictions.add(act, self.topic.engine.now_ns)
        self.topic.evicted(act)

    def _evaluate_later(self) -> None:
        """Evaluate again: what was read of the index tells more."""
        if self.topic.is_live:
            self.topic.engine.quotas.touch(self)

    @property
    def queue(self) -> ProducerTurns | None:
        """Producers that wait for room, if any."""
        parking = self.topic.publishing.parking
        return None if parking is None else parking.quota_queue

    def next_bytes(self) -> int:
        """Bytes of the SEND that is staged next when there is room; 0 if none waits."""
        queue = self.queue
        return len(queue.first.parked[0].body) if queue and queue.first.parked else 0

    def update_safe_below(self) -> None:
        """Set :attr:`safe_below`."""
        size = self.quotas.size
        slowest = None if size is None else self.slowest()
        mark = ADMIT_ALL
        if size is not None and slowest is not None:
            mark = min(size.limit + slowest.done_bytes, ADMIT_ALL)
        self.awaits_acks = self.exceeded is not None or bool(self.queue)
        self._set_safe_below(
            ADMIT_NONE if self.exceeded is not None or self.awaits_durable else mark
        )

    def _set_safe_below(self, safe_below: int) -> None:
        self.safe_below = safe_below
        self.topic.publishing.update_admit_below()

    def _report(self, before: Quotas) -> None:
        topic, now = self.topic, self.exceeded_by_type
        for quotas, others, exceeded in ((before, now, False), (now, before, True)):
            for quota, other in zip(quotas, others, strict=True):
                # An evicting quota stops producers only until their SENDs are durable.
                if quota is not None and quota != other and quota.policy.stops_producers:
                    self.stopping().quota_state_changed(
                        quota.type, topic.engine.now_ns, exceeded=exceeded
                    )
                    topic.quota_state_changed(quota, exceeded)

    def check_newcomer(self) -> None:
        """Refuse a new producer while the quota stops producers.

        Raises:
            ProducersHeldError: the quota holds producers.
            ProducersRefusedError: it refuses them.
        """
        self.evaluate()
        if self.exceeded is None or not self.exceeded.policy.stops_producers:
            return
        self.stopping().refused_count += 1
        why = self.why(self.exceeded)
        text = f"Cannot create producer on topic with backlog quota exceeded: {why}"
        if self.exceeded.policy is QuotaPolicy.HOLD:
            raise ProducersHeldError(text)
        raise ProducersRefusedError(text)

    def stopping(self) -> ProducerStops:
        """The figures of stopped producers; created when first needed."""
        if self.stops is None:
            self.stops = ProducerStops()
        return self.stops

    def why(self, quota: Quota) -> str:
        """A clause that says how full ``quota`` is, by which subscription, and where it is set."""
        if quota.type is QuotaType.SIZE:
            holder, figure = self.slowest(), f"{self.backlog_bytes():,} bytes"
            limit = f"{quota.limit:,} bytes"
        else:
            holder, figure = self.oldest(), f"{self.age_ms() / 1_000:,.1f} s"
            limit = f"{quota.limit / 1_000:,.0f} s"
        if self.exceeded_by_type[quota.type] is not None and not self._is_exceeded(quota, None):
            limit += f", and has to come down to {RELEASE_PERCENT} % of it"
        whose = f" of subscription {holder.name}" if holder is not None else ""
        what = "backlog" if quota.type is QuotaType.SIZE else "oldest message"
        return f"the {what}{whose} is at {figure} of {limit} ({quota.source})"


def _slowed_by(publishing: TopicPublishing) -> SlowedBy:
    """What slows the producers of a topic now, other than its quota."""
    if publishing.adaptive_limit is not None:
        return SlowedBy.CONTROLLER
    parking = publishing.parking
    if parking is None:
        return SlowedBy.NOTHING
    limits = (ParkCause.TOPIC_RATE, ParkCause.BROKER_RATE)
    is_limited = any(parking.since_ns(cause) is not None for cause in limits)
    return SlowedBy.LIMIT if is_limited else SlowedBy.NOTHING
