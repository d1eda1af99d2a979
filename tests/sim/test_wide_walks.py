"""No iteration of the loop looks at all subscriptions of a wide topic, whoever asks for them.

A whole broker in virtual time. The looks are counted where they happen: in the subscriptions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.names import parse_topic
from headgate.broker.service import Broker
from headgate.engine.cursor import Cursor
from headgate.engine.subscription import Subscription
from headgate.facade.admin_facade import AdminFacade
from headgate.observe.observer import Observer
from headgate.observe.stats.fields import StatsOptions
from headgate.telemetry.prometheus.render import render
from headgate.telemetry.records.publisher import TelemetryPublisher
from headgate.testing import World

WIDE = parse_topic("persistent://public/default/wide")
SUBSCRIPTIONS = 2_000
LOOKS_MAX = 700
"""In one iteration: a slice has 256 units, and a walk looks at one to four subscriptions with one
unit, some of them twice."""


class Looks:
    """Looks at subscriptions by iteration of the loop."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0

    def add(self) -> None:
        self.now += 1
        self.total += 1

    def iteration_ended(self) -> None:
        self.most = max(self.most, self.now)
        self.now = 0


@contextmanager
def counted(world: World, patch: pytest.MonkeyPatch) -> Iterator[Looks]:
    looks = Looks()
    backlog_bytes: Any = vars(Cursor)["backlog_bytes"]

    def look(subscription: Subscription) -> int:
        looks.add()
        found: int = backlog_bytes.fget(subscription)
        return found

    patch.setattr(Cursor, "backlog_bytes", property(look))
    run_once = world.loop._run_once  # type: ignore[attr-defined]

    def once() -> None:
        run_once()
        looks.iteration_ended()

    patch.setattr(world.loop, "_run_once", once)
    yield looks


class Asked:
    """A broker with one wide topic, and what is asked of it."""

    def __init__(self, broker: Broker, publisher: TelemetryPublisher, facade: AdminFacade) -> None:
        self.broker = broker
        self.publisher = publisher
        self.facade = facade

    async def telemetry(self) -> None:
        await self.publisher.publish_window(self.broker.clock.wall_ns())

    async def metrics(self) -> None:
        await render(self.broker)

    async def stats(self) -> None:
        await self.facade.topic_stats(WIDE, StatsOptions())

    async def internal_stats(self) -> None:
        await self.facade.internal_stats(WIDE, metadata=False)

    async def explain(self) -> None:
        await self.facade.explain_topic(WIDE, per_partition=False)
        await self.facade.explain_top(10)


ASKED: list[Callable[[Asked], Awaitable[None]]] = [
    Asked.telemetry,
    Asked.metrics,
    Asked.stats,
    Asked.internal_stats,
    Asked.explain,
]


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_a_wide_topic_is_looked_at_in_slices(
    ask: Callable[[Asked], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> Looks:
        broker = await world.start()
        publisher = TelemetryPublisher(broker, entropy=bytes)
        asked = Asked(broker, publisher, AdminFacade(broker, Observer(broker)))
        client = await world.connect()
        producer = await client.producer(str(WIDE))
        wide = broker.engine.topics[str(WIDE)]
        for number in range(SUBSCRIPTIONS):
            wide.add_subscription(f"w{number}", AckSet(-1), cursor_id=number + 1)
        await asyncio.gather(*[producer.send_nowait(b"x") for _ in range(3)])
        await asyncio.sleep(1)
        with counted(world, monkeypatch) as looks:
            await ask(asked)
        return looks

    with World(1) as world:
        looks = world.run(story(world))
    assert looks.most <= LOOKS_MAX
