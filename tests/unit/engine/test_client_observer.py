"""An observer learns of each client that comes or goes, and of nothing else."""

from __future__ import annotations

import pytest

from headgate.engine.client_observer import (
    Client,
    ClientSubscription,
    ClientTopic,
    NoClientObserver,
)
from headgate.engine.consumer import Consumer
from headgate.engine.errors import ConsumerBusyError
from headgate.engine.producer import Producer
from headgate.engine.types import SubscriptionType
from tests.unit.engine.harness import FakePort, Rig


class Noted:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, int]] = []

    def consumer_added(self, subscription: ClientSubscription, consumer: Client, /) -> None:
        self.events.append(("+consumer", consumer.name, len(subscription.consumers)))

    def consumer_removed(self, subscription: ClientSubscription, consumer: Client, /) -> None:
        self.events.append(("-consumer", consumer.name, len(subscription.consumers)))

    def producer_added(self, topic: ClientTopic, producer: Client, /) -> None:
        self.events.append(("+producer", producer.name, len(topic.producers)))

    def producer_removed(self, topic: ClientTopic, producer: Client, /) -> None:
        self.events.append(("-producer", producer.name, len(topic.producers)))


def watched() -> tuple[Rig, Noted]:
    rig, noted = Rig(), Noted()
    rig.engine.client_observer = noted
    return rig, noted


def test_each_client_that_comes_and_goes() -> None:
    rig, noted = watched()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, name="c", permits=10)
    rig.publish(5)
    other = Producer(2, "q", FakePort())
    rig.topic.add_producer(other)
    subscription.remove_consumer(consumer)
    subscription.remove_consumer(consumer)
    rig.topic.remove_producer(other)
    rig.topic.remove_producer(other)
    assert noted.events == [
        ("+consumer", "c", 1), ("+producer", "q", 2), ("-consumer", "c", 0), ("-producer", "q", 1),
    ]  # fmt: skip


def test_one_that_is_refused_did_not_come() -> None:
    rig, noted = watched()
    subscription = rig.subscribe()
    rig.consumer(subscription, name="first")
    with pytest.raises(ConsumerBusyError):
        subscription.add_consumer(Consumer(2, "c", FakePort()), SubscriptionType.EXCLUSIVE)
    assert [name for _, name, _ in noted.events] == ["first"]


def test_the_last_consumer_of_a_reader_goes_with_its_subscription() -> None:
    rig, noted = watched()
    subscription = rig.subscribe(durable=False)
    consumer, _ = rig.consumer(subscription, name="r")
    subscription.remove_consumer(consumer)
    assert noted.events[-1] == ("-consumer", "r", 0)
    assert subscription.removed


def test_an_unload_disconnects_all() -> None:
    rig, noted = watched()
    rig.consumer(rig.subscribe(), name="c")
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    assert noted.events[1:] == [("-producer", "p", 0), ("-consumer", "c", 0)]


def test_without_an_observer_nothing_happens() -> None:
    rig = Rig()
    assert isinstance(rig.engine.client_observer, NoClientObserver)
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription)
    subscription.remove_consumer(consumer)
    rig.topic.remove_producer(rig.producer)
