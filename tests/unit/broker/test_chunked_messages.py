"""Chunked messages on a whole broker: counted by entries, kept together, also after kill -9."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.facade.admin_facade import AdminFacade
from headgate.observe.stats.fields import StatsOptions
from headgate.testing import SimConsumer, SimProducer, World
from headgate.wire.codes import SubscriptionType
from headgate.wire.entry import build_entry, chunk_facts, parse_metadata
from headgate.wire.messages import MessageMetadata
from tests.unit.broker.playing import TOPIC, played


async def send_chunk(producer: SimProducer, message: str, index: int, count: int) -> None:
    metadata = MessageMetadata(
        producer_name=producer.name,
        sequence_id=0,
        publish_time=1,
        uuid=message,
        chunk_id=index,
        num_chunks_from_msg=count,
        total_chunk_msg_size=count * 10,
    )
    await producer.send_entry_nowait(0, build_entry(metadata, b"x" * 10), is_chunk=True)


async def publish(world: World) -> None:
    client = await world.connect()
    producers = [await client.producer(TOPIC) for _ in range(3)]
    for index in range(3):
        for number, producer in enumerate(producers):
            if number < 2 or not index:  # the third producer dies after its first chunk
                await send_chunk(producer, f"m{number}", index, 3)


async def messages_of(consumers: list[SimConsumer]) -> list[set[str]]:
    await asyncio.sleep(1)
    found = []
    for consumer in consumers:
        facts = [chunk_facts(parse_metadata(message.body)) for message in consumer.queue]
        found.append({f"{fact.uuid}:{fact.chunk_id}" for fact in facts if fact is not None})
    return found


def check_whole(found: list[set[str]]) -> None:
    assert sum(map(len, found)) == 7
    for message in ("m0", "m1", "m2"):
        assert sum(any(chunk.startswith(message) for chunk in one) for one in found) == 1


@played()
async def test_chunks_stay_together_live_and_from_the_log(world: World) -> None:
    client = await world.connect()
    shared = SubscriptionType.SHARED
    consumers = [await client.subscribe(TOPIC, "s", kind=shared) for _ in range(3)]
    await publish(world)
    check_whole(await messages_of(consumers))
    facade = AdminFacade(world.broker, world.observer)
    stats = await facade.topic_stats(parse_topic(TOPIC), StatsOptions())
    assert stats.msg_chunk_published
    assert (stats.msg_in_counter, stats.subscriptions["s"].msg_backlog) == (7, 7)
    world.crash()
    await world.start()
    client = await world.connect()
    idle = [await client.subscribe(TOPIC, "s", kind=shared, queue_size=0) for _ in range(3)]
    for consumer in idle:
        consumer.flow(100)
    check_whole(await messages_of(idle))
    for consumer in idle:
        await consumer.ack(*(message.position for message in consumer.queue))
    await asyncio.sleep(1)
    stats = await AdminFacade(world.broker, world.observer).topic_stats(
        parse_topic(TOPIC), StatsOptions()
    )
    assert stats.subscriptions["s"].msg_backlog == 0
