"""Sweeps over live topics: an observer gets each of them once in a round that it wants."""

from __future__ import annotations

import asyncio

from headgate.broker.sweeps.topic_sweeps import TopicSweeps
from headgate.engine.topic import Topic
from tests.unit.broker.virtual import VirtualBroker


class Noting:
    """An observer that skips every other round."""

    def __init__(self) -> None:
        self.rounds = 0
        self.seen: list[str] = []

    def begin_round(self) -> bool:
        self.rounds += 1
        return self.rounds % 2 == 1

    def observe(self, topic: Topic) -> None:
        self.seen.append(topic.name.local)


def test_each_topic_is_shown_once_in_a_round_that_is_due() -> None:
    broker, noting = VirtualBroker(), Noting()
    for name in ("a", "b"):
        broker.topic(f"persistent://public/default/{name}")
    sweeps = TopicSweeps(broker.engine, broker)
    asyncio.run(sweeps.observe())
    sweeps.observer = noting
    for _ in range(3):
        asyncio.run(sweeps.observe())
    assert (noting.rounds, noting.seen) == (3, ["a", "b", "a", "b"])


def test_rates_come_from_two_samples() -> None:
    broker = VirtualBroker()
    topic = broker.topic("persistent://public/default/a")
    sweeps = TopicSweeps(broker.engine, broker)
    asyncio.run(sweeps.sample_rates())
    broker.publish(topic, 100)
    broker.run(10)
    asyncio.run(sweeps.sample_rates())
    messages_per_s = topic.rates.per_second(topic.counters(), broker.engine.now_ns)[0]
    assert 5 < messages_per_s < 15
