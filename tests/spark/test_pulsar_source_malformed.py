"""Entries that no correct producer sends. On some of them ``pulsar-client`` ends."""

from __future__ import annotations

import socket
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.wire import client
from headgate.wire.codes import CompressionType
from headgate.wire.entry import build_entry
from headgate.wire.messages import BaseCommand, MessageMetadata, SingleMessageMetadata
from tests.spark.conftest import Cluster, ReadValues

COUNT_MAX = (1 << 31) - 1
LONG_FIRST_MESSAGE = ({"num_messages_in_batch": 5}, COUNT_MAX.to_bytes(4) + b"x" * 60)
"""A client that trusts it reads beyond the payload."""
HUGE_CHUNKS: tuple[dict[str, Any], bytes] = (
    {
        "uuid": "u",
        "chunk_id": 0,
        "num_chunks_from_msg": 3,
        "total_chunk_msg_size": COUNT_MAX,
    },
    b"x",
)
"""A client that trusts it makes room for it."""
EMPTY_SPACE: tuple[dict[str, Any], bytes] = (
    {
        "num_messages_in_batch": 800_000,
        "compression": CompressionType.ZSTD,
        "uncompressed_size": 5_000_000,
    },
    b"\xff" * 40,
)
"""It cannot be decompressed, and takes all permits of a reader."""
ENCRYPTED_BATCH: tuple[dict[str, Any], bytes] = (
    {
        "num_messages_in_batch": 5_000,
        "encryption_keys": [{"key": "team", "value": b"?"}],
    },
    b"?" * 100_000,
)
"""It takes more permits than a reader has, and gives no message."""


def publish(cluster: Cluster, topic: str, *entries: tuple[dict[str, Any], bytes] | bytes) -> None:
    """Store these metadata and payloads, or plain messages of these values."""
    address = urlsplit(cluster.broker.service_url)
    assert address.hostname is not None
    assert address.port is not None
    with (
        socket.create_connection((address.hostname, address.port), timeout=30) as connection,
        connection.makefile("rb") as answers,
    ):

        def ask(frame: bytes) -> None:
            connection.sendall(frame)
            size = int.from_bytes(answers.read(4))
            answer = BaseCommand.FromString(answers.read(size)[4:])
            assert answer.type not in (BaseCommand.ERROR, BaseCommand.SEND_ERROR), answer

        ask(client.connect())
        ask(client.producer(1, 1, topic))
        for sequence_id, entry in enumerate(entries):
            fields, payload = ({}, entry) if isinstance(entry, bytes) else entry
            metadata = MessageMetadata(
                producer_name="p",
                sequence_id=sequence_id,
                publish_time=time.time_ns() // 1_000_000,
                **fields,
            )
            count = fields.get("num_messages_in_batch", 1)
            body = build_entry(metadata, payload)
            ask(client.send(1, sequence_id, body, message_count=count))


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Messages, batches, and one of each kind of malformed entries between them."""
    topic = cluster.new_topic()
    cluster.publish(topic, [b"%d" % each for each in range(20)], batch=10)
    publish(cluster, topic, LONG_FIRST_MESSAGE, b"20", HUGE_CHUNKS, EMPTY_SPACE)
    cluster.publish(topic, [b"%d" % each for each in range(21, 30)], batch=4)
    return topic


def test_the_others_are_read(topic: str, read_values: ReadValues) -> None:
    wanted = [b"%d" % each for each in range(30)]
    assert read_values(topic, failOnDataLoss="false", minPartitions="2") == wanted


def test_the_first_one_is_named(topic: str, cluster: Cluster, spark: SparkSession) -> None:
    frame = spark.read.format("pulsar").options(**cluster.options(topic)).load()
    with pytest.raises(PySparkException, match=r"entry \d+:2 is malformed ") as caught:
        frame.collect()
    assert "Set failOnDataLoss=false to go on without them" in str(caught.value)


def test_a_stream_goes_on(
    topic: str, cluster: Cluster, spark: SparkSession, tmp_path: object
) -> None:
    options = cluster.options(topic, failOnDataLoss="false", startingOffsets="earliest")
    query = (
        spark.readStream.format("pulsar")
        .options(**options)
        .load()
        .writeStream.format("memory")
        .queryName("malformed")
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    found = spark.table("malformed").select("value").collect()
    assert sorted(int(row.value) for row in found) == list(range(30))


def test_encrypted_batches_keep_no_others_from_being_read(
    cluster: Cluster, read_values: ReadValues
) -> None:
    topic = cluster.new_topic()
    publish(cluster, topic, b"0", ENCRYPTED_BATCH, b"1", ENCRYPTED_BATCH, b"2")
    assert read_values(topic, failOnDataLoss="false") == [b"0", b"1", b"2"]


@pytest.mark.parametrize("size", [1_000, -1])
def test_a_batch_gives_no_other_memory(
    size: int, cluster: Cluster, read_values: ReadValues
) -> None:
    """Each entry is a batch of one message, which has another size than it claims."""
    head = SingleMessageMetadata(payload_size=size).SerializeToString()
    overrun = ({"num_messages_in_batch": 1}, len(head).to_bytes(4) + head + b"x")
    topic = cluster.new_topic()
    cluster.publish(topic, [b"0", b"1"], batch=2)
    publish(cluster, topic, overrun, b"2", overrun)
    cluster.publish(topic, [b"3", b"4"], batch=2)
    found = read_values(topic, failOnDataLoss="false")
    assert found == [b"0", b"1", b"2", b"3", b"4"]
