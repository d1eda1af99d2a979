"""Loads for the adaptive controller in a simulated broker: who publishes and who consumes, at what
rate, over which connection."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.control.adaptive import AdaptiveThrottle
from headgate.engine.topic import Topic
from headgate.metadata.policies import BacklogQuota, QuotaPolicyName
from headgate.testing import SimClient, World
from tests.unit.broker.playing import TOPIC

ON = {"adaptivePublisherThrottlingEnabled": "true", "headgateTelemetryEnabled": "false"}
BODY = bytes(1_000)
TICK_S = 0.02
WINDOW = 1_000
"""Unanswered messages at which a client waits."""


class FakeMemory:
    """Memory that a test fills."""

    def __init__(self) -> None:
        self.limit_bytes = 1_000
        self.used = 0

    def used_bytes(self) -> int:
        return self.used


class Publisher:
    """Sends at a rate, while it has no more than its window unanswered."""

    def __init__(self, world: World, client: SimClient, topic: str, per_s: float) -> None:
        self.world = world
        self.client = client
        self.topic = topic
        self.per_s = per_s
        self.unanswered = 0
        self.sent = 0
        self.received = 0
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        producer = await self.client.producer(self.topic)
        owed = 0.0
        while True:
            owed = min(owed + self.per_s * TICK_S, max(1.0, self.per_s))
            while owed >= 1 and self.unanswered < WINDOW:
                owed -= 1
                self.unanswered += 1
                self.sent += 1
                producer.send_nowait(BODY).add_done_callback(self._answered)
            await asyncio.sleep(TICK_S)

    def _answered(self, future: asyncio.Future[object]) -> None:
        self.unanswered -= 1
        if not future.cancelled() and future.exception() is None:
            self.received += 1

    def stop(self) -> None:
        self._task.cancel()


class Reader:
    """Consumes and acknowledges at a rate."""

    def __init__(self, client: SimClient, topic: str, per_s: float) -> None:
        self.client = client
        self.topic = topic
        self.per_s = per_s
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        consumer = await self.client.subscribe(self.topic, "s")
        owed = 0.0
        while True:
            owed = min(owed + self.per_s * TICK_S, max(1.0, self.per_s))
            while owed >= 1 and consumer.queue:
                owed -= 1
                consumer.ack_nowait(consumer.receive_nowait().position)
            await asyncio.sleep(TICK_S)

    def stop(self) -> None:
        self._task.cancel()


def controller(world: World) -> AdaptiveThrottle:
    found = world.broker.adaptive
    assert found is not None
    return found


async def live(world: World, name: str = TOPIC) -> Topic:
    """The topic, made if need be."""
    return await world.broker.registry.get_or_create(parse_topic(name), create=True)


async def set_quota(
    world: World,
    limit_bytes: int,
    *,
    topic: str = TOPIC,
    policy: QuotaPolicyName = "producer_request_hold",
    limit_s: int = -1,
) -> Topic:
    """Put backlog quotas on a topic."""
    found = await live(world, topic)
    quotas = {
        "destination_storage": BacklogQuota(policy, limit_size=limit_bytes),
        "message_age": BacklogQuota(policy, limit_time=limit_s),
    }
    catalog = world.broker.catalog
    change = catalog.plan_topic_policies(parse_topic(topic), backlog_quotas=quotas)  # type: ignore[arg-type]
    await world.broker.writer.commit(change)
    return found


async def change_setting(world: World, name: str, value: str) -> None:
    """As ``brokers update-dynamic-config``."""
    await world.broker.writer.commit(world.broker.catalog.plan_setting(name, value))
