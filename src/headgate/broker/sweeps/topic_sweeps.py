"""The sweeps that read every live topic and change none."""

from __future__ import annotations

from typing import Protocol

from headgate.broker.slices import Turns, live_topic_slices
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic


class TopicObserver(Protocol):
    """Records what topics did, in rounds."""

    def begin_round(self) -> bool:
        """Begin a round if one is due; returns whether it began. The sweep calls this about once a
        second."""

    def observe(self, topic: Topic) -> None:
        """Record a live topic: once in each round."""


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
        async for topics in live_topic_slices(self._engine, self._turns):
            for topic in topics:
                now_ns = self._engine.now_ns
                topic.rates.sample(topic.counters(), now_ns)
                for producer in topic.producers.values():
                    producer.rates.sample(producer.counters(), now_ns)
                for subscription in topic.subscriptions.values():
                    subscription.rates.sample(subscription.counters(), now_ns)
                    for consumer in subscription.consumers:
                        consumer.rates.sample(consumer.counters(), now_ns)

    async def observe(self) -> None:
        """Pass each topic to the observer, if there is one and a round is due."""
        if self.observer is None or not self.observer.begin_round():
            return
        self._turns.begin_turn()
        async for topics in live_topic_slices(self._engine, self._turns):
            for topic in topics:
                self.observer.observe(topic)
