"""Messages on their way to the consumers of a connection."""

from __future__ import annotations

import asyncio

from headgate.base.units import KIB, MIB
from headgate.testing import World
from tests.unit.broker.memory_rig import set_bound
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_crowds_that_do_not_read_get_no_messages_beyond_the_bound(world: World) -> None:
    """400 consumers over TLS took 4 GB where clients may hold 256 MB: each got one at least."""
    memory, producer = world.broker.client_memory, await (await world.connect()).producer(TOPIC)
    clients = [await world.connect() for _ in range(40)]
    consumers = [await c.subscribe(TOPIC, f"s{n}", queue_size=0) for n, c in enumerate(clients)]
    for client, consumer in zip(clients, consumers, strict=True):
        client.transport.pause_reading()
        consumer.flow(5)
    await asyncio.sleep(2)
    bytes_max = memory.bytes_max
    set_bound(memory, memory.held.total + 2 * MIB)

    def sent_count() -> int:
        subscriptions = world.broker.engine.topics[TOPIC].subscriptions.values()
        return sum(subscription.messages_sent for subscription in subscriptions)

    await producer.send(b"x" * 200 * KIB)
    await asyncio.sleep(0.2)
    assert 5 < sent_count() < 25
    clients[0].abort()
    set_bound(memory, bytes_max)
    await asyncio.sleep(3)
    assert sent_count() >= 39
    for client, consumer in zip(clients[1:], consumers[1:], strict=True):
        client.transport.resume_reading()
        assert len((await consumer.receive()).payload) == 200 * KIB
    assert not memory._undelivered
