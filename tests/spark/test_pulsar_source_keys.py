"""Keys of Java's producers, which Python's client cannot send: bytes, empty, and null.

By the classes that Spark calls, in this process: what Spark adds is the same for all keys.
"""

from __future__ import annotations

import base64
import socket
import time
import zlib
from urllib.parse import urlsplit

import pytest

from headgate.wire import client as frames
from headgate.wire._generated.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from headgate.wire.codes import CompressionType
from headgate.wire.entry import build_entry
from pyspark_pulsar.source import DefaultSource
from tests.spark.conftest import Cluster

LIMIT_S = 20.0


class RawProducer:
    """Sends entries as they are given, as another client would make them."""

    def __init__(self, cluster: Cluster, topic: str, name: str) -> None:
        self._name = name
        self._sequence = 0
        parts = urlsplit(cluster.broker.service_url)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 0), LIMIT_S)
        self._socket.sendall(frames.connect() + frames.producer(1, 1, topic, name=name))
        assert self._socket.recv(4_096)

    def send(self, payload: bytes = b"v", count: int | None = None, **metadata: object) -> None:
        """One entry, with ``metadata`` beside what every message has."""
        made = MessageMetadata(
            producer_name=self._name, sequence_id=self._sequence, publish_time=1, **metadata
        )
        if count is not None:
            made.num_messages_in_batch = count
        body = build_entry(made, payload)
        self._socket.sendall(frames.send(1, self._sequence, body, message_count=count))
        self._sequence += 1

    def close(self) -> None:
        self._socket.close()


def encoded(key: bytes) -> dict[str, object]:
    """The metadata of ``keyBytes(key)``."""
    return {
        "partition_key": base64.b64encode(key).decode(),
        "partition_key_b64_encoded": True,
    }


def keys_of(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    """The column ``__key`` of a topic, once it has so many entries."""
    deadline_s = time.monotonic() + LIMIT_S
    while cluster.admin("GET", topic, "/lastMessageId")["entryId"] + 1 < count:
        assert time.monotonic() < deadline_s, "they were not stored"
        time.sleep(0.05)
    source = DefaultSource(dict(cluster.options(topic)))
    reader = source.reader(source.schema())
    return [
        key
        for task in reader.partitions()
        for batch in reader.read(task)
        for key in batch["__key"].to_pylist()
    ]


@pytest.fixture
def topic(cluster: Cluster) -> str:
    made = cluster.new_topic()
    # Text that is base64 as well, by a client that says nothing about it; this loads the topic.
    cluster.publish(made, [b"1"], partition_key="12345678")
    return made


def test_bytes_text_empty_and_null(cluster: Cluster, topic: str) -> None:
    sent: list[tuple[str, dict[str, object], bytes | None]] = [
        ("bytes", encoded(b"\x00\xff\x01"), b"\x00\xff\x01"),
        ("bytes", encoded(b"id"), b"id"),
        ("text", {"partition_key": "AAEC"}, b"AAEC"),
        ("text", {"partition_key": "order-1"}, b"order-1"),
        ("empty", {"partition_key": ""}, b""),
        ("none", {}, None),
        ("null", {"null_partition_key": True}, None),
    ]
    producers = {name: RawProducer(cluster, topic, name) for name in {name for name, _, _ in sent}}
    for at, (name, metadata, _) in enumerate(sent, 2):
        producers[name].send(**metadata)
        keys_of(cluster, topic, at)
    for each in producers.values():
        each.close()
    wanted = [b"12345678", *(key for _, _, key in sent)]
    assert keys_of(cluster, topic, len(wanted)) == wanted


def test_inside_of_batches(cluster: Cluster, topic: str) -> None:
    keys = [encoded(b"\xfe"), encoded(b"k")]
    parts = [SingleMessageMetadata(payload_size=1, **key).SerializeToString() for key in keys]
    batch = b"".join(len(part).to_bytes(4) + part + b"v" for part in parts)
    plain, packed = (RawProducer(cluster, topic, name) for name in ("plain", "packed"))
    plain.send(batch, 2)
    keys_of(cluster, topic, 2)
    packed.send(
        zlib.compress(batch), 2, compression=CompressionType.ZLIB, uncompressed_size=len(batch)
    )
    assert keys_of(cluster, topic, 3) == [b"12345678", b"\xfe", b"k", b"\xfe", b"k"]
    plain.close()
    packed.close()
