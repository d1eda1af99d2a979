"""Producers and consumers of the official client at a steady rate, with what each was answered."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pulsar

from tests.service.clients import full
from tests.service.process import BrokerProcess
from tests.service.test_kill_nine import SILENT

Id = tuple[int, int]
RECEIPTS_TIMEOUT_S = 60.0


def id_of(message_id: pulsar.MessageId) -> Id:
    """The position that a message id names."""
    return message_id.ledger_id(), message_id.entry_id()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to one SEND."""

    number: int
    sent_s: float
    answered_s: float
    position: Id | None
    """None: it failed."""


@dataclass
class Sending:
    """What one producer sent and was answered, in the order of the answers."""

    topic: str
    sent_count: int = 0
    receipts: list[Receipt] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    """What its topic's consumer got, in order."""

    def stored(self) -> dict[int, Id]:
        """The positions by number of message."""
        return {r.number: r.position for r in self.receipts if r.position is not None}


class Traffic:
    """One producer and one consumer on each of a few topics, until the block ends."""

    def __init__(
        self, broker: BrokerProcess, topics: int, rate_per_s: float, body_bytes: int
    ) -> None:
        """``rate_per_s`` are messages of each producer."""
        self._client = pulsar.Client(
            broker.service_url, logger=SILENT, operation_timeout_seconds=120
        )
        self._pause_s = 1 / rate_per_s
        self._body = bytes(body_bytes)
        self._stop = threading.Event()
        self.all = [Sending(full(f"traffic-{at}")) for at in range(topics)]
        self._threads = [
            threading.Thread(target=work, args=(sending,), daemon=True)
            for sending in self.all
            for work in (self._produce, self._consume)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send and receive inside; at the end no client tries any longer."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(30)
            self._client.shutdown()

    def stop_sending(self) -> None:
        """Send no more; wait for the receipts and messages that are due."""
        self._stop.set()
        deadline_s = time.monotonic() + RECEIPTS_TIMEOUT_S
        while not all(len(s.receipts) == s.sent_count == len(s.received) for s in self.all):
            assert time.monotonic() < deadline_s, [
                (s.sent_count, len(s.receipts), len(s.received)) for s in self.all
            ]
            time.sleep(0.05)

    def receipts(self) -> list[Receipt]:
        """Those of all producers."""
        return [receipt for sending in self.all for receipt in list(sending.receipts)]

    def check_all_stored_in_order(self) -> None:
        """Each message has a receipt and came once, in the order of its producer."""
        for sending in self.all:
            assert [r.number for r in sending.receipts] == list(range(sending.sent_count))
            positions = [r.position for r in sending.receipts]
            assert None not in positions
            assert positions == sorted(set(sending.stored().values()))
            assert sending.received == list(range(sending.sent_count))

    def _produce(self, sending: Sending) -> None:
        producer = self._client.create_producer(
            sending.topic,
            send_timeout_millis=0,
            batching_enabled=False,
            max_pending_messages=100_000,
            max_pending_messages_across_partitions=1_000_000,
        )
        due_s = time.monotonic()
        while not self._stop.is_set():
            body = b"%08d" % sending.sent_count + self._body
            told = self._told(sending, sending.sent_count, time.monotonic())
            sending.sent_count += 1
            producer.send_async(body, told)
            due_s += self._pause_s
            time.sleep(max(0.0, due_s - time.monotonic()))

    def _told(
        self, sending: Sending, number: int, sent_s: float
    ) -> Callable[[pulsar.Result, pulsar.MessageId], None]:
        def told(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
            position = id_of(message_id) if result == pulsar.Result.Ok else None
            sending.receipts.append(Receipt(number, sent_s, time.monotonic(), position))

        return told

    def _consume(self, sending: Sending) -> None:
        def heard(consumer: pulsar.Consumer, message: pulsar.Message) -> None:
            sending.received.append(int(message.data()[:8]))
            consumer.acknowledge(message)

        self._client.subscribe(
            sending.topic,
            "s",
            initial_position=pulsar.InitialPosition.Earliest,
            message_listener=heard,
        )


def sessions(broker: BrokerProcess, traffic: Traffic) -> list[str]:
    """Who is connected since when: the same before and after if no client was cut off."""
    found = []
    for sending in traffic.all:
        path = sending.topic.replace("://", "/")
        stats = json.loads(broker.get(f"/admin/v2/{path}/stats")[1])
        clients = [*stats["publishers"], *stats["subscriptions"]["s"]["consumers"]]
        found += [f"{client['address']} {client['connectedSince']}" for client in clients]
    return found


def health(broker: BrokerProcess) -> tuple[int, str]:
    """Status and text of the health check."""
    status, text = broker.get("/admin/v2/brokers/health")
    return status, text.decode()


def metric(broker: BrokerProcess, name: str) -> float:
    """The sum of a metric over its labels; 0 if there is none."""
    page = broker.get("/metrics/")[1].decode()
    return sum(float(v) for v in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE))


def read_log(client: pulsar.Client, topic: str) -> list[tuple[int, Id]]:
    """The number and position of everything in a topic of a :class:`Traffic`."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        message = reader.read_next(10_000)
        found.append((int(message.data()[:8]), id_of(message.message_id())))
    reader.close()
    return found
