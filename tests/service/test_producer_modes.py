"""Exclusive producers, terminated topics, encrypted and chunked messages, with the real client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pulsar
import pytest

from tests.service.clients import EARLIEST, SHARED, client_of, full, receive, wait_until
from tests.service.measuring import Rest, topic_path
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import RETAINED, words

MODE = pulsar.ProducerAccessMode


@pytest.fixture(scope="module")
def client(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    with client_of(broker.service_url) as made:
        yield made


@pytest.fixture(scope="module")
def other(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    """A client on a connection of its own."""
    with client_of(broker.service_url) as made:
        yield made


def test_a_producer_that_fences_ends_the_other(
    client: pulsar.Client, other: pulsar.Client, rest: Rest
) -> None:
    topic = full("fenced")
    first = client.create_producer(topic, access_mode=MODE.Exclusive)
    bystander = client.create_producer(full("fenced-bystander"))
    first.send(b"one")
    second = other.create_producer(topic, access_mode=MODE.ExclusiveWithFencing)
    second.send(b"two")
    with pytest.raises(pulsar.PulsarException, match="ProducerFenced"):
        first.send(b"three")
    bystander.send(b"on the same connection")
    stats = rest.topic(topic)
    assert [publisher["accessMode"] for publisher in stats["publishers"]] == [
        "ExclusiveWithFencing"
    ]
    assert (stats["topicEpoch"], stats["waitingPublishers"]) == (1, 0)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert [reader.read_next(15_000).data() for _ in range(2)] == [b"one", b"two"]
    assert not reader.has_message_available()


def test_a_producer_waits_for_its_turn(
    client: pulsar.Client, other: pulsar.Client, rest: Rest
) -> None:
    topic = full("waits")
    first = client.create_producer(topic, access_mode=MODE.Exclusive)
    made: list[pulsar.Producer] = []

    def wait() -> None:
        made.append(other.create_producer(topic, access_mode=MODE.WaitForExclusive))

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: rest.topic(topic)["waitingPublishers"] == 1)
    with pytest.raises(pulsar.ProducerBusy):
        other.create_producer(topic)
    assert not made
    first.close()
    thread.join(15)
    made[0].send(b"alone")
    assert rest.topic(topic)["waitingPublishers"] == 0


def test_epochs_and_terminations_survive_a_kill(tmp_path: Path) -> None:
    epochs, ended = full("epochs"), full("terminated")
    with closing(BrokerProcess(tmp_path, words(**RETAINED))) as broker:
        broker.start()
        with client_of(broker.service_url) as own, closing(Rest(broker.admin_url)) as rest:
            for _ in range(3):
                own.create_producer(epochs, access_mode=MODE.Exclusive).close()
            assert rest.topic(epochs)["topicEpoch"] == 2
            consumer = own.subscribe(ended, "s", initial_position=EARLIEST)
            last = own.create_producer(ended).send(b"last")
            found = rest.ask("POST", f"{topic_path(ended)}/terminate")
            assert (found["ledgerId"], found["entryId"]) == (last.ledger_id(), last.entry_id())
            with pytest.raises(pulsar.PulsarException, match="TopicTerminated"):
                own.create_producer(ended)
            consumer.acknowledge(receive(consumer, 1)[0])
            own.create_producer(full("beside")).send(b"the connection is alive")
        broker.kill()
        broker.start()
        with client_of(broker.service_url) as own, closing(Rest(broker.admin_url)) as rest:
            own.create_producer(epochs, access_mode=MODE.Exclusive).send(b"x")
            assert rest.topic(epochs)["topicEpoch"] == 3
            with pytest.raises(pulsar.PulsarException, match="TopicTerminated"):
                own.create_producer(ended)
            reader = own.create_reader(ended, pulsar.MessageId.earliest)
            assert reader.has_message_available()
            assert reader.read_next(15_000).data() == b"last"
            assert not reader.has_message_available()
            internal = rest.ask("GET", f"{topic_path(ended)}/internalStats")
            assert internal["state"] == "Terminated"


def test_encryption_can_be_required(client: pulsar.Client, rest: Rest, namespace: str) -> None:
    rest.ask("POST", f"/admin/v2/namespaces/{namespace}/encryptionRequired", True)
    with pytest.raises(pulsar.PulsarException):
        client.create_producer(f"persistent://{namespace}/t")
    rest.ask("POST", f"/admin/v2/namespaces/{namespace}/encryptionRequired", False)
    client.create_producer(f"persistent://{namespace}/t").send(b"plain")


def test_chunks_are_one_message(client: pulsar.Client) -> None:
    topic = full("chunks")
    consumers = [client.subscribe(topic, "s", SHARED) for _ in range(2)]
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    payloads = [bytes([number]) * (11 << 20) for number in range(2)]
    for payload in payloads:
        producer.send(payload)
    found: list[bytes] = []

    def take() -> bool:
        for consumer in consumers:
            try:
                message = consumer.receive(200)
            except pulsar.Timeout:
                continue
            found.append(message.data())
            consumer.acknowledge(message)
        return len(found) == len(payloads)

    wait_until(take)
    assert sorted(found) == payloads
