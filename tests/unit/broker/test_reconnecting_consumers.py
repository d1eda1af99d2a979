"""Consumers that come and go a thousand times: what others get, and what is left behind."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.testing import SimConsumer, World
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.playing import TOPIC, played

SHARED = SubscriptionType.SHARED
RECONNECTS = 1_000
RATE = 200


async def publish(world: World, count: int) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    await asyncio.gather(*(producer.send_nowait(b"%d" % number) for number in range(count)))
    await producer.close()


class Counter:
    """Counts what arrives at a consumer, and gives every permit back."""

    def __init__(self, consumer: SimConsumer) -> None:
        self.consumer = consumer
        self.count = 0
        consumer.on_arrival = self._arrived

    def _arrived(self, message: object) -> None:
        self.count += 1
        self.consumer.queue.clear()
        self.consumer.flow(1)

    async def in_seconds(self, seconds: float) -> int:
        """How many arrive in so long."""
        before = self.count
        await asyncio.sleep(seconds)
        return self.count - before


@played(settings={"dispatchThrottlingRatePerSubscriptionInMsg": str(RATE)})
async def test_a_thousand_reconnects_leave_the_rate_unchanged(world: World) -> None:
    await publish(world, 1)
    client = await world.connect()
    steady = Counter(await client.subscribe(TOPIC, "s", kind=SHARED, queue_size=100))
    await publish(world, 10_000)
    before = await steady.in_seconds(20)
    assert abs(before - 20 * RATE) <= RATE  # a window more or less
    for number in range(RECONNECTS):
        other = await world.connect()
        await other.subscribe(TOPIC, "s", kind=SHARED, queue_size=1_000)
        if number % 100 == 0:
            await asyncio.sleep(0.1)  # it gets some, and acknowledges none
        other.abort() if number % 2 else other.close()
    await asyncio.sleep(2)
    after = await steady.in_seconds(20)
    assert abs(after - before) <= RATE
    topic = world.broker.registry.get(parse_topic(TOPIC))
    assert topic is not None
    subscription = topic.subscriptions["s"]
    assert len(subscription.consumers) == 1
    (consumer,) = subscription.consumers
    assert (consumer.permits, consumer.window) == (100, 100)
    dispatcher = subscription.dispatcher
    assert dispatcher.in_flight_messages() == consumer.unacked_messages == len(consumer.held)


@played()
async def test_a_consumer_that_reconnects_is_served_as_fast_each_time(world: World) -> None:
    await publish(world, 1)
    client = await world.connect()
    keeper = await client.subscribe(TOPIC, "s", kind=SHARED, queue_size=0)
    await publish(world, 500)
    for _ in range(RECONNECTS // 10):
        began_s = world.loop.time()
        consumer = await client.subscribe(TOPIC, "s", kind=SHARED, queue_size=500)
        for _ in range(500):
            await consumer.receive()
        assert world.loop.time() - began_s < 1
        await consumer.close()
    assert keeper.is_open
