"""A topic with quotas under anything that may happen to it, and what must hold all the while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.base.positions import Position
from headgate.base.units import NS_PER_S
from headgate.engine.consumer import Consumer
from headgate.engine.errors import ProducersHeldError, ProducersRefusedError
from headgate.engine.producer import Producer
from headgate.engine.quota_check import is_consistent
from headgate.engine.quota_scheduler import BUCKET_MS
from headgate.engine.subscription import Subscription
from headgate.engine.topic_quota import TopicQuota
from headgate.engine.types import SubscriptionType
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.flow.quota.backlog_quota import (
    NO_QUOTAS,
    Quota,
    QuotaPolicy,
    Quotas,
    QuotaType,
    age_evicted_ms,
    age_released,
    size_after_eviction,
    size_released,
)
from tests.unit.engine.harness import FakePort
from tests.unit.engine.quota_rig import QuotaRig

Act = tuple[str, int, int]

NONE = float("inf")


class Body(bytes):
    """An entry that knows which SEND it is."""

    session: int
    sequence: int


class Port(FakePort):
    """A connection that ends a producer as the broker's do, and tells receipts apart."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        self.story = story
        self.maximum = 1_000

    @property
    def has_room(self) -> bool:  # type: ignore[override]
        return (
            sum(p.pending_count for p in self.story.rig.topic.producers.values() if p.port is self)
            < self.maximum
        )

    def send_receipt(self, producer_id: int, sequence: int, high: int, position: Position) -> None:
        self.story.receipts[producer_id].append(sequence)

    def send_failed(self, producer_id: int, sequence: int, reason: str) -> None:
        producer = self.story.producers[producer_id]
        if producer.pending_count == 0:
            self.story.rig.topic.remove_producer(producer)

    def close_producer(self, producer_id: int) -> None:
        assert self.story.producers[producer_id].pending_count == 0  # its receipts came first
        self.story.reached["producer closed"] += 1


class Story:
    """One topic, two connections, any number of producers and subscriptions."""

    def __init__(self, reached: Counter[str], *, subscriptions: int) -> None:
        self.reached = reached
        self.rig = rig = QuotaRig()
        rig.topic.remove_producer(rig.producer)
        self._stage = rig.effects.append
        rig.effects.append = self._append  # type: ignore[method-assign]
        self.ports = [Port(self), Port(self)]
        self.producers: dict[int, Producer] = {}
        self.sent: dict[int, int] = {}
        self.receipts: dict[int, list[int]] = {}
        self._consumers: dict[Subscription, Consumer] = {}
        self._names = 0
        self._evictions = [(0, 0, 0), (0, 0, 0)]
        self._taken: list[tuple[int, int, int, list[float]]] = []
        """Of each entry of the log when it was staged, 1, its bytes, and the limits then."""
        self._limits: list[tuple[int, list[float]]] = [(0, [NONE] * 4)]
        """Publish limits, and since when."""
        for _ in range(subscriptions):
            self.do_subscribe(0, 0)
        self.do_open(0, 0)
        self.do_open(1, 0)

    def play(self, acts: list[Act]) -> None:
        """Do all of it; what must hold is checked after each."""
        with _watched_evictions(self):
            for name, which, amount in acts:
                getattr(self, f"do_{name}")(which, amount)
                self._check_figures()

    # -- what may happen -------------------------------------------------------------------

    def do_send(self, which: int, size: int) -> None:
        producers = list(self.rig.topic.producers.values())
        if producers:
            producer = producers[which % len(producers)]
            body = Body(max(1, size))
            body.session, body.sequence = producer.producer_id, self.sent[producer.producer_id]
            self.sent[producer.producer_id] += 1
            if not producer.port.has_room:
                self.rig.topic.publishing.park(producer, body.sequence, 0, 1, body)
            elif not self.rig.topic.publishing.publish(producer, body.sequence, 0, 1, body):
                self.reached["parked" if producer.parked else "forgotten"] += 1
            if producer.parked_at is not None:
                self.reached[f"waits at {producer.parked_at.name.lower()}"] += 1

    def do_commit(self, _: int, __: int) -> None:
        self.rig.log.end = self.rig.log.staged_end
        self.rig.topic.publishing.entries_durable(0)
        self.rig.engine.admission.recheck_pending_limits()

    def do_commit_some(self, which: int, _: int) -> None:
        log = self.rig.log
        log.end = min(log.staged_end, log.end + which)
        self.rig.topic.publishing.entries_durable(0)
        self.rig.engine.admission.recheck_pending_limits()

    def do_fail(self, _: int, __: int) -> None:
        log = self.rig.log
        for column in (log.bodies, log.counts, log.times):
            del column[log.end :]
        del self._taken[log.end :]
        self.rig.topic.publishing.fail_pending(StorageError("disk full", retryable=True))
        self.rig.engine.admission.recheck_pending_limits()

    def do_ack(self, which: int, amount: int) -> None:
        if (found := self._subscription(which)) and found.consumers:
            found.ack_entry(self._consumers[found], found.acks.mark_delete + 1 + amount % 7)

    def do_ack_through(self, which: int, amount: int) -> None:
        if (found := self._subscription(which)) and found.consumers:
            found.ack_through(self._consumers[found], found.acks.mark_delete + 1 + amount % 5)

    def do_ack_all(self, _: int, __: int) -> None:
        for found in self.rig.topic.subscriptions.values():
            if found.consumers:
                found.ack_through(self._consumers[found], self.rig.log.end - 1)

    def do_skip(self, which: int, amount: int) -> None:
        if found := self._subscription(which):
            found.skip_messages(amount % 9)

    def do_subscribe(self, which: int, _: int) -> None:
        self._names += 1
        log = self.rig.log
        at = log.end if which % 3 else max(0, log.end - which)
        found = self.rig.topic.add_subscription(
            f"s{self._names}", AckSet(at - 1), cursor_id=self._names if which % 7 else None
        )
        self._connect(found)

    def _connect(self, found: Subscription) -> None:
        consumer = Consumer(self._names, "c", FakePort())
        found.add_consumer(consumer, SubscriptionType.SHARED)
        found.flow(consumer, 100_000)
        self._consumers[found] = consumer

    def do_unsubscribe(self, which: int, _: int) -> None:
        if found := self._subscription(which):
            found.disconnect_consumers()
            self.rig.topic.subscriptions.get(found.name) and self.rig.topic.remove_subscription(
                found.name
            )

    def do_leave(self, which: int, amount: int) -> None:
        if found := self._subscription(which):
            if found.consumers:
                found.remove_consumer(self._consumers[found])
            elif amount % 2:
                self._connect(found)

    def do_reset(self, which: int, amount: int) -> None:
        if (found := self._subscription(which)) and found.is_durable:
            found.disconnect_consumers()
            found.reset(amount % (self.rig.log.end + 1))
            self._connect(found)

    def _subscription(self, which: int) -> Subscription | None:
        found = list(self.rig.topic.subscriptions.values())
        return found[which % len(found)] if found else None

    def do_quotas(self, which: int, amount: int) -> None:
        self.rig.quotas = quotas_of(which, amount)
        self.rig.engine.reload_quotas(self.rig.topic)

    def do_limit(self, which: int, amount: int) -> None:
        """The publish limit, static or adaptive, of the topic or of the broker."""
        limit = limit_of(which, amount)
        admission, topic = self.rig.engine.admission, self.rig.topic
        if which % 3 == 0:
            self.rig.publish_limit = limit
            self.rig.engine.reload_publish_limit(topic)
        elif which % 3 == 1:
            topic.publishing.adaptive_limit = limit
            admission.put_in_force(topic)
        else:
            self.rig.set_broker_publish_limit(limit)
        limits_now = self._limits_now()
        self._limits.append((self.rig.engine.now_ns, limits_now))
        for number in (2, 3):  # the broker's: one that is set behind none begins anew
            if limits_now[number] == NONE:
                for _, _, _, limits in self._taken:
                    limits[number] = NONE

    def _limits_now(self) -> list[float]:
        """What the topic's and the broker's limits allow a second now, in messages and in bytes."""
        topic = self.rig.topic
        levels = (
            (topic.publishing.limit, topic.publishing.adaptive_limit),
            (self.rig.engine.admission.limit,),
        )
        return [
            min((x for limit in limits if limit and (x := limit.amount(dimension))), default=NONE)
            for limits in levels
            for dimension in Dimension
        ]

    def do_maximum(self, which: int, amount: int) -> None:
        self.ports[which % 2].maximum = 1 + amount % 10 if which % 3 else 1_000
        self.rig.engine.admission.recheck_pending_limits()

    def do_wait(self, which: int, amount: int) -> None:
        self.rig.advance((10, 300, 3_000, 12_000)[which % 4] + amount)

    def do_open(self, which: int, _: int) -> None:
        topic, number = self.rig.topic, len(self.producers)
        if topic.quota is not None:
            try:
                topic.quota.check_newcomer()
            except (ProducersHeldError, ProducersRefusedError):
                self.reached["newcomer refused"] += 1
                assert self._stopping()
                return
        producer = Producer(number, f"p{number}", self.ports[which % 2])
        self.producers[number] = producer
        self.sent[number], self.receipts[number] = 0, []
        topic.add_producer(producer)

    def do_close(self, which: int, _: int) -> None:
        producers = list(self.rig.topic.producers.values())
        if producers:
            self.rig.topic.remove_producer(producers[which % len(producers)])
            self.rig.engine.admission.recheck_pending_limits()

    def do_turn(self, _: int, __: int) -> None:
        self.rig.engine.flush()

    def do_flush(self, _: int, __: int) -> None:
        self.rig.flush()
        self._check_rest()

    def do_look(self, _: int, __: int) -> None:
        scheduler = self.rig.engine.quotas
        scheduler.sample(scheduler.sample_count())
        scheduler.verify([self.rig.topic])
        assert scheduler.defects_count == 0

    # -- what must hold --------------------------------------------------------------------

    def _durable(self) -> list[Subscription]:
        return [s for s in self.rig.topic.subscriptions.values() if s.is_durable]

    def owed(self, subscription: Subscription) -> list[int]:
        """Durable entries that it has not acknowledged, one by one."""
        end = self.rig.log.end
        return [ordinal for ordinal in range(end) if not subscription.acks.is_acked(ordinal)]

    def staged_bytes(self) -> int:
        """Of what is not durable yet."""
        return sum(map(len, self.rig.log.bodies[self.rig.log.end :]))

    def backlog_bytes(self, subscription: Subscription) -> int:
        """What it owes, with what is not durable yet."""
        bodies = self.rig.log.bodies
        return sum(len(bodies[o]) for o in self.owed(subscription)) + self.staged_bytes()

    def largest(self) -> int:
        return max((self.backlog_bytes(s) for s in self._durable()), default=0)

    def age_ms(self) -> int:
        firsts = [owed[0] for s in self._durable() if (owed := self.owed(s))]
        times = self.rig.log.times
        return max((self.rig.engine.now_ms - times[first] for first in firsts), default=-1)

    def _stopping(self) -> bool:
        """Whether a quota that stops producers is exceeded, or not yet down to its low mark."""
        size, time = self._in_force
        return (size is not None and size.policy.stops_producers and not self._has_room(size)) or (
            time is not None
            and time.policy.stops_producers
            and not age_released(self.age_ms(), time.limit)
        )

    def _has_room(self, size: Quota) -> bool:
        backlog = self.largest()
        if not size.policy.stops_producers:
            return backlog < size.limit or backlog == 0
        parking = self.rig.topic.publishing.parking
        parked = parking.quota_queue.first.parked if parking and parking.quota_queue else None
        return size_released(backlog, size.limit, len(parked[0].body) if parked else 0)

    @property
    def _in_force(self) -> Quotas:
        quota = self.rig.topic.quota
        return NO_QUOTAS if quota is None else quota.quotas

    def _append(self, log: Any, message_count: int, log_ms: int, body: bytes) -> int:
        """Rule 4.2: what is staged was below the limit the instant before."""
        size, time = self._in_force
        if size is not None:
            backlog = self.largest()
            assert backlog < size.limit or (backlog == 0 and not size.policy.stops_producers)
            self.reached["staged below a size limit"] += 1
        if time is not None and time.policy.stops_producers:
            assert self.age_ms() < time.limit + BUCKET_MS
        topic = self.rig.engine.by_number[log.number]
        assert topic.quota is None or topic.quota.exceeded is None
        self._check_limits(len(body))
        return self._stage(log, message_count, log_ms, body)

    def _check_limits(self, size: int) -> None:
        """Rule 3.2: of the second before there is less than the largest limit that held in it. What
        went while there was no limit counts for none, nor what went before the broker had none."""
        now_ns, limits_now = self.rig.engine.now_ns, self._limits_now()
        since_ns = now_ns - NS_PER_S
        held = [limits for at, limits in self._limits if at > since_ns]
        held += [limits for at, limits in self._limits if at <= since_ns][-1:]
        recent = [taken for taken in self._taken if taken[0] > since_ns]
        for number, limit in enumerate(limits_now):
            if limit < NONE:
                column = 1 + number % 2
                spent = sum(taken[column] for taken in recent if taken[3][number] < NONE)
                assert spent < max(limits[number] for limits in held if limits[number] < NONE)
        self._taken.append((now_ns, 1, size, limits_now))

    def _check_figures(self) -> None:
        """What holds between any two events."""
        topic, scheduler = self.rig.topic, self.rig.engine.quotas
        parked = {p: list(p.parked or ()) for p in self.producers.values()}
        sizes = {p: sum(len(s.body) for s in sends) for p, sends in parked.items()}
        assert self.rig.engine.parked.bytes == sum(sizes.values())
        assert (topic.publishing.parking.bytes if topic.publishing.parking else 0) == sum(
            sizes.values()
        )
        for port in self.ports:
            assert port.parked_bytes == sum(sizes[p] for p in sizes if p.port is port)
        stored: dict[int, list[int]] = {number: [] for number in self.producers}
        for body in self.rig.log.bodies:
            assert isinstance(body, Body)
            stored[body.session].append(body.sequence)
        for number, producer in self.producers.items():
            assert producer.parked_bytes == sizes[producer]
            # In order, once, and nothing after one that was lost.
            assert stored[number] == list(range(len(stored[number])))
            assert self.receipts[number] == list(range(len(self.receipts[number])))
            waiting = [send.sequence_id for send in parked[producer]]
            if producer.closed or producer.ending:
                assert not waiting
            else:
                assert stored[number] + waiting == list(range(self.sent[number]))
                assert len(self.receipts[number]) == len(stored[number]) - producer.pending_count
        if topic.quota is not None:
            evictions = [topic.quota.evictions(kind) for kind in QuotaType]
            for before, now in zip(self._evictions, evictions, strict=True):
                assert all(b <= n for b, n in zip(before, now, strict=True))
            assert evictions == scheduler.evicted
            self._evictions = evictions

    def _check_rest(self) -> None:
        """What holds when a turn is over."""
        topic, quota = self.rig.topic, self.rig.topic.quota
        free = min(self._limits_now()) == NONE
        for producer in topic.producers.values():
            if producer.parked and (quota is None or quota.exceeded is None):
                assert not free or not producer.port.has_room
            assert (producer.parked_at is not None) == bool(producer.parked)
        if quota is None:
            return
        assert is_consistent(quota)
        assert quota.backlog_bytes() == self.largest()
        assert quota.age_ms() == self.age_ms()
        size, time = quota.quotas
        is_free = (size is None or self._has_room(size)) and not self._stopping()
        if is_free:
            assert quota.exceeded is None
            assert not (topic.publishing.parking and topic.publishing.parking.quota_queue)
        if quota.exceeded is not None:
            self.reached[f"over by {quota.exceeded.type.label}, {quota.exceeded.policy.value}"] += 1
            if quota.exceeded.policy is QuotaPolicy.EXCEPTION:
                assert all(p.ending for p in topic.producers.values())
        if time is not None and not time.policy.stops_producers:
            assert self.age_ms() < time.limit + BUCKET_MS
        if size is not None and not size.policy.stops_producers and self.largest() >= size.limit:
            assert self.largest() == self.staged_bytes() or topic.publishing.pending_count


def limit_of(which: int, amount: int) -> RateLimit | None:
    """Any publish limit, or none."""
    kind = which // 3 % 4
    if kind == 0:
        return None
    messages = 1 + amount % 20 if kind != 1 else None
    return RateLimit(messages, 10 * (1 + amount) if kind != 2 else None)


def quotas_of(which: int, amount: int) -> Quotas:
    """Any quotas: small limits, all policies, none, both."""
    policies = list(QuotaPolicy)
    size = Quota(QuotaType.SIZE, amount if which % 5 else 0, policies[which % 3], "s")
    time = Quota(QuotaType.TIME, 200 + 20 * amount, policies[which // 3 % 3], "t")
    kind = which // 9 % 4
    return Quotas(size if kind != 1 else None, time if kind in (1, 2) else None)


@contextmanager
def _watched_evictions(story: Story) -> Iterator[None]:
    """Rule 4.3: who is at 90 % or below is not moved, and nobody further than needed."""
    evict: Callable[[TopicQuota, Quota], None] = TopicQuota._evict

    def watched(quota: TopicQuota, by: Quota) -> None:
        subscriptions = story._durable()
        before = {s: story.owed(s) for s in subscriptions}
        evict(quota, by)
        for one in subscriptions:
            now = story.owed(one)
            gone = before[one][: len(before[one]) - len(now)]
            assert gone + now == before[one]
            if by.type is QuotaType.SIZE:
                _check_size(one, gone, now, by)
            else:
                _check_age(gone, now, by)
            story.reached[f"evicted by {by.type.label}"] += bool(gone)

    def _check_size(one: Subscription, gone: list[int], now: list[int], by: Quota) -> None:
        mark, left = size_after_eviction(by.limit), story.backlog_bytes(one)
        assert left <= mark or not now
        assert not gone or left + len(story.rig.log.bodies[gone[-1]]) > mark

    def _check_age(gone: list[int], now: list[int], by: Quota) -> None:
        times, now_ms = story.rig.log.times, story.rig.engine.now_ms
        assert all(now_ms - times[ordinal] >= age_evicted_ms(by.limit) for ordinal in gone)
        assert all(now_ms - times[ordinal] < age_evicted_ms(by.limit) for ordinal in now)

    with mock.patch.object(TopicQuota, "_evict", watched):
        yield
