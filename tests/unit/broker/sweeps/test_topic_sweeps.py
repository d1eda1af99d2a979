"""Sweeps over live topics: an observer gets each of them once in a round that it wants."""

from __future__ import annotations

import asyncio

from headgate.base.work_units import (
    PIECE_UNITS,
    SUBSCRIPTION_RECORDED,
    SUBSCRIPTIONS_UNCHANGED_PER_UNIT,
)
from headgate.broker.sweeps.topic_sweeps import TopicSweeps
from headgate.engine.subscription import Subscription
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

    def forget_some(self) -> bool:
        return False

    def observe(self, topic: Topic) -> None:
        self.seen.append(topic.name.local)

    def observe_subscription(self, subscription: Subscription) -> bool:
        return False


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


class Turns:
    """Notes how much is done in each turn."""

    def __init__(self, broker: VirtualBroker) -> None:
        self.broker = broker
        self.turns = [0]

    def begin_turn(self) -> None: ...

    async def give_way(self, units: int) -> None:
        assert units == PIECE_UNITS
        self.turns.append(0)

    async def grant(self, units: int) -> int:
        await self.give_way(units)
        return units


class Counting(Noting):
    """An observer of subscriptions of which each has changed."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self.turns = turns

    def observe_subscription(self, subscription: Subscription) -> bool:
        self.turns.turns[-1] += 1
        return True


def test_a_topic_with_many_subscriptions_is_looked_at_in_pieces() -> None:
    broker = VirtualBroker()
    topic = broker.topic("persistent://public/default/wide")
    for number in range(500):
        broker.subscription(topic, f"s{number}")
    turns = Turns(broker)
    sweeps = TopicSweeps(broker.engine, turns)
    sweeps.observer = Counting(turns)
    asyncio.run(sweeps.observe())
    assert sum(turns.turns) == 500
    assert max(turns.turns) == -(-PIECE_UNITS // SUBSCRIPTION_RECORDED)
    turns.turns = [0]
    asyncio.run(sweeps.sample_rates())
    assert len(turns.turns) >= 500 // PIECE_UNITS


class Idle(Counting):
    """An observer of subscriptions of which none has changed."""

    def observe_subscription(self, subscription: Subscription) -> bool:
        super().observe_subscription(subscription)
        return False


def test_subscriptions_that_did_nothing_cost_a_part_of_a_unit() -> None:
    broker = VirtualBroker()
    topic = broker.topic("persistent://public/default/wide")
    for number in range(1_500):
        broker.subscription(topic, f"s{number}")
    turns = Turns(broker)
    sweeps = TopicSweeps(broker.engine, turns)
    sweeps.observer = Idle(turns)
    asyncio.run(sweeps.observe())
    assert sum(turns.turns) == 1_500
    assert max(turns.turns) == PIECE_UNITS * SUBSCRIPTIONS_UNCHANGED_PER_UNIT


class Forgetting(Counting):
    """An observer that has something to forget a few times."""

    left = 3

    def forget_some(self) -> bool:
        self.left -= 1
        return self.left > 0


def test_what_has_ended_is_forgotten_with_pauses() -> None:
    turns = Turns(VirtualBroker())
    sweeps = TopicSweeps(turns.broker.engine, turns)
    sweeps.observer = observer = Forgetting(turns)
    asyncio.run(sweeps.observe())
    assert observer.left == 0
    assert len(turns.turns) == 3
