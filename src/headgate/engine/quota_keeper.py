"""What the backlog quotas of all topics share: time, and work for each turn.

A topic with a time quota is looked at when its oldest message gets too old, in buckets of
:data:`BUCKET_MS`, so that a hundred thousand topics need few timers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from headgate.base.units import MS_PER_S
from headgate.engine.eviction import Eviction
from headgate.engine.parked_send import ParkedAt
from headgate.flow.quota.backlog_quota import due_ns

if TYPE_CHECKING:
    from headgate.engine.engine import Engine
    from headgate.engine.topic import Topic
    from headgate.engine.topic_quota import TopicQuota

BUCKET_MS = 250
"""A time quota is enforced so much late at most, and the loop's own delay."""

FAR_MS = 60 * MS_PER_S
"""What is due later is looked at once before, in buckets of :data:`FAR_BUCKET_MS`: a quota of
weeks does not need a bucket for each quarter of a second."""
FAR_BUCKET_MS = 30 * MS_PER_S

LOOKS_MAX = 1_000
"""Topics whose speed is noted in one round; with more, each has its turn less often."""


class Bucket:
    """Topics whose oldest message is due at about the same time."""

    __slots__ = ("dead", "number", "topics")

    def __init__(self, number: int) -> None:
        self.number = number
        """The time of the log in units of :data:`BUCKET_MS`."""
        self.topics: list[int] = []
        """By their numbers: who waits for a time quota of a month must not keep a deleted topic."""
        self.dead = 0
        """How many of them do not wait here any more."""


class QuotaKeeper:
    """The backlog quotas of one broker's live topics."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._dirty: deque[TopicQuota] = deque()
        self._active: deque[TopicQuota] = deque()
        self._wheel: dict[int, Bucket] = {}
        self._due: deque[TopicQuota] = deque()
        self.evicted = [(0, 0, 0), (0, 0, 0)]
        """By :class:`QuotaType`: acts, messages, bytes of all topics since the start."""
        self.evictions_by_namespace: dict[str, list[int]] = {}
        """Acts since the start, by :class:`QuotaType`, of namespaces that had any."""
        self.defects_count = 0
        """What a verification found to be wrong since the start: nothing, unless there is a bug."""

    # -- topics ----------------------------------------------------------------------------

    def follow(self, quota: TopicQuota) -> None:
        """Note from now on how fast a topic fills."""
        self._active.append(quota)

    def count_eviction(self, topic: Topic, act: Eviction) -> None:
        """Add it to the totals that stay when a topic goes."""
        namespace = str(topic.name.namespace)
        by_type = self.evictions_by_namespace.setdefault(namespace, [0, 0])
        by_type[act.quota.type] += 1
        acts, messages, size = self.evicted[act.quota.type]
        self.evicted[act.quota.type] = (acts + 1, messages + act.messages, size + act.bytes)

    # -- the turn --------------------------------------------------------------------------

    def touch(self, quota: TopicQuota) -> None:
        """Look at it in this turn's flush, once."""
        if not quota.is_dirty:
            quota.is_dirty = True
            self._dirty.append(quota)
            self._engine.effects.work_pending()

    def work(self, entries_max: int) -> int:
        """Look at what was touched or is due and stage what waited and may go, about
        ``entries_max`` of it; return how much that was."""
        used = 0
        while self._due and used < entries_max:
            quota = self._due.popleft()
            if quota.topic.is_live:
                quota.look_when_due()
            used += 1
        # What is put back meanwhile has had its turn.
        for _ in range(len(self._dirty)):
            if used >= entries_max:
                break
            quota = self._dirty.popleft()
            if not quota.topic.is_live:
                continue
            # Still dirty, so that nothing that happens in here puts it into the queue again.
            quota.evaluate()
            ring = quota.ring
            used += 1
            if ring and quota.over is None:
                used += self._engine.admission.drain(ring, ParkedAt.QUOTA, entries_max - used)
            quota.settle()
            quota.is_dirty = False
            if ring and quota.over is None:
                self.touch(quota)
        return used

    @property
    def is_busy(self) -> bool:
        """Whether :meth:`work` has more to do at once."""
        return bool(self._dirty or self._due)

    # -- time ------------------------------------------------------------------------------

    def arm(self, quota: TopicQuota, limit_ms: int) -> None:
        """Look at a topic when the oldest message that it owes gets too old; while it owes none,
        when one that arrives from now on could. Until then the oldest can only become younger."""
        engine, topic = self._engine, quota.topic
        log_ms = engine.log_ms
        oldest = quota.oldest()
        received_ms = oldest.oldest_unacked_ms() if oldest is not None else None
        if received_ms is not None:
            due_ms = received_ms + limit_ms
            if due_ms <= log_ms:
                return  # it is over, and acknowledgements end that
        elif topic.pending_count:
            due_ms = topic.log.received_ms(topic.log.end) + limit_ms
            if due_ms <= log_ms:
                quota.awaits_durable = True
                return
        else:
            due_ms = log_ms + limit_ms
        if due_ms - log_ms > FAR_MS:
            due_ms = due_ms // FAR_BUCKET_MS * FAR_BUCKET_MS
        number = -(-due_ms // BUCKET_MS)
        bucket = self._wheel.get(number)
        if bucket is None:
            bucket = self._wheel[number] = Bucket(number)
            when_ns = due_ns(number * BUCKET_MS, 0, log_ms, engine.now_ns)
            engine.wake_at(when_ns, partial(self._bucket_due, bucket))
        quota.due = bucket
        bucket.topics.append(topic.log.number)

    def disarm(self, quota: TopicQuota) -> None:
        """Its topic goes, or what was known of its due time is void."""
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
            self._due.append(quota)

    def time_jumped(self) -> None:
        """Time passed that the clock of timers did not count: messages are older than they were."""
        self._wheel.clear()  # each bucket waits for an instant that is not its own any more
        for quota in self._active:
            if quota.topic.is_live:
                quota.look_again()

    # -- sweeps ----------------------------------------------------------------------------

    def look_round(self) -> int:
        """How many active topics :meth:`look` has to be called for in this round."""
        return min(len(self._active), LOOKS_MAX)

    def look(self, count: int) -> None:
        """Note how fast the next ``count`` of the active topics fill."""
        active = self._active
        for _ in range(min(count, len(active))):
            quota = active.popleft()
            if quota.topic.is_live and quota.look():
                active.append(quota)

    def verify(self, topic: Topic) -> None:
        """Compare a topic's state with a count of everything; repair and count a difference."""
        quota = topic.quota
        if quota is None or not quota.is_active or topic.fenced:
            return
        if quota.is_dirty:
            return  # it is evaluated before this turn ends
        if not quota.is_right():
            self.defects_count += 1
            quota.evaluate()
