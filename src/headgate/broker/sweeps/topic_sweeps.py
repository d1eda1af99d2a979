"""The sweeps that read every live topic and change none."""

from __future__ import annotations

from typing import Protocol

from headgate.base.drained import drained
from headgate.base.work_units import SUBSCRIPTION_RECORDED, SUBSCRIPTIONS_UNCHANGED_PER_UNIT
from headgate.broker.slices import Pace, Turns, live_topics
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic


class TopicObserver(Protocol):
    """Records what topics did, in rounds."""

    def begin_round(self) -> bool:
        """Begin a round if one is due; returns whether it began. The sweep calls this about once a
        second."""

    def forget_some(self) -> bool:
        """Forget some of what has ended; returns whether there is more to do in this round."""

    def observe(self, topic: Topic) -> None:
        """Record a live topic without its subscriptions: once in each round."""

    def observe_subscription(self, subscription: Subscription) -> bool:
        """Record a subscription: once in each round. Returns whether it did anything since the
        last round."""


class TopicSweeps:
    """Samples the rates of topics, and passes topics to an observer."""

    def __init__(self, engine: Engine, turns: Turns) -> None:
        self._engine = engine
        self._turns = turns
        self.observer: TopicObserver | None = None
        """Records what topics and subscriptions did; a layer above the broker assigns it."""

    async def sample_rates(self) -> None:
        """Take the samples from which stats compute rates."""
        self._turns.begin_turn()
        pace = Pace(self._turns)
        async for topic in live_topics(self._engine, self._turns):
            now_ns = self._engine.now_ns
            topic.rates.sample(topic.counters(), now_ns)
            for producer in drained(list(topic.producers.values())):
                producer.rates.sample(producer.counters(), self._engine.now_ns)
                if pace.spent(1):
                    await pace.give_way()
            for subscription in drained(list(topic.subscriptions.values())):
                subscription.rates.sample(subscription.counters(), self._engine.now_ns)
                for consumer in drained(list(subscription.consumers)):
                    consumer.rates.sample(consumer.counters(), self._engine.now_ns)
                    if pace.spent(1):
                        await pace.give_way()
                if pace.spent(1):
                    await pace.give_way()

    async def observe(self) -> None:
        """Pass each topic to the observer, if there is one and a round is due."""
        observer = self.observer
        if observer is None or not observer.begin_round():
            return
        self._turns.begin_turn()
        pace = Pace(self._turns)
        while observer.forget_some():
            await pace.give_way()
        unchanged = 0
        async for topic in live_topics(self._engine, self._turns):
            observer.observe(topic)
            for subscription in drained(list(topic.subscriptions.values())):
                has_changed = not subscription.removed and observer.observe_subscription(
                    subscription
                )
                unchanged += not has_changed
                if not has_changed and unchanged % SUBSCRIPTIONS_UNCHANGED_PER_UNIT:
                    continue
                if pace.spent(SUBSCRIPTION_RECORDED if has_changed else 1):
                    await pace.give_way()
