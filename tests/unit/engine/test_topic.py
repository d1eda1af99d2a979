"""Topics: names, fencing, unused topics and what they count."""

from __future__ import annotations

import pytest

from headgate.engine.errors import ProducerBusyError, ProducerFencedError, TopicFencedError
from headgate.engine.producer import Producer
from headgate.engine.types import AccessMode
from tests.unit.engine.harness import FakePort, Rig
from tests.unit.work_meter import bytecodes


def test_names_are_unique_and_exclusive_means_alone() -> None:
    rig = Rig()
    with pytest.raises(ProducerBusyError, match="already connected"):
        rig.topic.add_producer(Producer(2, "p", FakePort()))
    alone = Producer(3, "alone", FakePort(), access_mode=AccessMode.EXCLUSIVE)
    with pytest.raises(ProducerFencedError):
        rig.topic.add_producer(alone)
    rig.topic.remove_producer(rig.producer)
    rig.topic.add_producer(alone)
    with pytest.raises(ProducerBusyError, match="exclusive"):
        rig.topic.add_producer(Producer(4, "q", FakePort()))


def test_a_producer_joins_in_constant_work() -> None:
    rig = Rig()
    alone = bytecodes(lambda: rig.topic.add_producer(Producer(2, "q", FakePort())))
    for number in range(2_000):
        rig.topic.add_producer(Producer(number, f"p{number}", FakePort()))
    among = bytecodes(lambda: rig.topic.add_producer(Producer(3, "r", FakePort())))
    assert among <= alone * 2


def test_fencing_closes_everybody() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, consumer_id=9)
    rig.topic.fence()
    assert rig.port.closed == [1]
    assert port.closed == [9]
    assert not subscription.consumers
    with pytest.raises(TopicFencedError):
        rig.topic.add_producer(Producer(2, "q", FakePort()))


def test_counts_and_sizes() -> None:
    rig = Rig()
    rig.publish(2, messages=3, body=b"1234")
    assert (rig.topic.messages_in(), rig.topic.bytes_in()) == (6, 8)
    assert rig.topic.storage_bytes() == 8
    assert rig.topic.counters() == (6, 8, 2, 0)
    rig.log.first = 1
    assert rig.topic.storage_bytes() == 4
    rig.topic.entries_read += 3
    assert rig.topic.counters()[2:] == (2, 3)


def test_the_slowest_stored_subscription_decides_what_is_kept() -> None:
    rig = Rig()
    rig.publish(5)
    assert rig.topic.slowest_durable_ordinal() == 5
    rig.subscribe("slow", at=2)
    rig.subscribe("fast", at=4)
    rig.subscribe("reader", at=0, durable=False)
    assert rig.topic.slowest_durable_ordinal() == 2


def test_durable_subscriptions_are_counted() -> None:
    rig = Rig()
    rig.subscribe("one")
    rig.subscribe("reader", durable=False)
    rig.subscribe("two")
    assert rig.topic.durable_count == 2
    rig.topic.remove_subscription("reader")
    assert rig.topic.durable_count == 2
    rig.topic.remove_subscription("one")
    assert rig.topic.durable_count == 1


def test_a_topic_is_idle_since_its_last_client_left() -> None:
    rig = Rig()
    assert rig.topic.has_clients()
    rig.advance(1_000)
    rig.topic.remove_producer(rig.producer)
    assert not rig.topic.has_clients()
    assert rig.topic.idle_since_ns == rig.engine.now_ns
    subscription = rig.subscribe()
    assert not rig.topic.has_clients()
    consumer, _ = rig.consumer(subscription)
    assert rig.topic.has_clients()
    rig.advance(1_000)
    subscription.remove_consumer(consumer)
    assert not rig.topic.has_clients()
    assert rig.topic.idle_since_ns == rig.engine.now_ns
    assert subscription.idle_since_ms == rig.engine.log_ms


def test_what_a_removed_subscription_sent_stays_counted() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(3, body=b"12")
    consumer, _ = rig.consumer(subscription, permits=10)
    subscription.remove_consumer(consumer)
    rig.topic.remove_subscription("s")
    assert (rig.topic.messages_out_removed, rig.topic.bytes_out_removed) == (3, 6)


def test_reports_read_time_and_rates_of_the_turn() -> None:
    rig = Rig()
    rig.topic.rates.sample(rig.topic.counters(), rig.topic.now_ns)
    rig.publish(4, messages=3, body=b"12")
    rig.advance(2_000)
    topic, engine = rig.topic, rig.engine
    assert (topic.now_ns, topic.now_ms, topic.log_ms) == (
        engine.now_ns,
        engine.now_ms,
        engine.log_ms,
    )
    assert topic.current_rates() == (6.0, 4.0, 2.0, 0.0)
    assert not topic.batches_count_as_one
    engine.throttle_counts_entries = True
    assert topic.batches_count_as_one
