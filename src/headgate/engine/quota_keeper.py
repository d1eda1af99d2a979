"""What the backlog quotas of all topics share: time, bounds on what waits, work for each turn.

* Due times: a topic with a time quota is looked at when its oldest message gets too old, in
  buckets of :data:`BUCKET_MS`, so that a hundred thousand topics need few timers.
* What is held is bounded in bytes for each connection and for all; over a bound, and after
  ``headgateHoldParkMs``, what waits is forgotten and its producer closed, as Pulsar does.
* A hold never pauses a socket: the acknowledgements that would end it come over it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from headgate.base.units import MS_PER_S
from headgate.engine.eviction import Eviction
from headgate.engine.parking import ParkedSend, Parking
from headgate.engine.ports import ProducerPort
from headgate.engine.producer import Producer
from headgate.flow.quota import due_ns

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
        """The wall time in units of :data:`BUCKET_MS`."""
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
        self._parked: dict[Producer, TopicQuota] = {}
        """Every producer that has SENDs waiting."""
        self.parked_bytes = 0
        """Of all producers, now."""
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
            if not quota.is_closed:
                quota.look_when_due()
            used += 1
        # What is put back meanwhile has had its turn.
        for _ in range(len(self._dirty)):
            if used >= entries_max:
                break
            quota = self._dirty.popleft()
            if quota.is_closed:
                continue
            # Still dirty, so that nothing that happens in here puts it into the queue again.
            quota.evaluate()
            used += 1 + self._drain(quota, entries_max - used)
            quota.is_dirty = False
            if quota.over is None and quota.topic.parking:
                self.touch(quota)
        return used

    @property
    def is_busy(self) -> bool:
        """Whether :meth:`work` has more to do at once."""
        return bool(self._dirty or self._due)

    def _drain(self, quota: TopicQuota, entries_max: int) -> int:
        """Stage what waits, each producer in its turn, while there is room."""
        topic, parking = quota.topic, quota.topic.parking
        used = 0
        if parking is None:
            return 0
        mark = quota.settle()
        while used < entries_max and quota.over is None:
            waiting = parking.next()
            if waiting is None:
                break
            if topic.staged_bytes >= mark:
                quota.evaluate()
                mark = quota.settle()
                if quota.over is not None:
                    break
            producer, send = waiting
            parking.take(self._engine.now_ns)
            self._left(producer, len(send.body))
            topic.stage_parked(producer, send)
            used += 1
        quota.settle()
        return used

    # -- what waits ------------------------------------------------------------------------

    def park(self, quota: TopicQuota, producer: Producer, send: ParkedSend) -> None:
        """Have a SEND wait, within the bounds."""
        topic = quota.topic
        if topic.parking is None:
            topic.parking = Parking()
        self._arm_hold(quota, send.arrived_ns)
        topic.parking.park(producer, send)
        self.parked_bytes += len(send.body)
        self._parked[producer] = quota
        quota.settle()
        limits = self._engine.limits
        while producer.port.parked_bytes > limits.parked_bytes_per_connection_max:
            self._shed(producer.port)
        while self.parked_bytes > limits.parked_bytes_max:
            self._shed(None)

    def _shed(self, port: ProducerPort | None) -> None:
        """Close the producer that parks most: of one connection, or of all."""
        mine = [p for p in self._parked if port is None or p.port is port]
        producer = max(mine, key=lambda p: p.parked_bytes)
        self._parked[producer].topic.end_producer(producer)

    def discard(self, topic: Topic, producer: Producer) -> None:
        """Forget what a producer has waiting."""
        if producer.parked and topic.parking is not None:
            size_bytes = producer.parked_bytes
            topic.parking.discard(producer, self._engine.now_ns)
            self._left(producer, size_bytes)
            quota = topic.quota
            if quota is not None:
                quota.settle()
                if quota.over is not None:
                    self.touch(quota)  # what goes next now may need less room

    def _left(self, producer: Producer, size_bytes: int) -> None:
        self.parked_bytes -= size_bytes
        if not producer.parked:
            self._parked.pop(producer, None)

    def holds_due(self) -> None:
        """How long a hold may be was changed: look at everybody who waits."""
        for quota in {id(quota): quota for quota in self._parked.values()}.values():
            self._holds_due(quota)

    def _holds_due(self, quota: TopicQuota) -> None:
        """Close the producers whose oldest SEND has waited as long as it may."""
        quota.hold_timer_ns = 0
        parking, engine = quota.topic.parking, self._engine
        if quota.is_closed or not parking:
            return
        hold_ns = engine.limits.hold_park_ns
        for producer in parking.producers:
            if producer.parked and producer.parked[0].arrived_ns + hold_ns <= engine.now_ns:
                quota.topic.end_producer(producer)
        heads = [p.parked[0].arrived_ns for p in parking.producers if p.parked]
        if heads:
            self._arm_hold(quota, min(heads))

    def _arm_hold(self, quota: TopicQuota, arrived_ns: int) -> None:
        """Look who has waited too long when a SEND that arrived then has."""
        when_ns = arrived_ns + self._engine.limits.hold_park_ns
        if not 0 < quota.hold_timer_ns <= when_ns:
            quota.hold_timer_ns = when_ns
            self._engine.wake_at(when_ns, partial(self._hold_timer, quota, when_ns))

    def _hold_timer(self, quota: TopicQuota, when_ns: int) -> None:
        if quota.hold_timer_ns == when_ns:  # else another one was armed for it
            self._holds_due(quota)

    # -- time ------------------------------------------------------------------------------

    def arm(self, quota: TopicQuota, limit_ms: int) -> None:
        """Look at a topic when the oldest message that it owes gets too old; while it owes none,
        when one that arrives from now on could. Until then the oldest can only become younger."""
        engine, topic = self._engine, quota.topic
        now_ms = engine.now_ms
        oldest = quota.oldest()
        received_ms = oldest.oldest_unacked_ms() if oldest is not None else None
        if received_ms is not None:
            due_ms = received_ms + limit_ms
            if due_ms <= now_ms:
                return  # it is over, and acknowledgements end that
        elif topic.pending_count:
            due_ms = topic.log.received_ms(topic.log.end) + limit_ms
            if due_ms <= now_ms:
                quota.awaits_durable = True
                return
        else:
            due_ms = now_ms + limit_ms
        if due_ms - now_ms > FAR_MS:
            due_ms = due_ms // FAR_BUCKET_MS * FAR_BUCKET_MS
        number = -(-due_ms // BUCKET_MS)
        bucket = self._wheel.get(number)
        if bucket is None:
            bucket = self._wheel[number] = Bucket(number)
            when_ns = due_ns(number * BUCKET_MS, 0, now_ms, engine.now_ns)
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

    def clock_stepped(self) -> None:
        """The wall clock was set: messages are older, or younger, than they were."""
        self._wheel.clear()  # each bucket waits for an instant that is not its own any more
        for quota in self._active:
            if not quota.is_closed:
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
            if not quota.is_closed and quota.look():
                active.append(quota)

    def verify(self, topics: list[Topic]) -> None:
        """Check the state of some topics against a count of everything, and mend what is wrong."""
        for topic in topics:
            quota = topic.quota
            if quota is None or not quota.is_active or topic.fenced:
                continue
            if quota.is_dirty:
                continue  # it is looked at before this turn ends
            if not quota.is_right():
                self.defects_count += 1
                quota.evaluate()
