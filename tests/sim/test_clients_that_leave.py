"""Clients that come, send and leave, again and again, while nothing is stored.

What a client is charged with ends with its connection. Work that goes on without it must have a
bound of its own: commands whose client has left, and what they hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Final

from headgate.base.errors import HeadgateError
from headgate.base.positions import Position
from headgate.base.units import KIB, MIB
from headgate.broker.connection.left_acknowledgements import LEFT_BYTES_MAX
from headgate.storage.metadata_writer import IN_TURN_OF_TENANT_MAX
from headgate.testing import World
from headgate.testing.client import SimClient
from headgate.wire import client as frames
from headgate.wire.codes import ProducerAccessMode, SubscriptionType
from headgate.wire.messages import Schema

TOPIC: Final = "persistent://public/default/t"
TOPICS: Final = 4
TOGETHER: Final = 8
"""Commands of a kind that a client sends before it leaves."""
WARM_ROUNDS: Final = 5
ROUNDS: Final = 5
LARGE_BYTES: Final = 60 * KIB
BUFFER_BYTES: Final = MIB
KEPT_BYTES: Final = 400 * KIB
"""What further rounds may leave behind. They send more than thirty times as much: what stays are
answers to acknowledgements, names and patterns."""

Command = Callable[[int, str], bytes]
"""Makes a command from a request id and a name that no other command has."""

SETTINGS: Final = {
    "maxMessagePublishBufferSizeInMB": str(BUFFER_BYTES // MIB),
    "maxSubscriptionsPerTopic": "8",
}


def own(number: int) -> str:
    """One of the topics that exist."""
    return f"{TOPIC}{number % TOPICS}"


def avro(text: str) -> Schema:
    value = f'{{"type":"record","name":"R","fields":[],"doc":"{text:x>{LARGE_BYTES}}"}}'
    return Schema(name="R", type=Schema.Type.Avro, schema_data=value.encode())


def subscribe(number: int, name: str, **options: object) -> bytes:
    properties = {"large": f"{name:x>{LARGE_BYTES // 2}}"}
    return frames.subscribe(number, number, own(number), name, properties=properties, **options)  # type: ignore[arg-type]


KINDS: Final[dict[str, Command]] = {
    "new topics": lambda i, name: frames.producer(i, i, TOPIC + name),
    "fencing": lambda i, name: frames.producer(
        i, i, own(i), name=name, access_mode=ProducerAccessMode.EXCLUSIVE_WITH_FENCING
    ),
    "schemas": lambda i, name: frames.producer(i, i, own(i), name=name, schema=avro(name)),
    "schemas alone": lambda i, name: frames.get_or_create_schema(i, own(i), avro(name)),
    "subscriptions": lambda i, name: subscribe(i, name),
    "readers": lambda i, name: subscribe(i, name, durable=False),
    "consumers": lambda i, _: frames.subscribe(i, i, own(i), "s", kind=SubscriptionType.SHARED),
    "partitions": lambda i, name: frames.partitioned_metadata(i, TOPIC + name),
    "look-ups": lambda i, name: frames.lookup(i, TOPIC + name),
    "lists": lambda i, _: frames.get_topics_of_namespace(i, "public/default"),
    "watchers": lambda i, name: frames.watch_topic_list(i, i, "public/default", f".*{name}"),
}
"""Commands that need nothing before them."""

OF_CLIENTS: Final = ("messages", "acknowledgements", "seeks", "ends", "last")


async def send_and_leave(world: World, kind: str, round_number: int, chance: random.Random) -> None:
    client = await world.connect()
    if kind in KINDS:
        made: Iterator[bytes] = (
            KINDS[kind](i, f"{kind[:3]}{round_number}-{i}") for i in range(1, TOGETHER + 1)
        )
    else:
        made = iter(())
        # What was sent before may hold it up, as a seek that is not stored.
        with contextlib.suppress(TimeoutError, HeadgateError):
            made = await asyncio.wait_for(of_clients(client, kind), 1)
    client.write(b"".join(made))
    await asyncio.sleep(chance.choice((0, 0.001, 0.1)))
    client.abort()
    await client.lost
    world.clients.remove(client)


async def of_clients(client: SimClient, kind: str) -> Iterator[bytes]:
    """Commands of a producer or a consumer. Those of each kind have a topic of their own."""
    topic = TOPIC + kind
    if kind == "messages":
        producer = await client.producer(topic)
        producer.sequence_id = 0
        body = producer.entry(b"x" * 4 * LARGE_BYTES)
        return (frames.send(producer.producer_id, i, body) for i in range(TOGETHER))
    consumer = await client.subscribe(topic, "s", kind=SubscriptionType.SHARED, queue_size=0)
    consumer_id, first = consumer.consumer_id, Position(1, 0)
    several: dict[str, Callable[[int], bytes]] = {
        "acknowledgements": lambda i: frames.ack(consumer_id, [first], request_id=i),
        "seeks": lambda i: frames.seek(i, consumer_id, publish_time_ms=0),
        "ends": lambda i: frames.unsubscribe(i, consumer_id, force=True),
        "last": lambda i: frames.get_last_message_id(i, consumer_id),
    }
    return map(several[kind], range(1_000, 1_000 + TOGETHER))


async def story(world: World) -> None:
    broker = await world.start()
    client = await world.connect()
    for topic in (*map(own, range(TOPICS)), *(TOPIC + kind for kind in OF_CLIENTS)):
        await (await client.producer(topic)).send(b"x")
        await client.subscribe(topic, "s", kind=SubscriptionType.SHARED, queue_size=0)
    client.close()
    chance = random.Random(world.seed)
    for lane in world.lanes[:3]:  # nothing is stored, and nothing is read
        lane.freeze()
    kinds = [*KINDS, *OF_CLIENTS]
    kept = []
    for round_number in range(WARM_ROUNDS + ROUNDS):
        chance.shuffle(kinds)
        for kind in kinds:
            await send_and_leave(world, kind, round_number, chance)
        await asyncio.sleep(10)
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
        assert broker.client_memory.left.total <= KEPT_BYTES
        assert broker.log.unstored_bytes <= 2 * BUFFER_BYTES
        # Beside the tenant's turn: a schema of each topic, and the log's clock.
        assert broker.catalog.in_flight_count <= IN_TURN_OF_TENANT_MAX + TOPICS + 1
        assert broker.connections.left_acknowledgements.taken_bytes <= LEFT_BYTES_MAX
    assert kept[-1] - kept[WARM_ROUNDS] <= KEPT_BYTES, [each - kept[0] for each in kept]
    for lane in world.lanes[:3]:
        lane.thaw()
    await asyncio.sleep(60)
    assert not broker.log.unstored_bytes
    assert not broker.catalog.in_flight_count
    assert not broker.subscriptions.running_count
    assert not broker.client_memory.left.total
    await (await (await world.connect()).producer(own(0))).send(b"x")


def test_what_clients_leave_behind_has_a_bound() -> None:
    tracemalloc.start()
    try:
        with World(7, settings=SETTINGS) as world:
            world.run(asyncio.wait_for(story(world), 3_600))
    finally:
        tracemalloc.stop()
