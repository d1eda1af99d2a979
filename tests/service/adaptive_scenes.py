"""What the tests of adaptive publish throttling share: producers and consumers that keep a rate,
and what the broker says of its controller."""

from __future__ import annotations

import re
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, Self

import pulsar

from tests.service.clients import EARLIEST, SHARED
from tests.service.measuring import Rest, topic_path
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import CONFIGURATION, HOLD, Sending, recorded_events

PREFIX = "adaptivePublisherThrottling"
PAYLOAD_BYTES = 1_000


class Worker(ABC):
    """Does something at a rate, in a thread, until it is left."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @abstractmethod
    def act(self) -> None:
        """Do it once."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            # What the machine made it late by is caught up, up to a tenth of a second.
            due = max(due, time.monotonic() - 0.1) + 1 / self.per_s
            self.act()


class Publishing(Worker):
    """A producer that sends at a rate, whatever the broker does with it."""

    def __init__(
        self, client: pulsar.Client, topic: str, per_s: float, name: str = "p", at_once: int = 1
    ) -> None:
        super().__init__(per_s / at_once)
        self._at_once = at_once
        self.sending = Sending(client, topic, name, PAYLOAD_BYTES, max_pending_messages=100_000)

    def act(self) -> None:
        self.sending.send(self._at_once)

    @property
    def waiting(self) -> int:
        """Messages that it was told nothing of."""
        return len(self.sending.sent) - len(self.sending.told)


class Consuming(Worker):
    """A consumer that acknowledges at a rate."""

    def __init__(self, client: pulsar.Client, topic: str, per_s: float) -> None:
        super().__init__(per_s)
        self.taken = 0
        self._consumer = client.subscribe(topic, "s", SHARED, initial_position=EARLIEST)

    def act(self) -> None:
        try:
            message = self._consumer.receive(100)
        except pulsar.Timeout:
            return
        self._consumer.acknowledge(message)
        self.taken += 1


def change(rest: Rest, **values: object) -> None:
    """Set dynamic settings of the controller, named without their prefix."""
    for name, value in values.items():
        rest.ask("POST", f"{CONFIGURATION}/{PREFIX}{name}/{value}")


def set_size_quota(rest: Rest, topic: str, limit_bytes: int) -> None:
    """Hold a topic's producers at so much backlog."""
    body = {"limitSize": limit_bytes, "policy": HOLD}
    rest.ask("POST", f"{topic_path(topic)}/backlogQuota", body)


def figures(broker: BrokerProcess, topic: str = "") -> dict[str, float]:
    """The controller's series on /metrics, by the end of their names: of one topic, or the
    broker's."""
    found = {}
    for line in broker.get("/metrics")[1].decode().splitlines():
        match = re.fullmatch(r"headgate_adaptive_(\w+)\{(.*)\} (\S+)", line)
        if match is None:
            continue
        labels = match[2]
        if f'topic="{topic}"' in labels if topic else "topic=" not in labels:
            found[match[1]] = float(match[3])
    return found


def parked_s(broker: BrokerProcess, topic: str, cause: str) -> float:
    """Seconds in which messages of a topic waited for one cause."""
    for line in broker.get("/metrics")[1].decode().splitlines():
        if line.startswith("headgate_publish_parked_seconds_total{") and (
            f'topic="{topic}"' in line and f'cause="{cause}"' in line
        ):
            return float(line.rsplit(" ", 1)[1])
    return 0.0


def explained(rest: Rest, topic: str) -> Any:
    """What explain says of the controller and a topic."""
    path = topic.replace("://", "/")
    return rest.ask("GET", f"/admin/v2/headgate/explain/{path}")["adaptive"]


def decisions(url: str, topic: str) -> list[dict[str, Any]]:
    """What was recorded of the controller's decisions about a topic until now, in order."""
    return recorded_events(url, topic, ("controller_decision",))
