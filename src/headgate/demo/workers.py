"""The client processes of the demo: ``python -m headgate.demo.workers SPEC``.

``SPEC`` is JSON: ``backlogs``, ``producers`` and ``consumers``, each with the URL of its broker;
``token_path`` is a file with the token of them all, or empty. The process publishes the backlogs
and writes ``ready`` when all clients are connected. It publishes at its rates after it reads
``go``, and ends when its standard input ends, so it never outlives the demo. The client is the
unmodified ``pulsar-client``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pulsar

from headgate.demo.pace import Pace, PhasedPace

_TICK_S: Final = 0.02
"""Producers publish what is due at this interval."""
_PAYLOAD: Final = b"x" * 200
_PENDING_MAX: Final = 100_000
"""More messages than ever wait for their receipts."""
_RECEIVE_MS: Final = 500
"""How long a consumer waits for a message at a time."""


@dataclass(frozen=True, slots=True)
class ProducerSpec:
    """One producer. Messages go out one by one, as limits count them."""

    service_url: str
    topic: str
    rates_per_s: tuple[int, ...]
    """Each for ``phase_s`` seconds, the last one for ever."""
    phase_s: float
    pending_max: int | None = None
    """Bound on messages without a receipt; messages that are due while it is reached are dropped.
    None: no bound."""


@dataclass(frozen=True, slots=True)
class BacklogSpec:
    """Messages to publish before the other clients connect."""

    service_url: str
    topic: str
    messages: int


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """One consumer."""

    service_url: str
    topic: str
    subscription: str
    rate_per_s: int | None
    """The rate that it processes; None: as fast as messages come."""
    queue_size: int


@dataclass(frozen=True, slots=True)
class WorkSpec:
    """The work of one process."""

    producers: tuple[ProducerSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    backlogs: tuple[BacklogSpec, ...] = ()
    token_path: str = ""
    """File with the token of all clients; empty: they have no credentials."""

    def to_json(self) -> str:
        """For the command line of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WorkSpec:
        """The inverse of :meth:`to_json`."""
        document = json.loads(text)
        return cls(
            tuple(
                ProducerSpec(**each | {"rates_per_s": tuple(each["rates_per_s"])})
                for each in document["producers"]
            ),
            tuple(ConsumerSpec(**each) for each in document["consumers"]),
            tuple(BacklogSpec(**each) for each in document["backlogs"]),
            document["token_path"],
        )


class Clients:
    """One client for each broker."""

    def __init__(self, token_path: str = "") -> None:
        """``token_path`` is a file with the token of all; empty: they have no credentials."""
        self._token_path = token_path
        self._by_url: dict[str, Any] = {}

    def get(self, url: str) -> Any:
        """The client of a broker, created on first use."""
        if url not in self._by_url:
            logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
            sent = pulsar.AuthenticationToken(self._token) if self._token_path else None
            self._by_url[url] = pulsar.Client(url, authentication=sent, logger=logger)
        return self._by_url[url]

    def _token(self) -> str:
        return Path(self._token_path).read_text().strip()


def consume(consumer: Any, rate_per_s: int | None) -> None:
    """Process and acknowledge one message after another, for ever; a daemon thread's work."""
    pace = None
    while True:
        try:
            message = consumer.receive(timeout_millis=_RECEIVE_MS)
        except pulsar.Timeout:
            pace = None
            continue
        if rate_per_s is not None:
            if pace is None:
                pace = Pace(rate_per_s, time.monotonic())
            wait_s = pace.wait_s(time.monotonic())
            if wait_s:
                time.sleep(wait_s)
        consumer.acknowledge(message)


def publish_all(producer: Any, messages: int) -> None:
    """Publish messages as fast as the broker accepts them; return when all are stored.

    Raises:
        RuntimeError: a message was refused.
    """
    refused: list[Any] = []
    for begin in range(0, messages, _PENDING_MAX):
        for _ in range(begin, min(begin + _PENDING_MAX, messages)):
            producer.send_async(_PAYLOAD, partial(_note, refused))
        producer.flush()
    _check(refused)


def publish(producers: list[tuple[Any, ProducerSpec]], stop: threading.Event) -> None:
    """Publish at each producer's rates until ``stop``.

    Raises:
        RuntimeError: a message was refused.
    """
    begin_s = time.monotonic()
    refused: list[Any] = []
    all_sending = [_PacedProducer(producer, spec, begin_s, refused) for producer, spec in producers]
    while not stop.wait(_TICK_S):
        now_s = time.monotonic()
        for sending in all_sending:
            sending.send_due(now_s)
        if not stop.is_set():
            _check(refused)


class _PacedProducer:
    """A producer that publishes at its pace."""

    def __init__(
        self, producer: Any, spec: ProducerSpec, begin_s: float, refused: list[Any]
    ) -> None:
        self._producer = producer
        self._pace = PhasedPace(spec.rates_per_s, spec.phase_s, begin_s)
        self._pending_max = _PENDING_MAX if spec.pending_max is None else spec.pending_max
        self._refused = refused
        self._sent = self._answered = 0

    def send_due(self, now_s: float) -> None:
        for _ in range(self._pace.due(now_s)):
            if self._sent - self._answered >= self._pending_max:
                return
            self._sent += 1
            self._producer.send_async(_PAYLOAD, self._count)

    def _count(self, result: Any, message_id: Any) -> None:
        # Only the client's thread comes here.
        self._answered += 1
        _note(self._refused, result, message_id)


def _note(refused: list[Any], result: Any, _: Any) -> None:
    if result != pulsar.Result.Ok:
        refused.append(result)


def _check(refused: list[Any]) -> None:
    if refused:
        raise RuntimeError(f"a message was refused: {refused[0]}")


def _producer(clients: Clients, service_url: str, topic: str) -> Any:
    return clients.get(service_url).create_producer(
        topic, batching_enabled=False, block_if_queue_full=False, max_pending_messages=_PENDING_MAX
    )


def work(
    spec: WorkSpec, clients: Clients, stop: threading.Event, start_event: threading.Event
) -> None:
    """Connect all clients, write ``ready``, work until ``stop``; publishing waits for ``go``."""
    for backlog in spec.backlogs:
        producer = _producer(clients, backlog.service_url, backlog.topic)
        publish_all(producer, backlog.messages)
        producer.close()
    for each in spec.consumers:
        consumer = clients.get(each.service_url).subscribe(
            each.topic,
            each.subscription,
            consumer_type=pulsar.ConsumerType.Shared,
            receiver_queue_size=each.queue_size,
        )
        threading.Thread(target=partial(consume, consumer, each.rate_per_s), daemon=True).start()
    producers = [
        (_producer(clients, each.service_url, each.topic), each) for each in spec.producers
    ]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    start_event.wait()
    if producers:
        publish(producers, stop)
    stop.wait()


def _read_commands(stop: threading.Event, start_event: threading.Event) -> None:
    """Read commands: ``go``, and the end of the input, which means stop."""
    for line in sys.stdin:
        if line.strip() == "go":
            start_event.set()
    stop.set()
    start_event.set()
    # Clients would wait for what is in flight; the demo deletes it anyway.
    os._exit(0)


def main() -> None:
    """Run the process."""
    spec = WorkSpec.from_json(sys.argv[1])
    stop, start_event = threading.Event(), threading.Event()
    threading.Thread(target=_read_commands, args=(stop, start_event), daemon=True).start()
    try:
        work(spec, Clients(spec.token_path), stop, start_event)
    except Exception as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
