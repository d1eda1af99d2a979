"""Messages, readers, positions and topics as the real client uses them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pulsar
import pytest

from tests.service.clients import (
    EARLIEST,
    RECEIVE_MS,
    SHARED,
    client_of,
    data,
    free_ports,
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

KINDS = pulsar.CompressionType


ACK_TIMEOUT_S = 10.0
"""The least that the client allows."""


@pytest.fixture(scope="module")
def client(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    with client_of(broker.service_url) as made:
        yield made


class Unacked(NamedTuple):
    """A message that was received and not acknowledged, by a consumer with a time limit for it."""

    consumer: pulsar.Consumer
    received: float


@pytest.fixture(scope="module", autouse=True)
def unacked(client: pulsar.Client) -> Unacked:
    """Made first, so that its time passes while the other tests run."""
    topic = full("ack-timeout")
    consumer = client.subscribe(
        topic, "s", SHARED, unacked_messages_timeout_ms=int(ACK_TIMEOUT_S * 1_000)
    )
    send_all(client.create_producer(topic), 2)
    first, second = receive(consumer, 2)
    consumer.acknowledge(second)
    assert first.data() == b"m0"
    return Unacked(consumer, time.monotonic())


# Messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize(
    "kind", [KINDS.NONE, KINDS.LZ4, KINDS.ZLib, KINDS.ZSTD, KINDS.SNAPPY], ids=lambda k: k.name
)
def test_messages_arrive_as_they_were_sent(
    client: pulsar.Client, kind: pulsar.CompressionType, batched: bool
) -> None:
    topic = full(f"as-sent-{kind.name}-{batched}")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic,
        producer_name="author",
        compression_type=kind,
        batching_enabled=batched,
        batching_max_messages=7,
        properties={"of": "the producer"},
    )
    for number in range(30):
        producer.send_async(
            b"\x00\xff" * (number + 1),
            lambda *_: None,
            properties={"number": str(number), "empty": ""},
            partition_key=f"key {number % 3}",
            ordering_key="é",
            event_timestamp=1_000 + number,
            sequence_id=100 + number,
        )
    producer.flush()
    for number, message in enumerate(receive(consumer, 30)):
        assert message.data() == b"\x00\xff" * (number + 1)
        assert message.properties() == {"number": str(number), "empty": ""}
        assert message.partition_key() == f"key {number % 3}"
        assert message.ordering_key() == "é"
        assert message.event_timestamp() == 1_000 + number
        assert message.producer_name() == "author"
        assert message.topic_name() == topic
        assert message.redelivery_count() == 0
    assert producer.last_sequence_id() == 129


def test_large_messages_come_in_chunks(client: pulsar.Client, rest: Rest) -> None:
    topic = full("chunks")
    consumer = client.subscribe(topic, "s", SHARED)
    producer = client.create_producer(topic, chunking_enabled=True)
    large = bytes(range(256)) * 48 * 1_024
    sent = [producer.send(large), producer.send(b"small"), producer.send(large[::-1])]
    got = receive(consumer, 3)
    assert [message.data() for message in got] == [large, b"small", large[::-1]]
    assert [id_of(message.message_id()) for message in got] == [id_of(each) for each in sent]
    assert rest.topic(topic)["msgChunkPublished"]
    for message in got:
        consumer.acknowledge(message)
    # All of a message's chunks are acknowledged with it.
    wait_until(lambda: rest.topic(topic)["subscriptions"]["s"]["msgBacklog"] == 0)


def test_a_message_at_the_limit_and_one_above(client: pulsar.Client) -> None:
    topic = full("size")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    limit = 5 * 1024 * 1024
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(b"x" * (limit + 1))
    producer.send(b"x" * (limit - 1_000))
    assert len(consumer.receive(RECEIVE_MS).data()) == limit - 1_000


def test_a_batch_is_received_at_once(client: pulsar.Client) -> None:
    topic = full("batch-receive")
    policy = pulsar.ConsumerBatchReceivePolicy(50, 1024 * 1024, 10_000)
    consumer = client.subscribe(topic, "s", batch_receive_policy=policy)
    send_all(client.create_producer(topic, batching_enabled=True), 50)
    assert data(consumer.batch_receive()) == texts(50)


def test_a_consumer_without_a_queue(client: pulsar.Client) -> None:
    topic = full("no-queue")
    consumer = client.subscribe(topic, "s", SHARED, receiver_queue_size=0)
    send_all(client.create_producer(topic), 5)
    for text in texts(5):
        message = consumer.receive()
        assert message.data().decode() == text
        consumer.acknowledge(message)


# Readers and positions ---------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_readers_begin_where_they_are_reported(client: pulsar.Client, batched: bool) -> None:
    topic = full(f"readers-{batched}")
    producer = client.create_producer(topic, batching_enabled=batched, batching_max_messages=4)
    ids = send_all(producer, 10)
    cases = [
        (pulsar.MessageId.earliest, False, texts(10)),
        (ids[5], True, texts(10, 5)),
        (ids[5], False, texts(10, 6)),
        (ids[9], False, []),
        (ids[9], True, texts(10, 9)),
        (pulsar.MessageId.latest, False, []),
    ]
    for start, inclusive, expected in cases:
        reader = client.create_reader(topic, start, start_message_id_inclusive=inclusive)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(RECEIVE_MS).data().decode())
        assert found == expected
        reader.close()


def test_a_reader_follows_and_seeks(client: pulsar.Client, rest: Rest) -> None:
    topic = full("reader-follows")
    producer = client.create_producer(topic)
    ids = send_all(producer, 5)
    reader = client.create_reader(topic, pulsar.MessageId.latest)
    assert not reader.has_message_available()
    producer.send(b"new")
    assert reader.read_next(RECEIVE_MS).data() == b"new"
    reader.seek(ids[2])
    assert reader.read_next(RECEIVE_MS).data() == b"m3"
    reader.seek(0)
    assert reader.read_next(RECEIVE_MS).data() == b"m0"
    reader.close()
    # It leaves nothing behind.
    wait_until(lambda: rest.topic(topic)["subscriptions"] == {})


def test_a_consumer_seeks_by_id_and_by_time(client: pulsar.Client) -> None:
    topic = full("seek")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    ids = send_all(producer, 5)
    time.sleep(0.02)
    middle_ms = int(time.time() * 1_000)
    time.sleep(0.02)
    send_all(producer, 10, "later {}")
    messages = receive(consumer, 15)
    consumer.acknowledge_cumulative(messages[-1])

    consumer.seek(ids[3])
    assert data(receive(consumer, 2)) == ["m4", "later 0"]
    consumer.seek(middle_ms)
    assert data(receive(consumer, 10)) == texts(10, text="later {}")
    consumer.seek(pulsar.MessageId.earliest)
    assert data(receive(consumer, 1)) == ["m0"]
    consumer.seek(pulsar.MessageId.latest)
    assert is_silent(consumer)
    producer.send(b"after")
    assert data(receive(consumer, 1)) == ["after"]


def test_the_last_message_id(client: pulsar.Client) -> None:
    topic = full("last-id")
    consumer = client.subscribe(topic, "s")
    assert consumer.get_last_message_id().entry_id() == -1
    producer = client.create_producer(topic)
    last = send_all(producer, 3)[-1]
    assert id_of(consumer.get_last_message_id()) == id_of(last)
    batching = client.create_producer(topic, batching_enabled=True, batching_max_messages=8)
    last = send_all(batching, 8)[-1]
    found = consumer.get_last_message_id()
    assert id_of(found) == id_of(last)
    assert found.batch_index() == 7


def test_a_new_subscription_begins_at_the_end_or_the_beginning(client: pulsar.Client) -> None:
    topic = full("initial")
    client.subscribe(topic, "holds the messages")
    producer = client.create_producer(topic)
    send_all(producer, 3)
    late = client.subscribe(topic, "latest")
    early = client.subscribe(topic, "earliest", initial_position=EARLIEST)
    producer.send(b"new")
    assert data(receive(early, 4)) == [*texts(3), "new"]
    assert data(receive(late, 1)) == ["new"]


# Topics ------------------------------------------------------------------------------------------


def test_three_partitions(client: pulsar.Client, rest: Rest) -> None:
    topic = full("three")
    rest.ask("PUT", f"{topic_path(topic)}/partitions", 3)
    assert client.get_topic_partitions(topic) == [f"{topic}-partition-{n}" for n in range(3)]
    consumer = client.subscribe(topic, "s", SHARED)
    producer = client.create_producer(topic)
    for number in range(90):
        producer.send_async(str(number).encode(), lambda *_: None, partition_key=f"k{number % 9}")
    for number in range(90, 120):
        producer.send_async(str(number).encode(), lambda *_: None)
    producer.flush()
    messages = receive(consumer, 120)
    by_partition: dict[int, list[int]] = {}
    by_key: dict[str, set[int]] = {}
    for message in messages:
        partition = message.message_id().partition()
        assert message.topic_name() == f"{topic}-partition-{partition}"
        by_partition.setdefault(partition, []).append(int(message.data()))
        by_key.setdefault(message.partition_key(), set()).add(partition)
        consumer.acknowledge(message)
    assert sorted(by_partition) == [0, 1, 2]
    assert sorted(chain.from_iterable(by_partition.values())) == list(range(120))
    for numbers in by_partition.values():
        assert numbers == sorted(numbers)
    assert all(len(partitions) == 1 for key, partitions in by_key.items() if key)
    assert len(by_key[""]) == 3
    stats = f"{topic_path(topic)}/partitioned-stats"
    wait_until(lambda: rest.ask("GET", stats)["subscriptions"]["s"]["msgBacklog"] == 0)
    assert rest.ask("GET", stats)["msgInCounter"] == 120


def test_several_topics_in_one_subscription(client: pulsar.Client) -> None:
    topics = [full(f"several-{number}") for number in range(4)]
    consumer = client.subscribe(topics, "s", SHARED)
    producers = [client.create_producer(topic) for topic in topics]
    for number in range(5):
        for producer in producers:
            producer.send(str(number).encode())
    messages = receive(consumer, 20)
    for topic in topics:
        mine = [each for each in messages if each.topic_name() == topic]
        assert data(mine) == texts(5, text="{}")
    for message in messages:
        consumer.acknowledge(message)
    assert is_silent(consumer)


def test_a_pattern_may_come_before_its_namespace(client: pulsar.Client) -> None:
    """That topics are found later is the client's work, each minute: ``./dev test-peer`` plays it
    with one that can be told to look more often."""
    client.subscribe(re.compile("persistent://public/later/.*"), "s").close()


def test_topics_by_a_pattern(client: pulsar.Client) -> None:
    producers = [client.create_producer(full(f"pattern-{word}")) for word in ("one", "two")]
    client.create_producer(full("other-pattern-three")).send(b"no")
    consumer = client.subscribe(
        re.compile(full("pattern-.*")),
        "s",
        initial_position=EARLIEST,
    )
    for producer in producers:
        producer.send(b"yes")
    assert data(receive(consumer, 2)) == ["yes", "yes"]
    assert is_silent(consumer)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("persistent://nobody/here/t", pulsar.TopicNotFound),
        ("non-persistent://public/default/t", pulsar.PulsarException),
        ("persistent://headgate/telemetry/samples", pulsar.PulsarException),
    ],
)
def test_topics_that_nobody_may_produce_to(
    client: pulsar.Client, topic: str, expected: type[Exception]
) -> None:
    with pytest.raises(expected):
        client.create_producer(topic)


# Life --------------------------------------------------------------------------------------------


def test_clients_come_back_by_themselves(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The broker comes back on the same ports and data: nobody has to be made anew."""
    binary_and_web = free_ports(4)
    with ThreadPoolExecutor(2) as pool:
        stories = [
            pool.submit(_comes_back, tmp_path_factory.mktemp("back"), ports, clean=clean)
            for clean, ports in ((True, binary_and_web[:2]), (False, binary_and_web[2:]))
        ]
        for story in stories:
            story.result()


def _comes_back(folder: Path, ports: list[int], *, clean: bool) -> None:
    words = ["--broker-port", str(ports[0]), "--web-port", str(ports[1])]
    broker = BrokerProcess(folder, words).start()
    try:
        with client_of(broker.service_url) as client, ThreadPoolExecutor(1) as pool:
            topic = full("back")
            consumer = client.subscribe(topic, "s", SHARED)
            producer = client.create_producer(topic)
            send_all(producer, 10)
            acked = receive(consumer, 4)
            for message in acked:
                consumer.acknowledge(message)
            kept = receive(consumer, 6)
            wait_until(lambda: _acked(broker, topic) == 4)
            assert (broker.terminate if clean else broker.kill)() == (0 if clean else -9)
            sending = pool.submit(send_all, producer, 10, "while away {}")
            broker.start()
            assert len(sending.result(30)) == 10
            expected = {*data(kept), *texts(10, text="while away {}")}
            # A kill may come before the last acknowledgements are on disk: then these come again.
            repeated = set() if clean else set(data(acked))
            found = set()
            while not found >= expected:
                message = consumer.receive(RECEIVE_MS)
                found.add(message.data().decode())
                consumer.acknowledge(message)
            assert found <= expected | repeated
            assert is_silent(consumer)
    finally:
        broker.close()


def _acked(broker: BrokerProcess, topic: str) -> int:
    rest = Rest(broker.admin_url)
    try:
        return 10 - rest.topic(topic)["subscriptions"]["s"]["msgBacklog"]
    finally:
        rest.close()


def test_two_hundred_consumers(client: pulsar.Client, rest: Rest) -> None:
    topics = [full(f"crowd-{number}") for number in range(10)]
    got: list[tuple[str, bytes]] = []

    def heard(consumer: pulsar.Consumer, message: pulsar.Message) -> None:
        got.append((message.topic_name(), message.data()))
        consumer.acknowledge(message)

    consumers = [
        client.subscribe(topic, "s", SHARED, message_listener=heard, receiver_queue_size=10)
        for topic in topics
        for _ in range(20)
    ]
    producers = [client.create_producer(topic) for topic in topics]
    for producer in producers:
        send_all(producer, 100)
    wait_until(lambda: len(got) == 1_000)
    assert sorted(got) == sorted((topic, text.encode()) for topic in topics for text in texts(100))
    for topic in topics:
        stats = rest.topic(topic)["subscriptions"]["s"]
        assert len(stats["consumers"]) == 20
        # Nobody gets more than a round of twenty entries before the next one's turn.
        assert sum(each["msgOutCounter"] > 0 for each in stats["consumers"]) >= 5
    for consumer in consumers:
        consumer.close()
    wait_until(lambda: not rest.topic(topics[0])["subscriptions"]["s"]["consumers"])


# At the end: its time has nearly passed ---------------------------------------------------------


def test_an_acknowledgement_that_never_comes(unacked: Unacked) -> None:
    message = unacked.consumer.receive(int(2 * ACK_TIMEOUT_S * 1_000) + RECEIVE_MS)
    assert time.monotonic() - unacked.received >= ACK_TIMEOUT_S - 0.5
    assert message.data() == b"m0"
    assert message.redelivery_count() == 1
    unacked.consumer.acknowledge(message)
    assert is_silent(unacked.consumer)
