"""Delayed messages over power cuts, unloads and leaving consumers: none early, late or lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.engine.types import SubscriptionType
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import SimClient, SimConsumer, World
from headgate.testing.consumer import ReceivedMessage

TOPIC = "persistent://public/default/orders"
NAME = "s"
LATE_MS_MAX = 50
SHARED = SubscriptionType.SHARED


class Story:
    """Sends messages whose payload says when they are due, and checks each arrival."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(seed)
        self.cache_bytes = 4_000 if seed % 2 else None
        """With a small cache nearly every due message is read from the disk."""
        self.sent: dict[bytes, int] = {}
        """When each message is due whose receipt came."""
        self.seen: set[bytes] = set()
        self.ready_since_ms = 0
        """Since when a consumer was ready without a break."""

    def arrived(self, consumer: SimConsumer, message: ReceivedMessage) -> None:
        payload = message.payload
        self.seen.add(payload)
        due_ms = int(payload.split(b":")[1])
        now_ms = self.world.wall_ms()
        assert now_ms >= due_ms, "early"
        # What was published before the consumer came may be read first.
        if due_ms > self.ready_since_ms + 1_000 and message.redelivery_count == 0:
            assert now_ms - due_ms <= LATE_MS_MAX, f"{now_ms - due_ms} ms late"
        consumer.receive_nowait()
        if self.rng.random() < 0.9:
            consumer.ack_nowait(message.position)

    async def start(self) -> SimClient:
        broker = await self.world.start()
        if self.cache_bytes is not None:
            broker.engine.cache.size_bytes_max = self.cache_bytes
        return await self.world.connect()

    async def consumer(self, client: SimClient) -> SimConsumer:
        consumer = await client.subscribe(TOPIC, NAME, kind=SHARED)
        consumer.on_arrival = lambda message: self.arrived(consumer, message)
        self.ready_since_ms = self.world.wall_ms()
        return consumer

    async def publish(self, client: SimClient, count: int) -> None:
        producer = await client.producer(TOPIC)
        futures = []
        for _ in range(count):
            delay_ms = self.rng.choice((0, 0, 300, self.rng.randrange(1, 8_000)))
            due_ms = self.world.wall_ms() + delay_ms
            payload = b"%d:%d" % (len(self.sent), due_ms)
            futures.append((payload, due_ms, producer.send_nowait(payload, delay_ms=delay_ms)))
            if self.rng.random() < 0.2:
                await asyncio.sleep(self.rng.random() / 10)
        for payload, due_ms, future in futures:
            await future
            self.sent[payload] = due_ms
        await producer.close()


@pytest.fixture(params=range(4))
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    found = Story(request.param)
    with found.world:
        yield found


def test_over_power_cuts(story: Story) -> None:
    """Each time the power is cut, some messages are not due, some are, and some are with the
    consumer, unacknowledged."""
    world, rng = story.world, story.rng

    async def round_of(number: int) -> None:
        client = await story.start()
        await story.consumer(client)
        if number < 4:
            await story.publish(client, 120)
            await asyncio.sleep(rng.random() * 4)
        else:
            await asyncio.sleep(12)

    for number in range(5):
        world.run(round_of(number))
        if number < 4:
            world.crash()
    assert set(story.sent) <= story.seen


def test_over_unloads_and_leaving_consumers(story: Story) -> None:
    world, rng = story.world, story.rng

    async def whole() -> None:
        client = await story.start()
        consumer = await story.consumer(client)
        for _ in range(4):
            await story.publish(client, 80)
            await asyncio.sleep(rng.random() * 2)
            if rng.random() < 0.5:
                await unload(world)
            else:
                await consumer.close()
            await asyncio.sleep(rng.random() * 2)
            client = await world.connect()
            consumer = await story.consumer(client)
        await asyncio.sleep(12)
        consumer.redeliver()
        await asyncio.sleep(1)
        assert world.broker.engine.delays.entries == 0
        assert world.broker.engine.delays.next_wake_ns(0, 0) is None

    world.run(whole())
    assert set(story.sent) <= story.seen


async def unload(world: World) -> None:
    facade = AdminFacade(world.broker, world.observer)
    await facade.unload_topic(parse_topic(TOPIC))


def test_a_clock_that_is_set(story: Story) -> None:
    """Forward: what becomes due by that comes within a second. Back: nothing comes early."""
    world = story.world

    async def whole() -> None:
        client = await story.start()
        consumer = await client.subscribe(TOPIC, NAME, kind=SHARED)
        producer = await client.producer(TOPIC)
        await producer.send(b"minute", delay_ms=60_000)
        await producer.send(b"hour", delay_ms=600_000)
        await asyncio.sleep(2)
        world.clock.step_wall(120 * NS_PER_S)
        before_s = world.now_s
        assert (await consumer.receive()).payload == b"minute"
        assert world.now_s - before_s < 1.1
        world.clock.step_wall(-180 * NS_PER_S)
        await asyncio.sleep(650)
        assert not consumer.queue
        await asyncio.sleep(20)
        assert consumer.receive_nowait().payload == b"hour"

    world.run(whole())
