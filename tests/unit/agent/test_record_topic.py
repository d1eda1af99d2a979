"""Records to a topic: repeated until stored, bounded, and ended in time."""

from __future__ import annotations

import threading

import pytest

from headgate.agent import record_topic
from headgate.agent.record_topic import RecordTopic, TopicError
from headgate.agent.records import Record
from headgate.record.codec import BatchHeader

HEADER = BatchHeader("agent:prod", "prod", "b1", "boot-1", 1, 2, is_inferred=True)


def record(number: int, size: int = 1) -> Record:
    return Record(HEADER, number, bytes([number]) * size)


class Producer:
    """Stores messages, or fails."""

    def __init__(self, failures: int = 0) -> None:
        self.stored: list[tuple[bytes, str]] = []
        self.failures = failures
        self.closed = 0
        self.got = threading.Semaphore(0)

    def send(self, data: bytes, properties: dict[str, str]) -> None:
        if self.failures:
            self.failures -= 1
            raise TopicError("the cluster is away")
        self.stored.append((data, properties["seq"]))
        self.got.release()

    def close(self) -> None:
        self.closed += 1


def test_messages_are_sent_in_order_and_counted() -> None:
    producer = Producer()
    topic = RecordTopic("t", lambda: producer)
    topic.start()
    topic.write([record(1), record(2)])
    topic.write([record(3)])
    for _ in range(3):
        assert producer.got.acquire(timeout=10)
    topic.close()
    assert producer.stored == [(b"\x01", "1"), (b"\x02", "2"), (b"\x03", "3")]
    assert (topic.counts.records, topic.counts.bytes, producer.closed) == (3, 3, 1)
    assert (topic.counts.failures, topic.counts.dropped) == (0, 0)


def test_a_message_that_fails_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(record_topic, "RETRY_S", 0.01)
    producer = Producer(failures=3)
    topic = RecordTopic("t", lambda: producer)
    topic.start()
    topic.write([record(1)])
    assert producer.got.acquire(timeout=10)
    topic.close()
    assert [data for data, _ in producer.stored] == [b"\x01"]
    assert (topic.counts.failures, topic.counts.records) == (3, 1)
    assert caplog.text.count("telemetry is not published to t: the cluster is away") == 1


def test_while_the_cluster_is_away_the_oldest_go_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(record_topic, "WAITING_BYTES_MAX", 10)
    topic = RecordTopic("t", Producer)
    for number in range(6):
        topic.write([record(number, size=4)])
    assert topic.counts.dropped == 4
    assert caplog.text.count("waits for t, and no more may: the oldest telemetry is given up") == 1


def test_a_stop_does_not_wait_for_a_cluster_that_is_away() -> None:
    producer = Producer(failures=10**6)
    topic = RecordTopic("t", lambda: producer)
    topic.write([record(1), record(2)])
    topic.start()
    topic.close()
    assert topic.counts.dropped == 2


def test_an_error_of_the_client_library_does_not_end_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_topic, "RETRY_S", 0.01)

    class Broken(Producer):
        def send(self, data: bytes, properties: dict[str, str]) -> None:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("a bug of the library")
            super().send(data, properties)

        def close(self) -> None:
            super().close()
            raise RuntimeError("closed already")

    producer = Broken(failures=2)
    topic = RecordTopic("t", lambda: producer)
    topic.start()
    topic.write([record(1)])
    assert producer.got.acquire(timeout=10)
    topic.close()
    assert producer.stored == [(b"\x01", "1")]
    assert (topic.counts.records, topic.counts.failures, topic.counts.dropped) == (1, 2, 0)
