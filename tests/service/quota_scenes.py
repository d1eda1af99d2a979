"""What the tests of backlog quotas share: brokers with a quota, what a producer was told of each
message, what a topic holds in truth, and how full it was at every instant."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pulsar

from headgate.record.codec import decode
from headgate.record.fields import Kind
from tests.service.clients import client_of, wait_until
from tests.service.measuring import Asking, Rest

TELEMETRY = "persistent://headgate/telemetry/samples"
CONFIGURATION = "/admin/v2/brokers/configuration"
PARK_MS = "headgateHoldParkMs"
HOLD, REFUSE, EVICT = "producer_request_hold", "producer_exception", "consumer_backlog_eviction"

OVERHEAD_BYTES = 200
"""More than an entry weighs beside its payload: metadata, checksum, a producer's name."""

RELEASE_PERCENT, EVICTION_PERCENT = 95, 90
QUIET_S = 0.4
"""How long something that must not happen is waited for."""


RETAINED = {
    "defaultRetentionTimeInMinutes": 60,
    "defaultRetentionSizeInMB": -1,
    "brokerDeleteInactiveTopicsEnabled": "false",
}
"""Settings with which messages and topics outlive a test on a slow machine: otherwise a sweep may
trim what was acknowledged, and deletes a topic that nobody has used for a minute."""


def words(**settings: object) -> list[str]:
    """Settings as they go to the command line."""
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


@contextmanager
def setting(rest: Rest, key: str, value: object) -> Iterator[None]:
    """A dynamic setting has another value inside."""
    rest.ask("POST", f"{CONFIGURATION}/{key}/{value}")
    try:
        yield
    finally:
        rest.ask("DELETE", f"{CONFIGURATION}/{key}")


class Sending:
    """One producer, and what it was told of each message, in the order in which it was told."""

    def __init__(
        self,
        client: pulsar.Client,
        topic: str,
        name: str,
        payload_bytes: int,
        **options: Any,
    ) -> None:
        defaults = {"max_pending_messages": 10_000, "send_timeout_millis": 60_000}
        self.name = name
        self.producer = client.create_producer(topic, producer_name=name, **(defaults | options))
        self.sent: list[str] = []
        self.told: list[tuple[str, pulsar.Result, float]] = []
        """Message, result, when (monotonic)."""
        self._payload_bytes = payload_bytes

    def send(self, count: int) -> None:
        """Hand over so many messages; returns at once."""
        for _ in range(count):
            text = f"{self.name} {len(self.sent):06}"
            self.sent.append(text)
            payload = text.encode().ljust(self._payload_bytes)
            self.producer.send_async(payload, self._teller(text))

    def _teller(self, text: str) -> Callable[[pulsar.Result, pulsar.MessageId], None]:
        def tell(result: pulsar.Result, _: pulsar.MessageId) -> None:
            self.told.append((text, result, time.monotonic()))

        return tell

    def finish(self, timeout_s: float = 30.0) -> None:
        """Wait until it was told of every message."""
        wait_until(lambda: len(self.told) == len(self.sent), timeout_s)

    def settle(self) -> int:
        """Wait until it is told nothing more for a while; returns how many it was told of."""
        while True:
            before = len(self.told)
            time.sleep(QUIET_S)
            if len(self.told) == before:
                return before

    def with_result(self, result: pulsar.Result = pulsar.Result.Ok) -> list[str]:
        """The messages that ended so, in the order in which it was told."""
        return [text for text, each, _ in list(self.told) if each == result]


def fill(sending: Sending, count: int) -> int:
    """Send more than the quota allows; returns how many messages were stored before the hold."""
    sending.send(count)
    accepted = sending.settle()
    assert 0 < accepted < len(sending.sent)
    return accepted


def stored(url: str, topic: str) -> list[str]:
    """Every message that the topic holds, from its first on: of acknowledged ones those that its
    broker retains, as :data:`RETAINED` makes it do for an hour."""
    with client_of(url) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(10_000).data().decode().rstrip())
        return found


class Samples(Asking):
    """The topic's statistics, again and again, until it is left."""

    def __init__(
        self, admin_url: str, topic: str, look: Callable[[Any], Any], pause_s: float = 0.01
    ) -> None:
        """``look`` takes what is wanted out of the statistics."""
        super().__init__(admin_url, pause_s)
        self.all: list[tuple[float, float, Any]] = []
        """When asked, when answered, what."""
        self._topic, self._look = topic, look

    @property
    def values(self) -> list[Any]:
        """What was found, in order."""
        return [value for _, _, value in list(self.all)]

    def ask(self, rest: Rest) -> None:
        """Ask once more."""
        asked = time.monotonic()
        value = self._look(rest.topic(self._topic))
        self.all.append((asked, time.monotonic(), value))


def connected(stats: Any) -> list[tuple[str, ...]]:
    """What identifies the topic's producers: name, connection, time. It changes when one is closed
    and comes back."""
    return [(p["producerName"], p["address"], p["connectedSince"]) for p in stats["publishers"]]


def backlog_bytes(stats: Any) -> int:
    """The topic's backlog as statistics have it."""
    size: int = stats["backlogSize"]
    return size


def quota_events(url: str, topic: str) -> list[dict[str, Any]]:
    """What was recorded of the topic's quotas until now, in order."""
    return recorded_events(url, topic, EVENTS)


def recorded_events(url: str, topic: str, kinds: Sequence[str]) -> list[dict[str, Any]]:
    """The topic's events of some kinds that were recorded until now, in order.

    A message on a topic of its own is waited for, so that all that came before it is there.
    """
    marker = f"persistent://public/default/marker-{time.monotonic_ns()}"
    found = []
    with client_of(url) as client:
        reader = client.create_reader(TELEMETRY, pulsar.MessageId.earliest)
        client.create_producer(marker).send(b"until now")
        while True:
            columns = decode(reader.read_next(20_000).data()).columns
            events = columns.get(Kind.EVENT, {})
            for number, name in enumerate(events.get("topic", ())):
                if name == topic and events["event"][number] in kinds:
                    found.append(
                        {
                            "event": events["event"][number],
                            **json.loads(str(events["inputs"][number])),
                            "outcome": json.loads(str(events["outcome"][number])),
                        }
                    )
            if marker in columns.get(Kind.TOPIC, {}).get("topic", ()):
                return found


EVENTS = ("quota_exceeded", "quota_released", "eviction")
