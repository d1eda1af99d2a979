"""A broker's engine, history and explain in virtual time, with producers and consumers as the
official clients behave: permits come back in lumps of half the receiver queue, acknowledgements in
groups of 100 ms. Publishing and processing happen in ticks of 10 ms, dispatch at its own instants.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

from headgate.base.ack_set import AckSet
from headgate.base.names import TopicName, parse_topic
from headgate.base.positions import Position
from headgate.base.sliced import at_once
from headgate.base.stored_total import StoredTotal
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.consumer import Consumer
from headgate.engine.engine import Engine
from headgate.engine.engine_policies import EnginePolicies
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.explain.reports import SubscriptionReport
from headgate.flow.limits.precedence import (
    DISPATCH_KEYS,
    NO_LIMIT,
    EffectiveLimit,
    RatePolicy,
    effective_limit,
)
from headgate.flow.limits.rate_limit import Level
from headgate.flow.quota.backlog_quota import NO_QUOTAS
from headgate.flow.sentences.disk import CommitLatencyFacts, DiskFacts
from headgate.flow.topic_growth import TopicGrowths
from headgate.metadata.policies import Retention
from headgate.observe.explain.delivery import DeliveryReports
from headgate.observe.observer import Observer
from headgate.policy.current_limits import CurrentDispatchLimits, CurrentPublishLimits
from headgate.storage.managed_logs import ManagedLogs
from tests.unit.engine.indexed_log import IndexedLog

TICK_NS = 10 * NS_PER_MS
ACK_TICKS = 10
START_NS = 77 * NS_PER_S
START_MS = 1_700_000_000_000
BODY = b"x" * 100


class FakeLog(IndexedLog):
    """Entries of one message, durable at once."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.sequences = None
        self.stored_total = StoredTotal()
        self.first = self.end = self.staged_end = 0
        self._received_ms: list[int] = []

    def append(self, now_ms: int) -> int:
        self._received_ms.append(now_ms)
        self.end = self.staged_end = len(self._received_ms)
        return self.end - 1

    def position(self, ordinal: int) -> Position:
        return Position(1, ordinal)

    def live_bytes(self, first: int, end: int) -> int:
        return (end - first) * len(BODY)

    def message_count(self, ordinal: int) -> int:
        return 1

    def size_bytes(self, ordinal: int) -> int:
        return len(BODY)

    def received_ms(self, ordinal: int) -> int:
        return self._received_ms[ordinal]

    def messages_before(self, ordinal: int) -> int:
        return ordinal

    def bytes_before(self, ordinal: int) -> int:
        return ordinal * len(BODY)


class Client:
    """One consumer with its own process: ``rate`` messages a second out of its queue."""

    writable = True

    def __init__(
        self,
        subscription: Subscription,
        rate: float,
        queue: int,
        kind: SubscriptionType = SubscriptionType.SHARED,
    ) -> None:
        self.subscription, self.rate, self.queue = subscription, rate, queue
        self.waiting: deque[int] = deque()
        self.done: list[int] = []
        self.unreturned = 0
        self.credit = 0.0
        self.consumer = Consumer(1, "c", self)
        subscription.add_consumer(self.consumer, kind)
        subscription.flow(self.consumer, queue)

    async def is_alive(self) -> bool:
        return True

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        count: int,
        body: bytes,
        left: tuple[int, ...],
    ) -> bool:
        self.waiting.append(position.entry_id)
        return False

    def close_consumer(self, consumer_id: int) -> None: ...

    def end_reached(self, consumer_id: int) -> None: ...

    def active_consumer_changed(self, consumer_id: int, is_active: bool) -> None: ...

    def tick(self, index: int) -> None:
        # Who waits for messages does not save up time in which it could have worked.
        self.credit = min(self.credit + self.rate / 100, max(1.0, self.rate / 100) + 1)
        while self.credit >= 1 and self.waiting:
            self.credit -= 1
            self.done.append(self.waiting.popleft())
            self.unreturned += 1
            if self.unreturned >= self.queue // 2:
                self.subscription.flow(self.consumer, self.unreturned)
                self.unreturned = 0
        if index % ACK_TICKS == 0:
            for ordinal in self.done:
                self.subscription.ack_entry(self.consumer, ordinal)
            self.done.clear()


class Limits:
    """Stands where the broker's table of limits stands."""

    def __init__(self) -> None:
        self.messages: dict[Any, int] = {}
        self.policies: dict[Any, RatePolicy] = {}
        """Instead of plain ones, by the same keys."""

    def _limit(self, level: Level, key: Any) -> EffectiveLimit:
        policy = self.policies.get(key) or RatePolicy(messages=self.messages.get(key, 0))
        if level is Level.BROKER:
            return effective_limit(DISPATCH_KEYS[level], broker_messages=policy.messages)
        return effective_limit(DISPATCH_KEYS[level], topic_policy=policy)

    def of_broker(self) -> EffectiveLimit:
        return self._limit(Level.BROKER, "broker")

    def of_topic(self, topic: TopicName) -> EffectiveLimit:
        return self._limit(Level.TOPIC, topic.full)

    def of_subscription(self, topic: TopicName, subscription: str) -> EffectiveLimit:
        return self._limit(Level.SUBSCRIPTION, (topic.full, subscription))


class NoPublishLimits:
    """Stands where the broker's table of publish limits stands: nothing is published here by a
    producer."""

    def of_broker(self) -> EffectiveLimit:
        return NO_LIMIT

    def of_topic(self, topic: TopicName) -> EffectiveLimit:
        return NO_LIMIT


class Registry:
    """Stands where the broker's registry stands."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.partitioned: dict[str, int] = {}

    def partitions(self, name: TopicName) -> int:
        return self.partitioned.get(name.full, 0)

    def get(self, name: TopicName) -> Topic | None:
        return self.engine.topics.get(name.full)


class VirtualBroker:
    """As much of a broker as explain looks at, and the clock."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.engine = Engine(
            self,  # type: ignore[arg-type]
            policies=EnginePolicies(
                limit_of=lambda topic, subscription: (
                    (
                        self.limits.of_topic(topic.name)
                        if subscription is None
                        else self.limits.of_subscription(topic.name, subscription)
                    ).limit
                )
            ),
            now_ns=START_NS,
            now_ms=START_MS,
        )
        self.current_dispatch_limits = CurrentDispatchLimits(self.limits, self.engine)
        self.current_publish_limits = CurrentPublishLimits(NoPublishLimits())
        self.topic_sweeps = SimpleNamespace()
        self.policies = SimpleNamespace(
            shown_quotas=lambda _: NO_QUOTAS, applied_retention=lambda _: Retention(0, 0)
        )
        self.logs = ManagedLogs(main=None, telemetry=None)  # type: ignore[arg-type]
        self.started_ms = START_MS
        self.registry = Registry(self.engine)
        self.info = SimpleNamespace(broker_id="localhost:8080")
        self.adaptive = None
        self.disk = SimpleNamespace(
            facts=DiskFacts,
            full_ns=lambda _: 0,
            full_in_s=lambda: None,
            growth=SimpleNamespace(is_soon=lambda _: False),
        )
        self.topic_growth = SimpleNamespace(growths=TopicGrowths())
        self.committer = SimpleNamespace(latency=SimpleNamespace(facts=CommitLatencyFacts))
        self.connection_admission = SimpleNamespace(sentence="", refused_count=0)
        self.rates: dict[str, float] = {}
        self.clients: list[Client] = []
        self.work = SimpleNamespace(
            give_way=lambda units, _: self.give_way(units),
            grant=lambda units, _: self.grant(units),
            slice_number=0,
        )
        self.audit = SimpleNamespace(listeners=[])
        self.observer = Observer(self)  # type: ignore[arg-type]
        self.turn_ticks = 1
        """The broker is so slow that it comes to send only every so many ticks."""
        self._credit: dict[str, float] = {}
        self._ticks = 0

    # What the engine asks for.

    def append(self, log: Any, message_count: int, log_ms: int, body: bytes) -> int:
        return int(log.append(self.engine.now_ms))

    def read(self, subscription: Subscription, ordinal: int) -> None:
        for wanted in range(ordinal, min(ordinal + 500, subscription.topic.log.end)):
            self.engine.cache.put(subscription.topic.cache, wanted, BODY)
        subscription.read_completed()

    def acks_changed(self, subscription: Subscription) -> None:
        subscription.acks_dirty = False

    def may_release(self, _topic: Topic) -> None: ...

    def policies_changed(self, _topic: Topic) -> None: ...

    def topic_unloaded(self, _topic: Topic) -> None: ...

    def work_pending(self) -> None: ...

    # What explain asks for.

    def begin_turn(self) -> None: ...

    async def give_way(self, units: int) -> None:
        await asyncio.sleep(0)

    async def grant(self, units: int) -> int:
        await self.give_way(units)
        return units

    # What a test asks for.

    def topic(self, name: str, publish_per_s: float = 0) -> Topic:
        full = parse_topic(name)
        topic = self.engine.topics.get(full.full)
        if topic is None:
            topic = self.engine.load_topic(full, self._log())
        if publish_per_s:
            self.rates[full.full] = publish_per_s
        return topic

    def _log(self) -> Any:
        """A stand-in: it has what explain looks at."""
        return FakeLog(len(self.engine.topics) + 1)

    def subscription(
        self, topic: Topic, name: str = "s", *, limit: int | None = None
    ) -> Subscription:
        if limit is not None:
            self.limits.messages[(topic.name.full, name)] = limit
        end = topic.log.end
        return topic.add_subscription(name, AckSet(end - 1), cursor_id=1)

    def client(self, subscription: Subscription, rate: float, queue: int = 1000) -> Client:
        client = Client(subscription, rate, queue)
        self.clients.append(client)
        return client

    def limit_topic(self, topic: Topic, messages: int) -> None:
        self.limits.messages[topic.name.full] = messages
        self.engine.reload_limits(topic)

    def limit_broker(self, messages: int) -> None:
        self.limits.messages["broker"] = messages
        self.engine.set_broker_limit(self.limits.of_broker().limit)
        for topic in self.engine.live_topics():
            self.engine.reload_limits(topic)

    def publish(self, topic: Topic, count: int) -> None:
        for _ in range(count):
            ordinal = self.append(topic.log, 1, 0, BODY)
            self.engine.cache.put(topic.cache, ordinal, BODY)
        topic.publishing.visible = topic.log.end
        for subscription in topic.subscriptions.values():
            if not subscription.throttled:
                subscription.wake()

    def run(self, seconds: float) -> None:
        """Let time pass, with a round of the history each second."""
        end = self._ticks + round(seconds * NS_PER_S / TICK_NS)
        self._flush()
        while self._ticks < end:
            self._ticks += 1
            at_ns = START_NS + self._ticks * TICK_NS
            if self.turn_ticks == 1:
                self._advance(at_ns)
            else:
                self._turn(at_ns)
            for name, rate in self.rates.items():
                credit = self._credit.get(name, 0.0) + rate * TICK_NS / NS_PER_S
                self.publish(self.engine.topics[name], int(credit))
                self._credit[name] = credit % 1
            for client in self.clients:
                client.tick(self._ticks)
            if self._ticks % self.turn_ticks == 0:
                self._flush()
            if self._ticks % 100 == 0:
                self.remember()

    def remember(self) -> None:
        if self.observer.begin_round():
            for topic in self.engine.topics.values():
                self.observer.observe(topic)
                for subscription in topic.subscriptions.values():
                    self.observer.observe_subscription(subscription)

    def _advance(self, until_ns: int) -> None:
        engine = self.engine
        while (wake_ns := engine.next_wake_ns()) is not None and wake_ns < until_ns:
            self._turn(max(wake_ns, engine.now_ns))
            self._flush()
        self._turn(until_ns)

    def _turn(self, now_ns: int) -> None:
        now_ms = START_MS + (now_ns - START_NS) // NS_PER_MS
        self.engine.begin_turn(now_ns, now_ms, now_ms)

    def _flush(self) -> None:
        while self.engine.flush():
            pass

    def report(self, subscription: Subscription) -> SubscriptionReport:
        reports = DeliveryReports(self.engine, self.observer.history, self.current_dispatch_limits)
        return at_once(reports.report([subscription]))
