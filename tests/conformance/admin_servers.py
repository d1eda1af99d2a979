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
from headgate.base.units import NS_PER_MS
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import SimConsumer, World
from headgate.wire.codes import SubscriptionType
from tests.unit.admin.client import Answer, ask, ask_async, encode
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


class WholeServer:
    """A whole broker, in memory and in virtual time, with clients that speak the protocol."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.broker = world.run(world.start())
        self._app = AdminApp(AdminFacade(self.broker, world.observer), world.clock)
        self._slow: SimConsumer | None = None
        self.broker_id = self.broker.info.broker_id
        self.broker_url = self.broker.info.broker_url

    def ask(self, method: str, path: str, body: Any) -> Answer:
        return self._world.run(ask_async(self._app, method, path, encode(body)))

    def use_t1(self) -> None:
        self._world.run(self._use_t1())

    async def _use_t1(self) -> None:
        client = await self._world.connect()
        fast = await client.subscribe(T1, "fast", kind=SubscriptionType.SHARED, name="fast-c")
        self._slow = slow = await client.subscribe(T1, "slow", name="slow-c", queue_size=130)
        producer = await client.producer(T1, name="prod")
        for _ in range(20):
            await producer.send(b"", batch=[b"x" * 45] * 50)
        for _ in range(20):
            await fast.ack((await fast.receive()).position)
        for _ in range(2):
            await slow.ack((await slow.receive()).position)

    def leave_slow(self) -> None:
        if self._slow is not None and self._slow.is_open:
            self._world.run(self._slow.close())

    def use_pt2(self) -> None:
        self._world.run(self._use_pt2())

    async def _use_pt2(self) -> None:
        client = await self._world.connect()
        for index in range(3):
            name = parse_topic(PT2).partition_name(index).full
            await client.subscribe(name, "ps")
            producer = await client.producer(name)
            for _ in range(17):
                await producer.send(b"x" * 20)


@contextmanager
def whole_server() -> Iterator[AdminServer]:
    """The admin API over a whole broker."""
    with World() as world:
        # The recorded requests name times: pretend to live then.
        world.clock.step_wall(NOW_MS * NS_PER_MS - world.clock.wall_ns())
        yield WholeServer(world)


SERVERS: dict[str, Callable[[], AbstractContextManager[AdminServer]]] = {
    "fake": fake_server,
    "whole": whole_server,
}
"""By name; a test is run against each."""
