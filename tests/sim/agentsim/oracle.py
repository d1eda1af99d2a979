"""Headgate's own broker, seen only through statistics as Apache Pulsar 4.0 has them.

One run plays a situation in virtual time. The broker measures its account; beside it, looks at
several periods at once, jittered as the agent's, feed a history each. Both then judge the same
time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.looks import LimitsLook
from headgate.agent.reading import topic_look
from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.delivery import SETTLING, Instant
from headgate.flow.limits.precedence import NO_LIMIT
from headgate.observe.stats.fields import StatsOptions
from headgate.observe.stats.topic import consumer_stats, subscription_stats
from tests.sim.agentsim.situations import Limit, Reader, Situation
from tests.unit.broker.virtual import BODY, START_NS, TICK_NS, Client, VirtualBroker

TICKS_PER_S = NS_PER_S // TICK_NS
HEADGATE_ONLY = ("headgate", "oldestBacklogMessageAgeSeconds")
"""Fields of a subscription that Pulsar 4.0 does not have."""


class HoardingClient(Client):
    """Takes messages and acknowledges none."""

    def tick(self, index: int) -> None:
        super().tick(index - index % 10 + 1)  # never the tick in which it acknowledges
        self.done.clear()


@dataclass(frozen=True)
class Answer:
    """What was judged of one subscription at one instant."""

    situation: str
    factor: float
    subscription: str
    period_s: float
    at_s: float
    measured: str
    inferred: str
    is_borderline: bool = False

    @property
    def is_right(self) -> bool:
        return self.measured == self.inferred


class Run:
    """One situation, its rates multiplied by ``factor``."""

    def __init__(
        self,
        situation: Situation,
        factor: float,
        periods_s: Sequence[float],
        *,
        seconds: float = 300.0,
        seed: int = 1,
    ) -> None:
        self.situation, self.factor, self.seconds = situation, factor, seconds
        self.chance = random.Random(f"{seed} {situation.name} {factor}")
        self.broker = VirtualBroker()
        self.histories = {period_s: ClusterHistory("c") for period_s in periods_s}
        self.subscriptions: list[Subscription] = []
        self.leaving: list[tuple[int, Client]] = []
        self.later: list[tuple[int, Limit]] = []
        self.ticks = 0
        self._prepare()

    def _prepare(self) -> None:
        broker, situation = self.broker, self.situation
        for number in range(situation.topics):
            topic = broker.topic(f"{situation.name}-{number}")
            if not situation.burst_s:
                broker.rates[topic.name.full] = situation.publish_per_s * self.factor
            for name, readers in situation.readers.items():
                subscription = broker.subscription(topic, name)
                self.subscriptions.append(subscription)
                for reader in readers:
                    self._connect(subscription, reader)
        for limit in situation.limits:
            if limit.at:
                self.later.append((self._tick_of(limit.at), limit))
            else:
                self._set(limit)

    def _tick_of(self, part: float) -> int:
        return round(part * self.seconds * TICKS_PER_S)

    def _connect(self, subscription: Subscription, reader: Reader) -> None:
        kind = HoardingClient if reader.does == "hoard" else Client
        rate = reader.per_s if reader.per_s >= 1e6 else reader.per_s * self.factor
        client = kind(subscription, rate, reader.queue, reader.kind)
        client.consumer.name = f"c{len(self.broker.clients)}"
        self.broker.clients.append(client)
        if reader.leaves_at < 1.0:
            self.leaving.append((self._tick_of(reader.leaves_at), client))

    def _set(self, limit: Limit) -> None:
        limits, policy = self.broker.limits, limit.policy(self.factor)
        for subscription in self.subscriptions:
            topic = subscription.topic
            place = (topic.name.full, subscription.name)
            limits.policies[{0: place, 1: topic.name.full, 2: "broker"}[int(limit.level)]] = policy
        engine = self.broker.engine
        engine.set_broker_limit(limits.of_broker().limit)
        for topic in list(engine.topics.values()):
            engine.reload_limits(topic)

    def play(self, judged_at_s: Sequence[float]) -> Iterator[Answer]:
        """Play the run; the answers at each of these seconds."""
        due = dict.fromkeys(self.histories, 0)
        stops = [round(at_s * TICKS_PER_S) for at_s in judged_at_s]
        burst = 0
        while stops:
            if self.situation.burst_s and self.ticks >= burst:
                burst = self.ticks + round(self.situation.burst_s * TICKS_PER_S)
                amount = self.situation.burst_s * self.situation.publish_per_s * self.factor
                for topic in list(self.broker.engine.topics.values()):
                    self.broker.publish(topic, round(amount))
            for period_s, at in due.items():
                if self.ticks >= at:
                    self._look(period_s)
                    due[period_s] = self.ticks + max(
                        1, round(self.chance.uniform(0.5, 1.5) * period_s * TICKS_PER_S)
                    )
            self._change()
            if self.ticks >= stops[0]:
                yield from self._answers(stops.pop(0) / TICKS_PER_S)
                continue
            events = [*due.values(), stops[0], *(at for at, _ in (*self.later, *self.leaving))]
            until = min(at for at in (*events, burst or stops[0]) if at > self.ticks)
            self.broker.run((until - self.ticks) / TICKS_PER_S)
            self.ticks = until

    def _change(self) -> None:
        for at, limit in [each for each in self.later if each[0] <= self.ticks]:
            self.later.remove((at, limit))
            self._set(limit)
        for at, client in [each for each in self.leaving if each[0] <= self.ticks]:
            self.leaving.remove((at, client))
            self.broker.clients.remove(client)
            client.subscription.remove_consumer(client.consumer)
        if self.ticks >= self._tick_of(self.situation.publishes_until):
            self.broker.rates.clear()

    def _look(self, period_s: float) -> None:
        history = self.histories[period_s]
        now_ns = START_NS + self.ticks * TICK_NS
        for topic in self.broker.engine.topics.values():
            name = topic.name.full
            history.note_look(topic_look(self._stats(topic), name, now_ns, "b"))
        for name in history.limits_wanted(10, now_ns):
            history.note_limits(self._limits(name, now_ns))

    def _limits(self, name: str, now_ns: int) -> LimitsLook:
        topic, limits = self.broker.engine.topics[name], self.broker.limits
        by_name = {s: limits.of_subscription(topic.name, s) for s in topic.subscriptions}
        dispatch = NO_LIMIT, limits.of_topic(topic.name), limits.of_broker()
        return LimitsLook(name, now_ns, dispatch, by_name, NO_LIMIT, ())

    def _stats(self, topic: Topic) -> bytes:
        broker = self.broker
        subscriptions: dict[str, Any] = {}
        for name, subscription in topic.subscriptions.items():
            found = subscription_stats(
                broker.current_dispatch_limits,
                subscription,
                StatsOptions(),
                broker.current_dispatch_limits.shared_limits_of(topic),
                skew_ms=0,
            )
            found.consumers.extend(
                consumer_stats(consumer, broker.engine.now_ns)
                for consumer in subscription.consumers
            )
            subscriptions[name] = msgspec.to_builtins(found)
            for field in HEADGATE_ONLY:
                subscriptions[name].pop(field, None)
        published = topic.log.end
        return msgspec.json.encode(
            {
                "msgInCounter": published,
                "bytesInCounter": published * len(BODY),
                "subscriptions": subscriptions,
            }
        )

    def _answers(self, at_s: float) -> Iterator[Answer]:
        now_ns = START_NS + self.ticks * TICK_NS
        for subscription in self.subscriptions:
            measured = self.broker.report(subscription).verdict
            if measured == SETTLING:
                continue  # the broker itself does not know yet
            name = subscription.topic.name.full
            for period_s, history in self.histories.items():
                found = history.topic(name, Instant(now_ns, self.broker.engine.now_ms))
                inferred = next(
                    report["verdict"]
                    for report in found["subscriptions"]
                    if report["subscription"] == subscription.name
                )
                yield Answer(
                    self.situation.name, self.factor, f"{name} {subscription.name}", period_s,
                    at_s, measured, inferred, self.situation.is_borderline,
                )  # fmt: skip
