"""Applies limits that are relative to the publish rate (law 1.7, PIP-52).

The publish rate of a topic is followed while a relative limit depends on it: its own, one of its
subscriptions' or the broker's. It is sampled while something is published or the rate still falls;
an idle topic costs nothing. Many topics are sampled in slices, with other work in between, and
tenants take turns.

A subscription's limit is the publish rate plus the configured amount. A topic's limit is shared by
its subscriptions, and each of them needs everything that is published: so it is k times the publish
rate plus the configured amount, where k counts the subscriptions with a consumer that are not
exempt, at least 1. The broker's limit is the sum of that over its topics, plus the configured
amount.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from headgate.base.fair_queue import FairQueue
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.limits.rate_limit import PerSecond, RateLimit
from headgate.flow.limits.relative import SAMPLE_NS, PublishRate

if TYPE_CHECKING:
    from headgate.flow.limits.gate import BrokerGate, TopicGate
    from headgate.flow.limits.waiter_gate import WaiterGate

    Gate = BrokerGate | TopicGate | WaiterGate

NOTHING = PerSecond(0.0, 0.0)

SLICE_GATES = 128
"""Limits that are applied in one slice: about a millisecond of work."""
TURN_GATES = 16
"""Those of one topic in a turn; then others have theirs."""
LINED_UP_MAX = 1_024
"""Topics that are due and line up in one slice."""
SLICE_PAUSE_NS = 4 * NS_PER_MS
"""Time for other work between two slices. With 3,000 limits or more, a round takes longer than
100 ms."""


class RelativeEngine(Protocol):
    """The engine, as far as relative limits need it."""

    now_ns: int
    gate: BrokerGate
    broker_limit: RateLimit | None
    throttle_counts_entries: bool

    def wake_at(self, when_ns: int, action: Callable[[], None], /) -> None:
        """Run ``action`` in the first flush at or after ``when_ns``."""


class RelativeLimits:
    """The relative limits of one engine."""

    def __init__(self, engine: RelativeEngine) -> None:
        self._engine = engine
        self._required: dict[Topic, PerSecond] = {}
        """Followed topics whose rate changes, with what their subscriptions require."""
        self._due_ns: dict[Topic, int] = {}
        """When each of them is sampled next."""
        self._queue: deque[tuple[int, Topic]] = deque()
        """The same in the order of time; an entry with another time than there is stale."""
        self._broker_due_ns = 0
        self._turns: FairQueue[tuple[Topic, Iterator[bool]]] = FairQueue()
        """The samples that are due. Tenants take turns: one may have 100,000 limits."""
        self._is_armed = False

    # -- followed topics -------------------------------------------------------------------

    def limits_set(self, topic: Topic) -> None:
        """Limits of the topic, of its subscriptions or of the broker were set or removed."""
        if not self._has_relative_limit(topic):
            self._forget(topic)
        elif topic.publish_rate is None:
            self.follow(topic)

    def follow(self, topic: Topic) -> None:
        """Follow the topic's publish rate from now on, unless it is followed already."""
        if topic.publish_rate is not None or topic.is_system:
            return
        engine = self._engine
        # The statistics know the rate of a busy topic in the last seconds: its limit need not
        # wait for a second of measuring.
        counters = topic.counters()
        known = topic.rates.per_second(counters, engine.now_ns, over_ns_min=NS_PER_S)[:3]
        topic.publish_rate = PublishRate(_counts(topic), engine.now_ns, known=known)
        self._schedule(topic)

    def loaded(self, topic: Topic, known: PublishRate | None) -> None:
        """A topic was loaded and its limits are set; ``known`` is what :meth:`unloaded` returned.

        Its subscriptions come next: only then is it known whether a limit still needs the rate.
        """
        if known is not None:
            now_ns = self._engine.now_ns
            topic.publish_rate = known
            known.resume(_counts(topic), now_ns)
            known.sample(_counts(topic), now_ns)
            self._schedule(topic)
            for _ in self._put_in_force(topic):
                pass

    def unloaded(self, topic: Topic) -> PublishRate | None:
        """A topic is unloaded. Returns its publish rate for :meth:`loaded`, None if it was not
        followed."""
        known = topic.publish_rate
        self._forget(topic)
        return known

    def published(self, topic: Topic, first: int) -> None:
        """Entries from ``first`` on were published to a topic, which may be followed."""
        if topic not in self._required and topic.publish_rate is not None:
            topic.publish_rate.resume(_counts(topic, first), self._engine.now_ns)
            self._schedule(topic)

    def _has_relative_limit(self, topic: Topic) -> bool:
        if topic.is_system:
            return False
        own = (topic.limit, self._engine.broker_limit)
        if any(limit is not None and limit.relative for limit in own):
            return True
        return any(s.limit is not None and s.limit.relative for s in topic.subscriptions.values())

    def _forget(self, topic: Topic) -> None:
        topic.publish_rate = None
        self._required.pop(topic, None)
        self._due_ns.pop(topic, None)

    def _schedule(self, topic: Topic) -> None:
        self._required[topic] = self.required_per_second(topic)
        self._due_ns[topic] = due_ns = self._engine.now_ns + SAMPLE_NS
        self._queue.append((due_ns, topic))
        self._arm()

    def _arm(self) -> None:
        if self._is_armed or not (self._queue or self._turns):
            return
        self._is_armed = True
        at_ns = self._engine.now_ns + SLICE_PAUSE_NS
        if not self._turns:
            at_ns = max(at_ns, self._queue[0][0])
        self._engine.wake_at(at_ns, self._sample_due)

    # -- present amounts ------------------------------------------------------------------

    def published_per_second(self, topic: Topic) -> PerSecond:
        """The followed publish rate of a topic, as its limits count messages."""
        if topic.publish_rate is None:
            return NOTHING
        messages, size, entries = topic.publish_rate.per_second
        return PerSecond(entries if self._engine.throttle_counts_entries else messages, size)

    def required_per_second(self, topic: Topic) -> PerSecond:
        """What the topic's subscriptions require together to keep up."""
        followers = self.followers(topic)
        messages, size = self.published_per_second(topic)
        return PerSecond(followers * messages, followers * size)

    def followers(self, topic: Topic) -> int:
        """How many subscriptions require everything that is published: those with a consumer that
        are not exempt, at least 1."""
        subscriptions = topic.subscriptions.values()
        return max(1, sum([1 for s in subscriptions if s.consumers and not s.gate.exempt]))

    def of_subscription(self, subscription: Subscription) -> RateLimit | None:
        """The limit in force on a subscription."""
        limit = subscription.limit
        if limit is None or not limit.relative:
            return limit
        return limit.above(self.published_per_second(subscription.topic))

    def of_topic(self, topic: Topic) -> RateLimit | None:
        """The limit in force on a topic."""
        limit = topic.limit
        if limit is None or not limit.relative:
            return limit
        return limit.above(self.required_per_second(topic))

    def of_broker(self) -> RateLimit | None:
        """The limit in force on the broker: above what all topics' subscriptions require."""
        limit = self._engine.broker_limit
        if limit is None or not limit.relative:
            return limit
        required = self._required.values()
        messages = sum(each.messages for each in required)
        return limit.above(PerSecond(messages, sum(each.bytes for each in required)))

    # -- the samples -----------------------------------------------------------------------

    def _sample_due(self) -> None:
        """Sample the topics that are due, up to the size of one slice."""
        now_ns, turns, left = self._engine.now_ns, self._turns, SLICE_GATES
        self._line_up_due(now_ns)
        while left > 0 and turns:
            topic, sample = turns.take()
            gates_max = min(TURN_GATES, left)
            gates = sum(1 for _ in islice(sample, gates_max))
            if gates == gates_max:
                turns.put_back(topic.name.tenant, (topic, sample))
            left -= max(gates, 1)
        if now_ns >= self._broker_due_ns or not (self._queue or turns):
            self._broker_due_ns = now_ns + SAMPLE_NS
            limit = self._engine.broker_limit
            if limit is not None and limit.relative:
                self._set(self._engine.gate, self.of_broker())
        self._is_armed = False
        self._arm()

    def _line_up_due(self, now_ns: int) -> None:
        queue = self._queue
        for _ in range(LINED_UP_MAX):
            if not queue or queue[0][0] > now_ns:
                break
            due_ns, topic = queue.popleft()
            if self._due_ns.get(topic) == due_ns:
                self._turns.add(topic.name.tenant, (topic, self._sample(topic, due_ns)))

    def _sample(self, topic: Topic, due_ns: int) -> Iterator[bool]:
        """Sample one topic; a step for each limit that is put in force."""
        if self._due_ns.get(topic) != due_ns:
            return  # another one is to follow since, or none
        rate, counts = topic.publish_rate, _counts(topic)
        goes_on = rate is not None and rate.sample(counts, self._engine.now_ns)
        yield from self._put_in_force(topic)
        if self._due_ns.get(topic) != due_ns:
            return  # meanwhile it was unloaded, or its rate is followed anew or no longer
        del self._required[topic], self._due_ns[topic]
        if goes_on or _counts(topic) != counts:
            self._schedule(topic)
        elif not self._has_relative_limit(topic):
            self._forget(topic)

    def _put_in_force(self, topic: Topic) -> Iterator[bool]:
        if topic.limit is not None and topic.limit.relative:
            self._set(topic.gate, self.of_topic(topic))
            yield True
        before: RateLimit | None = None
        now: RateLimit | None = None
        for subscription in list(topic.subscriptions.values()):
            limit = subscription.limit
            if limit is not None and limit.relative and not subscription.removed:
                if limit != before:  # most have the same, of the topic's or namespace's policy
                    before, now = limit, self.of_subscription(subscription)
                self._set(subscription.gate, now)
                yield True

    def _set(self, gate: Gate, now: RateLimit | None) -> None:
        """Apply the present amount of a relative limit; an unchanged amount wakes no waiter."""
        if now is not None and any(b.limit != now.amount(b.dimension) for b in gate.budgets):
            gate.set_limit(now, self._engine.now_ns)


def _counts(topic: Topic, ordinal: int | None = None) -> tuple[int, int, int]:
    """Messages, bytes and entries published before ``ordinal``; before the topic's end if None."""
    log = topic.log
    end = log.end if ordinal is None else ordinal
    return log.messages_before(end), log.bytes_before(end), end
