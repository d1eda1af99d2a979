"""Subscription types, acknowledgements and redelivery as the real client uses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pulsar
import pytest

from tests.service.clients import (
    EARLIEST,
    FAILOVER,
    SHARED,
    client_of,
    data,
    full,
    id_of,
    is_silent,
    receive,
    send_all,
    texts,
    wait_until,
)
from tests.service.measuring import Rest, topic_path
from tests.service.process import BrokerProcess


@pytest.fixture(scope="module")
def client(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    with client_of(broker.service_url) as made:
        yield made


@pytest.fixture(scope="module")
def other(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    """A client on a connection of its own."""
    with client_of(broker.service_url) as made:
        yield made


def backlog(rest: Rest, topic: str, subscription: str = "s") -> int:
    found: int = rest.topic(topic)["subscriptions"][subscription]["msgBacklog"]
    return found


def batching(client: pulsar.Client, topic: str, count: int) -> pulsar.Producer:
    """A producer of batches of so many messages."""
    return client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=count,
        batching_max_publish_delay_ms=5_000,
    )


# Types ------------------------------------------------------------------------------------------


def test_exclusive_means_one(client: pulsar.Client, other: pulsar.Client) -> None:
    topic = full("exclusive")
    consumer = client.subscribe(topic, "s")
    with pytest.raises(pulsar.ConsumerBusy):
        other.subscribe(topic, "s")
    with pytest.raises(pulsar.ConsumerBusy):
        other.subscribe(topic, "s", SHARED)
    assert other.subscribe(topic, "another") is not None
    send_all(client.create_producer(topic), 3)
    assert data(receive(consumer, 3)) == texts(3)
    consumer.close()
    # Nothing was acknowledged, so the next one gets all of it.
    assert data(receive(other.subscribe(topic, "s"), 3)) == texts(3)


def test_shared_gives_each_message_to_one(client: pulsar.Client, other: pulsar.Client) -> None:
    topic = full("shared")
    makers = (client, client, other)
    consumers = [each.subscribe(topic, "s", SHARED, receiver_queue_size=40) for each in makers]
    send_all(client.create_producer(topic), 90)
    found = Counter[str]()

    def take_until(count: int) -> None:
        """Take from the two that live: how many each gets hangs on how the messages arrive."""

        def taken() -> bool:
            for consumer in consumers[1:]:
                with suppress(pulsar.Timeout):
                    message = consumer.receive(20)
                    found[message.data().decode()] += 1
                    consumer.acknowledge(message)
            return found.total() >= count

        wait_until(taken)

    # The first takes none out of its queue, so it never holds more than the queue's 40.
    take_until(90 - 40)
    # What one holds that leaves goes to the others.
    consumers[0].close()
    take_until(90)
    assert sorted(found) == sorted(texts(90))
    assert set(found.values()) == {1}


def test_failover_hands_over_in_order(client: pulsar.Client, other: pulsar.Client) -> None:
    topic = full("failover")
    consumers = {
        name: maker.subscribe(topic, "s", FAILOVER, consumer_name=name)
        for name, maker in (("a", client), ("b", other))
    }
    producer = client.create_producer(topic)
    send_all(producer, 10)
    (active,) = [name for name, each in consumers.items() if not is_silent(each)]
    passive = "b" if active == "a" else "a"
    # m0 was looked at above.
    messages = receive(consumers[active], 9)
    assert data(messages) == texts(10, 1)
    consumers[active].acknowledge_cumulative(messages[3])
    assert is_silent(consumers[passive])
    consumers[active].close()
    assert data(receive(consumers[passive], 5)) == texts(10, 5)
    producer.send(b"after")
    assert data(receive(consumers[passive], 1)) == ["after"]


def test_key_shared_is_refused_in_words(client: pulsar.Client) -> None:
    with pytest.raises(pulsar.PulsarException):
        client.subscribe(full("key-shared"), "s", pulsar.ConsumerType.KeyShared)
    # The connection serves on.
    assert client.subscribe(full("key-shared"), "s", SHARED) is not None


# Acknowledging ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_a_cumulative_acknowledgement(client: pulsar.Client, rest: Rest, batched: bool) -> None:
    topic = full(f"cumulative-{batched}")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=batched, batching_max_messages=4)
    send_all(producer, 12)
    messages = receive(consumer, 12)
    # The sixth message stands in the middle of the second batch, which remains.
    consumer.acknowledge_cumulative(messages[5])
    left = 8 if batched else 6
    wait_until(lambda: backlog(rest, topic) == (2 if batched else 6))
    consumer.close()
    consumer = client.subscribe(topic, "s")
    assert data(receive(consumer, left)) == texts(12, 12 - left)


@pytest.mark.parametrize("index_acks", [False, True])
def test_messages_of_a_batch_are_acknowledged_if_the_client_says_so(
    client: pulsar.Client, rest: Rest, index_acks: bool
) -> None:
    """A client without ``batch_index_ack_enabled`` acknowledges a batch when all of it is done."""
    topic = full(f"batch-acks-{index_acks}")
    consumer = client.subscribe(topic, "s", SHARED, batch_index_ack_enabled=index_acks)
    send_all(batching(client, topic, 5), 10)
    messages = receive(consumer, 10)
    for message in [*messages[:5], messages[6]]:
        consumer.acknowledge(message)
    wait_until(lambda: backlog(rest, topic) == 1)
    own = rest.topic(topic)["subscriptions"]["s"]["headgate"]
    assert own["backlogMessages"] == own["unackedMessages"] == (4 if index_acks else 5)
    consumer.close()
    consumer = client.subscribe(topic, "s", SHARED)
    left = texts(10, 5)
    assert data(receive(consumer, 4 if index_acks else 5)) == [
        text for text in left if not index_acks or text != data(messages)[6]
    ]
    assert is_silent(consumer)


def test_a_cumulative_acknowledgement_within_a_batch(client: pulsar.Client, rest: Rest) -> None:
    topic = full("cumulative-index")
    consumer = client.subscribe(topic, "s", batch_index_ack_enabled=True)
    producer = batching(client, topic, 4)
    send_all(producer, 12)
    consumer.acknowledge_cumulative(receive(consumer, 12)[5])
    wait_until(lambda: backlog(rest, topic) == 2)
    consumer.redeliver_unacknowledged_messages()
    assert data(receive(consumer, 6)) == texts(12, 6)
    consumer.close()
    consumer = client.subscribe(topic, "s", batch_index_ack_enabled=True)
    messages = receive(consumer, 6)
    assert data(messages) == texts(12, 6)
    consumer.acknowledge_cumulative(messages[-1])
    wait_until(lambda: backlog(rest, topic) == 0)


def test_permits_do_not_drift_with_batches_that_come_again_in_part(
    client: pulsar.Client, rest: Rest
) -> None:
    """This client returns permits for acknowledged messages of a batch, which cost none."""
    topic = full("drift")
    consumer = client.subscribe(
        topic, "s", SHARED, batch_index_ack_enabled=True, receiver_queue_size=20
    )
    producer = batching(client, topic, 10)
    send_all(producer, 10)
    messages = receive(consumer, 10)
    for message in messages[:9]:
        consumer.acknowledge(message)
    wait_until(lambda: rest.topic(topic)["subscriptions"]["s"]["unackedMessages"] == 1)
    for _ in range(40):
        consumer.redeliver_unacknowledged_messages()
        assert data(receive(consumer, 1)) == texts(10, 9)
    stats = rest.topic(topic)["subscriptions"]["s"]
    assert stats["consumers"][0]["availablePermits"] <= 20
    assert stats["unackedMessages"] == stats["consumers"][0]["unackedMessages"] == 1
    send_all(producer, 500)
    for message in receive(consumer, 500):
        consumer.acknowledge(message)
    wait_until(lambda: backlog(rest, topic) == 1)


def test_a_negative_acknowledgement_brings_what_is_left_of_a_batch(
    client: pulsar.Client, rest: Rest
) -> None:
    topic = full("negative-index")
    consumer = client.subscribe(
        topic, "s", SHARED, batch_index_ack_enabled=True, negative_ack_redelivery_delay_ms=50
    )
    send_all(batching(client, topic, 5), 5)
    messages = receive(consumer, 5)
    for message in messages[:3]:
        consumer.acknowledge(message)
    wait_until(lambda: rest.topic(topic)["subscriptions"]["s"]["unackedMessages"] == 2)
    for count in (1, 2):
        for message in messages[3:]:
            consumer.negative_acknowledge(message)
        messages[3:] = receive(consumer, 2)
        assert data(messages[3:]) == texts(5, 3)
        assert [message.redelivery_count() for message in messages[3:]] == [count, count]
    for message in messages[3:]:
        consumer.acknowledge(message)
    wait_until(lambda: backlog(rest, topic) == 0)


def test_what_is_dead_goes_to_a_subscription_that_is_there(
    client: pulsar.Client, rest: Rest
) -> None:
    topic = full("dying")
    dead = full("dead")
    consumer = client.subscribe(
        topic,
        "s",
        SHARED,
        negative_ack_redelivery_delay_ms=20,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2, dead, "letters"),
    )
    send_all(client.create_producer(topic), 5)
    for message in receive(consumer, 5)[:4]:
        consumer.acknowledge(message)
    wait_until(lambda: rest.topic(topic)["subscriptions"]["s"]["unackedMessages"] == 1)
    consumer.redeliver_unacknowledged_messages()
    for count in (1, 2):
        (message,) = receive(consumer, 1)
        assert (message.data(), message.redelivery_count()) == (b"m4", count)
        consumer.negative_acknowledge(message)
    wait_until(lambda: backlog(rest, topic) == 0)
    letters = client.subscribe(dead, "letters", SHARED)
    assert data(receive(letters, 1)) == ["m4"]
    assert is_silent(letters)


@pytest.mark.parametrize("inclusive", [False, True])
def test_a_reader_from_within_a_batch(client: pulsar.Client, inclusive: bool) -> None:
    topic = full(f"read-from-{inclusive}")
    send_all(batching(client, topic, 5), 15)
    every = client.create_reader(topic, pulsar.MessageId.earliest)
    ids = [every.read_next(5_000).message_id() for _ in range(15)]
    assert not every.has_message_available()
    for index in (0, 2, 4, 5, 7, 14):
        reader = client.create_reader(topic, ids[index], start_message_id_inclusive=inclusive)
        for number in range(index + (not inclusive), 15):
            assert reader.has_message_available()
            assert reader.read_next(5_000).data() == b"m%d" % number
        assert not reader.has_message_available()
        reader.seek(ids[7])
        first = reader.read_next(5_000).data()
        assert first == (b"m7" if inclusive else b"m8")
        reader.close()


def test_the_last_id_is_that_of_the_last_message_also_when_some_are_acknowledged(
    client: pulsar.Client, rest: Rest
) -> None:
    topic = full("last-id")
    consumer = client.subscribe(topic, "s", batch_index_ack_enabled=True)
    send_all(batching(client, topic, 5), 5)
    messages = receive(consumer, 5)
    consumer.acknowledge(messages[4])
    consumer.acknowledge_cumulative(messages[2])
    wait_until(lambda: rest.topic(topic)["subscriptions"]["s"]["headgate"]["backlogMessages"] == 1)
    last = consumer.get_last_message_id()
    assert (last.entry_id(), last.batch_index()) == id_of(messages[4].message_id())[2:]


def test_holes_survive_a_reconnect(client: pulsar.Client, rest: Rest) -> None:
    topic = full("holes")
    consumer = client.subscribe(topic, "s", SHARED)
    send_all(client.create_producer(topic), 20)
    for number, message in enumerate(receive(consumer, 20)):
        if number % 3:
            consumer.acknowledge(message)
    wait_until(lambda: backlog(rest, topic) == 7)
    consumer.close()
    consumer = client.subscribe(topic, "s", SHARED)
    assert data(receive(consumer, 7)) == texts(20)[::3]
    assert is_silent(consumer)


# Delivering again -------------------------------------------------------------------------------


def test_negative_acknowledgements_count(client: pulsar.Client) -> None:
    topic = full("negative")
    consumer = client.subscribe(topic, "s", SHARED, negative_ack_redelivery_delay_ms=50)
    send_all(client.create_producer(topic), 3)
    for message in receive(consumer, 3):
        if message.data() == b"m1":
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
    for count in (1, 2, 3):
        (message,) = receive(consumer, 1)
        assert message.data() == b"m1"
        assert message.redelivery_count() == count
        if count < 3:
            consumer.negative_acknowledge(message)
    consumer.acknowledge(message)
    assert is_silent(consumer)


def test_all_that_is_unacknowledged_comes_again(client: pulsar.Client) -> None:
    topic = full("redeliver")
    shared = client.subscribe(topic, "shared", SHARED)
    exclusive = client.subscribe(topic, "exclusive")
    send_all(client.create_producer(topic), 6)
    for message in receive(shared, 6)[::2]:
        shared.acknowledge(message)
    receive(exclusive, 6)
    for consumer in (shared, exclusive):
        consumer.redeliver_unacknowledged_messages()
    again = receive(shared, 3)
    assert sorted(data(again)) == texts(6)[1::2]
    assert {message.redelivery_count() for message in again} == {1}
    assert data(receive(exclusive, 6)) == texts(6)


def test_what_fails_too_often_goes_to_the_dead_letters(client: pulsar.Client) -> None:
    topic, dead_topic = full("fails"), full("fails-dead")
    dead = client.subscribe(dead_topic, "s")
    consumer = client.subscribe(
        topic,
        "s",
        SHARED,
        negative_ack_redelivery_delay_ms=50,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2, dead_topic),
    )
    client.create_producer(topic).send(b"poison")
    for count in range(3):
        (message,) = receive(consumer, 1)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)
    assert data(receive(dead, 1)) == ["poison"]
    assert is_silent(consumer)


# Life -------------------------------------------------------------------------------------------


def test_unsubscribing_forgets(client: pulsar.Client, rest: Rest) -> None:
    topic = full("unsubscribe")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    send_all(producer, 3)
    consumer.unsubscribe()
    assert rest.topic(topic)["subscriptions"] == {}
    again = client.subscribe(topic, "s")
    producer.send(b"new")
    assert data(receive(again, 1)) == ["new"]


def test_nobody_unsubscribes_under_another(client: pulsar.Client) -> None:
    topic = full("unsubscribe-busy")
    one, two = (client.subscribe(topic, "s", SHARED) for _ in range(2))
    with pytest.raises(pulsar.PulsarException):
        one.unsubscribe()
    client.create_producer(topic).send(b"still")
    while True:
        try:
            assert two.receive(100).data() == b"still"
            return
        except pulsar.Timeout:
            one.close()


def test_an_unloaded_topic_comes_back(client: pulsar.Client, rest: Rest) -> None:
    topic = full("unloaded")
    consumer = client.subscribe(topic, "s", SHARED)
    producer = client.create_producer(topic)
    ids = send_all(producer, 6)
    for message in receive(consumer, 6)[:3]:
        consumer.acknowledge(message)
    wait_until(lambda: backlog(rest, topic) == 3)
    rest.ask("PUT", f"{topic_path(topic)}/unload")
    later = producer.send(b"later")
    assert id_of(later) > id_of(ids[-1])
    assert sorted(data(receive(consumer, 4))) == ["later", *texts(6, 3)]


def test_a_deleted_topic_begins_anew(
    client: pulsar.Client, rest: Rest, broker: BrokerProcess
) -> None:
    topic = full("deleted")
    with client_of(broker.service_url) as own:
        own.create_producer(topic).send(b"x")
        rest.ask("DELETE", f"{topic_path(topic)}?force=true")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert not reader.has_message_available()


def test_producers_share_a_topic_but_not_a_name(
    client: pulsar.Client, other: pulsar.Client
) -> None:
    topic = full("names")
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    first = client.create_producer(topic, producer_name="p")
    with pytest.raises(pulsar.ProducerBusy):
        other.create_producer(topic, producer_name="p")
    second = other.create_producer(topic)
    assert second.producer_name() != "p"
    first.send(b"one")
    second.send(b"two")
    assert data(receive(consumer, 2)) == ["one", "two"]
    with pytest.raises(pulsar.PulsarException):
        other.create_producer(topic, access_mode=pulsar.ProducerAccessMode.Exclusive)


def test_an_exclusive_producer_is_alone(client: pulsar.Client, other: pulsar.Client) -> None:
    topic = full("exclusive-producer")
    mode = pulsar.ProducerAccessMode.Exclusive
    holder = client.create_producer(topic, access_mode=mode)
    for more in ({}, {"access_mode": mode}):
        with pytest.raises(pulsar.PulsarException):
            other.create_producer(topic, **more)
    holder.send(b"x")
    holder.close()
    other.create_producer(topic, access_mode=mode).send(b"y")
