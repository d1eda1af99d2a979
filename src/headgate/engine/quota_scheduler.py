"""Schedules the evaluation of all topics' backlog quotas: by time, and in each turn.

A topic with a time quota is evaluated when its oldest message gets too old, in buckets of
:data:`BUCKET_MS`, so that a hundred thousand topics need few timers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headgate.base.fair_queue import FairQueue
from headgate.base.units import MS_PER_S
from headgate.base.work_units import SUBSCRIPTION_EVICTED
from headgate.engine.admission import RUN_SENDS_MAX
from headgate.engine.eviction import Eviction
from headgate.engine.parked_send import ParkedAt
from headgate.engine.quota_check import is_consistent
from headgate.engine.topic import Topic
from headgate.engine.topic_quota import TopicQuota
from headgate.engine.types import Bucket
from headgate.flow.quota.backlog_quota import due_ns

if TYPE_CHECKING:
    from headgate.engine.admission import AdmissionControl

BUCKET_MS = 250
"""A time quota is enforced at most this late, plus the loop's own delay."""

FAR_MS = 60 * MS_PER_S
"""A topic that is due later than this is evaluated once before, in buckets of
:data:`FAR_BUCKET_MS`: a quota of weeks needs no bucket for each quarter of a second."""
FAR_BUCKET_MS = 30 * MS_PER_S

FARTHEST_MS = 86_400 * MS_PER_S
"""A topic that is due later than in a day is evaluated then: each time that nobody waits for any
more keeps its bucket and timer, and quotas of years change as often as an administrator asks."""

SAMPLES_MAX = 1_000
"""Topics whose fill rate is sampled in one round; with more topics, each is sampled less often."""


class SchedulerEngine(Protocol):
    """The engine, as far as the scheduler needs it."""

    now_ns: int
    log_ms: int
    by_number: dict[int, Topic]
    admission: AdmissionControl

    def work_pending(self) -> None:
        """Ask for a flush before the loop rests."""

    def wake_at(self, when_ns: int, action: Callable[[], None], /) -> None:
        """Run ``action`` in the first flush at or after ``when_ns``."""


class QuotaScheduler:
    """The backlog quotas of one broker's live topics."""

    def __init__(self, engine: SchedulerEngine) -> None:
        self._engine = engine
        self._dirty: FairQueue[TopicQuota] = FairQueue()
        """Those to evaluate in this turn's flush, of which tenants take turns."""
        self._active: deque[TopicQuota] = deque()
        self._wheel: dict[int, Bucket] = {}
        self._due: FairQueue[TopicQuota] = FairQueue()
        """Those whose oldest message may be too old."""
        self.evicted = [(0, 0, 0), (0, 0, 0)]
        """Evictions, messages and bytes of all topics since the start, by :class:`QuotaType`."""
        self.evictions_by_namespace: dict[str, list[int]] = {}
        """Evictions since the start by :class:`QuotaType`, for namespaces that had any, until they
        are deleted."""
        self.defects_count = 0
        """Wrong states that verification found since the start: 0, unless there is a bug."""

    # -- topics ----------------------------------------------------------------------------

    def commit_ended(self, quota: TopicQuota) -> None:
        """Entries of the topic are durable or lost: evaluate its quotas, now unless one evicts. An
        eviction counts as work of the flush: a commit may have entries of a thousand topics."""
        if any(each is not None and not each.policy.stops_producers for each in quota.quotas):
            self.touch(quota)
        else:
            quota.evaluate()

    def follow(self, quota: TopicQuota) -> None:
        """Sample from now on how fast a topic fills."""
        self._active.append(quota)

    def count_eviction(self, topic: Topic, act: Eviction) -> None:
        """Add an eviction to the totals, which remain when the topic is unloaded."""
        namespace = str(topic.name.namespace)
        by_type = self.evictions_by_namespace.setdefault(namespace, [0, 0])
        by_type[act.quota.type] += 1
        acts, messages, size = self.evicted[act.quota.type]
        self.evicted[act.quota.type] = (acts + 1, messages + act.messages, size + act.bytes)

    def forget_namespace(self, namespace: str) -> None:
        """A namespace (``tenant/name``) was deleted. Each eviction in one of a new name would take
        memory for good."""
        self.evictions_by_namespace.pop(namespace, None)

    # -- the turn --------------------------------------------------------------------------

    def touch(self, quota: TopicQuota) -> None:
        """Evaluate these quotas once in this turn's flush."""
        if not quota.is_dirty:
            quota.is_dirty = True
            self._dirty.add(quota.topic.name.tenant, quota)
            self._engine.work_pending()

    def work(self, entries_max: int) -> int:
        """Evaluate the quotas that were touched or are due, and stage what they now allow.

        Stages about ``entries_max`` entries and returns about how many.
        """
        used = 0
        had_step: list[TopicQuota] = []
        while used < entries_max and (self._due or self._dirty):
            # In turn: an eviction may take a whole flush, and clients bring what is too old next.
            if self._due:
                used += self._evaluate_due(self._due.take())
            if self._dirty:
                used += self._evaluate_dirty(self._dirty.take(), had_step)
        for quota in had_step:
            self.touch(quota)
        return used

    def _evaluate_due(self, quota: TopicQuota) -> int:
        moved_before = quota.moved_count
        if quota.topic.is_live:
            quota.evaluate_when_due()
        return 1 + (quota.moved_count - moved_before) * SUBSCRIPTION_EVICTED

    def _evaluate_dirty(self, quota: TopicQuota, had_step: list[TopicQuota]) -> int:
        """Evaluate a topic's quotas, and stage what they now allow. ``had_step`` gets those that go
        on in the next flush."""
        if not quota.topic.is_live:
            return 0
        # It stays dirty, so that nothing that happens in here queues it again.
        moved_before = quota.moved_count
        quota.evaluate()
        queue = quota.queue
        used = 1 + (quota.moved_count - moved_before) * SUBSCRIPTION_EVICTED
        stops = quota.stops
        if stops is not None and stops.is_ending:
            used += stops.end_step(quota.topic)
        if queue and quota.exceeded is None:
            # Clients may send for ever as fast as that: others have their turns in between.
            used += self._engine.admission.drain(queue, ParkedAt.QUOTA, RUN_SENDS_MAX)
        quota.update_safe_below()
        quota.is_dirty = False
        eviction = quota.eviction
        is_unfinished = eviction is not None and not eviction.awaits_index
        is_unfinished |= stops is not None and stops.is_ending
        if is_unfinished:
            had_step.append(quota)
        elif queue and quota.exceeded is None:
            self.touch(quota)
        return used

    @property
    def is_busy(self) -> bool:
        """Whether :meth:`work` has more to do at once."""
        return bool(self._dirty or self._due)

    # -- time ------------------------------------------------------------------------------

    def arm(self, quota: TopicQuota, limit_ms: int) -> None:
        """Evaluate a topic when its oldest unacknowledged message gets too old.

        Without one: when a message that arrives from now on could be too old. Until then the oldest
        message can only become younger.
        """
        engine, topic = self._engine, quota.topic
        log_ms = engine.log_ms
        oldest = quota.oldest()
        received_ms = oldest.oldest_unacked_ms() if oldest is not None else None
        if received_ms is not None:
            due_ms = received_ms + limit_ms
            if due_ms <= log_ms:
                return  # it is exceeded, and acknowledgements end that
        elif topic.log.end < topic.log.staged_end:  # others that wait for receipts are durable
            due_ms = topic.log.received_ms(topic.log.end) + limit_ms
            if due_ms <= log_ms:
                quota.awaits_durable = True
                return
        else:
            due_ms = log_ms + limit_ms
        if due_ms - log_ms > FAR_MS:
            due_ms = min(due_ms, log_ms + FARTHEST_MS) // FAR_BUCKET_MS * FAR_BUCKET_MS
        number = -(-due_ms // BUCKET_MS)
        bucket = self._wheel.get(number)
        if bucket is None:
            bucket = self._wheel[number] = Bucket(number)
            when_ns = due_ns(number * BUCKET_MS, 0, log_ms, engine.now_ns)
            engine.wake_at(when_ns, partial(self._bucket_due, bucket))
        quota.due = bucket
        bucket.topics.append(topic.log.number)

    def disarm(self, quota: TopicQuota) -> None:
        """Cancel the planned evaluation: its topic is unloaded, or its due time has changed."""
        bucket = quota.due
        if bucket is None:
            return
        quota.due = None
        bucket.dead += 1
        if 2 * bucket.dead > len(bucket.topics):
            bucket.topics = [live.topic.log.number for live in self._waiting_in(bucket)]
            bucket.dead = 0

    def _waiting_in(self, bucket: Bucket) -> Iterator[TopicQuota]:
        for number in dict.fromkeys(bucket.topics):
            topic = self._engine.by_number.get(number)
            if topic is not None and topic.quota is not None and topic.quota.due is bucket:
                yield topic.quota

    def _bucket_due(self, bucket: Bucket) -> None:
        if self._wheel.get(bucket.number) is bucket:
            del self._wheel[bucket.number]
        for quota in self._waiting_in(bucket):
            quota.due = None
            self._due.add(quota.topic.name.tenant, quota)

    def time_jumped(self) -> None:
        """Time passed that the clock of timers did not count: messages got older at once."""
        self._wheel.clear()  # each bucket now waits for a wrong instant
        for quota in self._active:
            if quota.topic.is_live:
                quota.reevaluate()

    # -- sweeps ----------------------------------------------------------------------------

    def sample_count(self) -> int:
        """How many active topics :meth:`sample` covers in this round."""
        return min(len(self._active), SAMPLES_MAX)

    def sample(self, count: int) -> None:
        """Sample how fast the next ``count`` active topics fill."""
        active = self._active
        for _ in range(min(count, len(active))):
            quota = active.popleft()
            if quota.topic.is_live and quota.sample():
                active.append(quota)

    def verify(self, topics: Iterable[Topic]) -> None:
        """Compare the topics' states with a count of everything; repair and count differences."""
        for topic in topics:
            quota = topic.quota
            if quota is None or not quota.is_active or topic.fenced:
                continue
            if quota.is_dirty or topic.publishing.visible < topic.log.end:
                continue  # it is evaluated before this turn ends, or behind the last receipts
            if not is_consistent(quota):
                self.defects_count += 1
                quota.evaluate()
