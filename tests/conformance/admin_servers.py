"""Brokers whose admin API the recorded exchanges are replayed against.

Each has a way to ask it and a few things to do with real (or pretended) clients between the
recorded requests. Add a broker here to hold it to the same record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from headgate.admin.app import AdminApp
from headgate.base.names import parse_topic
from tests.unit.admin.client import Answer, ask
from tests.unit.admin.fake_facade import NOW_MS, FakeFacade, FakeSubscription

T1 = "persistent://acme/ns/t1"
PT2 = "persistent://acme/b2/pt2"


class AdminServer(Protocol):
    """One broker under test."""

    broker_id: str
    """``host:port`` of its web address; stands for the recorded 127.0.0.1:8080."""
    broker_url: str
    """Its ``pulsar://host:port``; stands for the recorded pulsar://127.0.0.1:6650."""

    def ask(self, method: str, path: str, body: Any) -> Answer:
        """Send one request. ``body``: ``None``, bytes, or a value to send as JSON."""

    def use_t1(self) -> None:
        """On T1: a producer; ``fast`` (Shared, all consumed) and ``slow`` (Exclusive, existing,
        some consumed), each with a consumer; 20 batches of 50 messages; all stay connected."""

    def leave_slow(self) -> None:
        """The consumer of ``slow`` disconnects."""

    def use_pt2(self) -> None:
        """On each partition of PT2: a producer, ``ps`` (Exclusive) with a consumer, a backlog."""


class FakeServer:
    """The fake facade of the unit tests."""

    def __init__(self) -> None:
        self.facade = FakeFacade()
        self._app = AdminApp(self.facade, self.facade.clock)
        self.broker_id = self.facade.info.broker_id
        self.broker_url = self.facade.info.broker_url

    def ask(self, method: str, path: str, body: Any) -> Answer:
        return ask(self._app, method, path, body)

    def use_t1(self) -> None:
        topic = self.facade.topic(parse_topic(T1))
        topic.producers.append("prod")
        topic.entries_ms.extend([NOW_MS] * 20)
        topic.subscriptions["fast"] = FakeSubscription(20, ["fast-c"], "Shared")
        topic.subscriptions["slow"].next = 2
        topic.subscriptions["slow"].consumers.append("slow-c")

    def leave_slow(self) -> None:
        self.facade.topic(parse_topic(T1)).subscriptions["slow"].consumers.clear()

    def use_pt2(self) -> None:
        for index in range(3):
            topic = self.facade.topic(parse_topic(PT2).partition_name(index))
            topic.producers.append(f"producer-{index}")
            topic.entries_ms.extend([NOW_MS] * 17)
            topic.subscriptions["ps"] = FakeSubscription(0, ["c"])


@contextmanager
def fake_server() -> Iterator[AdminServer]:
    """The admin API over the fake facade."""
    yield FakeServer()


SERVERS: dict[str, Callable[[], AbstractContextManager[AdminServer]]] = {"fake": fake_server}
"""By name; a test is run against each."""
