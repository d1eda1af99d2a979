"""``kill -9`` of the real process under load, several times on one directory.

Each round has its own clients, which end before the broker is back: an unmodified client would
send again what got no receipt, and then "once" could not be told. What a round promised is judged
after the next start:

- every message with a receipt is in the log once, under the id of its receipt, and each
  producer's messages are in the order they were sent in;
- ids only go up, over restarts too;
- what was acknowledged more than a second before the kill is not delivered again, also if it is a
  message of a batch whose others are not acknowledged;
- what was not acknowledged is.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pulsar

from tests.service.process import BrokerProcess

ROUNDS = 3
LOAD_S = 1.5
LOAD_S_MAX = 30.0
RECEIPTS_MIN, ACKS_MIN = 300, 30
TOPIC = "persistent://public/default/killed"
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
SILENT = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
"""Of a client whose broker is killed, which tries again ten times a second."""

ACK_GROUPING_S = 0.15
"""The client gathers acknowledgements for up to 100 ms before it sends them."""

ACK_SAFE_S = 0.8
"""An acknowledgement that has reached the broker is on disk after this long: with the client's
grouping, what is older than a second is safe."""

KINDS = {"shared": pulsar.ConsumerType.Shared, "exclusive": pulsar.ConsumerType.Exclusive}

Id = tuple[int, int, int]


def id_of(message_id: pulsar.MessageId) -> Id:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()


@dataclass
class Round:
    """What the clients of one round were told by the broker."""

    receipts: dict[str, Id] = field(default_factory=dict)
    """Payload to id."""
    sent: dict[str, list[str]] = field(default_factory=dict)
    """By producer: every payload handed to the client, in order."""
    acked: dict[str, dict[str, float]] = field(default_factory=dict)
    """By subscription: payload to when it was acknowledged."""
    probes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By subscription: when a request went out on the consumer's connection, when its answer
    came: what was sent before the request, the broker has by then."""
    killed_at: float = 0.0

    def safe_acks(self, subscription: str) -> set[str]:
        """Payloads whose acknowledgement the kill may not undo."""
        arrived = [
            asked - ACK_GROUPING_S
            for asked, answered in list(self.probes[subscription])
            if answered <= self.killed_at - ACK_SAFE_S
        ]
        newest = max(arrived, default=0.0)
        # The consumer's thread writes on: copying a dictionary is one step, listing it is not.
        acked = self.acked[subscription].copy()
        return {payload for payload, at in acked.items() if at <= newest}


class Load:
    """Producers and consumers that run until :meth:`end`."""

    def __init__(self, url: str, number: int) -> None:
        self.told = Round()
        self._url = url
        self._number = number
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._clients: list[pulsar.Client] = []

    def begin(self) -> None:
        for name, batched in (("one", False), ("two", False), ("three", True)):
            self._run(self._produce, f"{name}-{self._number}", batched)
        for name, kind in KINDS.items():
            self._run(self._consume, name, kind)

    def work(self) -> None:
        """Return after a while, and not before there is something to judge."""
        begin = time.monotonic()
        while time.monotonic() < begin + LOAD_S or not self._is_enough():
            assert time.monotonic() < begin + LOAD_S_MAX, "the load came to nothing"
            time.sleep(0.05)
        self.told.killed_at = time.monotonic()

    def _is_enough(self) -> bool:
        told = self.told
        told.killed_at = time.monotonic()
        acked = min(len(told.safe_acks(name)) for name in KINDS) if len(told.probes) > 1 else 0
        return len(told.receipts) > RECEIPTS_MIN and acked > ACKS_MIN

    def end(self) -> None:
        """The broker is dead: end the clients without letting them come back."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        for client in self._clients:
            client.shutdown()

    def _run(self, work: Callable[..., None], name: str, what: object) -> None:
        client = pulsar.Client(self._url, operation_timeout_seconds=5, logger=SILENT)
        self._clients.append(client)
        thread = threading.Thread(target=work, args=(client, name, what), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _produce(self, client: pulsar.Client, name: str, batched: bool) -> None:
        producer = client.create_producer(
            TOPIC,
            producer_name=name,
            batching_enabled=batched,
            batching_max_messages=20,
            batching_max_publish_delay_ms=2,
            max_pending_messages=100_000,
        )
        sent = self.told.sent[name] = []
        receipts = self.told.receipts

        def receipt(payload: str) -> Callable[[pulsar.Result, pulsar.MessageId], None]:
            def told(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
                if result == pulsar.Result.Ok:
                    receipts[payload] = id_of(message_id)

            return told

        while not self._stop.is_set():
            for _ in range(10):
                payload = f"{name} {len(sent):08}"
                sent.append(payload)
                producer.send_async(payload.encode().ljust(200), receipt(payload))
            self._stop.wait(0.01)

    def _consume(self, client: pulsar.Client, name: str, kind: pulsar.ConsumerType) -> None:
        consumer = client.subscribe(
            TOPIC,
            name,
            kind,
            initial_position=pulsar.InitialPosition.Earliest,
            batch_index_ack_enabled=True,
        )
        acked = self.told.acked[name] = {}
        probes = self.told.probes[name] = []
        probe = threading.Thread(target=self._probe, args=(consumer, probes), daemon=True)
        probe.start()
        count = 0
        while not self._stop.is_set():
            try:
                message = consumer.receive(100)
            except pulsar.Timeout:
                continue
            count += 1
            if count % 7 == 0 and kind is pulsar.ConsumerType.Shared:
                continue  # a hole, which has to come back
            payload = message.data().decode().rstrip()
            if kind is pulsar.ConsumerType.Shared:
                consumer.acknowledge(message)
            elif count % 10 == 0:
                consumer.acknowledge_cumulative(message)
            else:
                continue
            acked[payload] = time.monotonic()
        probe.join(30)

    def _probe(self, consumer: pulsar.Consumer, probes: list[tuple[float, float]]) -> None:
        while not self._stop.is_set():
            asked = time.monotonic()
            try:
                consumer.get_last_message_id()
            except pulsar.PulsarException:
                return  # killed
            probes.append((asked, time.monotonic()))
            self._stop.wait(0.05)


def read_everything(client: pulsar.Client) -> list[tuple[str, Id]]:
    """The whole log of the topic, from its first entry on."""
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        message = reader.read_next(10_000)
        found.append((message.data().decode().rstrip(), id_of(message.message_id())))
    reader.close()
    return found


def drain(client: pulsar.Client, name: str, kind: pulsar.ConsumerType, last: str) -> list[Id]:
    """The messages that a subscription still owes, up to ``last``."""
    consumer = client.subscribe(TOPIC, name, kind, receiver_queue_size=50_000)
    found: list[Id] = []
    while True:
        message = consumer.receive(20_000)
        found.append(id_of(message.message_id()))
        if message.data().decode().rstrip() == last:
            consumer.close()
            return found


def check_log(log: list[tuple[str, Id]], rounds: list[Round]) -> None:
    """Every receipt is true, nothing is there twice, every producer's order is its own."""
    counts = Counter(payload for payload, _ in log)
    assert max(counts.values()) == 1
    ids = [found for _, found in log]
    assert ids == sorted(set(ids))
    by_payload = dict(log)
    for told in rounds:
        for payload, promised in told.receipts.items():
            assert by_payload.get(payload) == promised
        for name, sent in told.sent.items():
            mine = [payload for payload, _ in log if payload.startswith(f"{name} ")]
            # What is stored is the beginning of what was sent: nothing is left out in between.
            assert mine == sent[: len(mine)]


def check_ids(rounds: list[Round]) -> None:
    """No id of an earlier round is given out again, nor anything below one."""
    newest: Id = (-1, -1, -1)
    for told in rounds:
        if told.receipts:
            assert min(told.receipts.values()) > newest
            newest = max(told.receipts.values())


def done_by(acked: set[str], log: list[tuple[str, Id]], name: str) -> set[Id]:
    """The messages that these acknowledgements of one connection end."""
    if name == "exclusive":  # cumulative: the last one stands for all before it
        last = max((at for at, (payload, _) in enumerate(log) if payload in acked), default=-1)
        return {found for _, found in log[: last + 1]}
    return {found for payload, found in log if payload in acked}


def check_acks(
    owed: list[Id], log: list[tuple[str, Id]], told: Round, before: set[Id], name: str
) -> set[Id]:
    """What must be done is, nothing else is; returns the messages that are done.

    ``before`` are the messages that were done after the last start: they stay so.
    """
    everything = {found for _, found in log}
    done = everything - set(owed)
    must = done_by(told.safe_acks(name), log, name)
    may = done_by(set(told.acked[name]), log, name)
    assert must, "the round was too short to judge acknowledgements"
    assert done >= before | must
    assert done <= before | may
    assert owed == sorted(owed)
    whole, open_ids = {found[:2] for found in done}, {found[:2] for found in owed}
    assert name == "exclusive" or whole & open_ids, "no batch was acknowledged in part"
    return done


def test_what_was_promised_survives_kill_nine_under_load(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker().start()
    rounds: list[Round] = []
    done: dict[str, set[Id]] = {"shared": set(), "exclusive": set()}
    for number in range(ROUNDS):
        load = Load(broker.service_url, number)
        load.begin()
        load.work()
        broker.kill()
        load.end()
        rounds.append(load.told)

        broker.start()
        client = pulsar.Client(broker.service_url, logger=QUIET)
        last = f"last-{number}"
        client.create_producer(TOPIC).send(last.encode())
        log = read_everything(client)
        assert log[-1][0] == last
        check_log(log, rounds)
        check_ids(rounds)
        for name, kind in KINDS.items():
            owed = drain(client, name, kind, last)
            done[name] = check_acks(owed, log, load.told, done[name], name)
        client.close()
