"""A process of many clients that publish, consume and leave while turns are measured.

It reads one line of JSON, a :class:`Load`, from stdin, makes the topics, connects, prints one line,
and runs until its stdin ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from headgate.app.descriptors import raise_descriptors_max
from headgate.base.errors import HeadgateError
from headgate.testing.client import SimClient
from headgate.testing.consumer import SimConsumer
from headgate.testing.producer import SimProducer
from headgate.wire.codes import SubscriptionType

AT_ONCE = 200
BULK_BYTES = 64 * 1024
REDELIVER_EVERY = 20
"""A consumer asks for every so-many-th message again before it acknowledges it."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients do."""

    port: int
    topics: int
    """Each with one entry and one durable subscription, made before the measurement."""
    connections: int
    """Each with a producer on one topic and a consumer on another."""
    wide_subscriptions: int
    """Subscriptions of one more topic."""
    messages_per_s: int
    """Over all connections."""
    bulk_bytes_per_s: int
    """Of one more producer, so that segments fill."""
    joins_per_s: int
    """Connections that end and are made again."""

    def line(self) -> bytes:
        """One line, for stdin."""
        return json.dumps(asdict(self)).encode() + b"\n"


def topic_name(number: int) -> str:
    """One of the topics."""
    return f"persistent://public/default/t{number}"


WIDE_TOPIC = "persistent://public/default/wide"
BULK_TOPIC = "persistent://public/default/bulk"


async def connected(port: int) -> SimClient:
    """A client after its handshake."""
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: SimClient(loop), "127.0.0.1", port)
    await client.connect()
    return client


async def each(numbers: Iterable[int], work: Callable[[int], Awaitable[object]]) -> None:
    """``work`` for all numbers, some at once."""
    left = iter(numbers)

    async def take() -> None:
        for number in left:
            await work(number)

    await asyncio.gather(*(take() for _ in range(AT_ONCE)))


async def make_topics(load: Load) -> None:
    """Topics with an entry and a subscription each, and the wide topic."""
    client = await connected(load.port)

    async def topic(number: int) -> None:
        consumer = await client.subscribe(
            topic_name(number), "s", kind=SubscriptionType.SHARED, queue_size=0
        )
        producer = await client.producer(topic_name(number))
        await producer.send(b"of topic %d" % number)
        await producer.close()
        await consumer.close()

    async def wide(number: int) -> None:
        consumer = await client.subscribe(WIDE_TOPIC, f"w{number}", queue_size=0)
        await consumer.close()

    await each(range(load.topics), topic)
    await each(range(load.wide_subscriptions), wide)
    client.close()
    await client.lost


class Member:
    """One connection: it publishes to one topic and consumes another."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._number = number
        self._taken = 0
        self.client: SimClient | None = None
        self.producer: SimProducer | None = None

    async def join(self) -> None:
        """Connect, with producer and consumer."""
        load, number = self._load, self._number
        stride = max(load.topics // load.connections, 1)
        client = await connected(load.port)
        own = number * stride % load.topics
        consumer = await client.subscribe(
            topic_name(own), "s", kind=SubscriptionType.SHARED, queue_size=100
        )
        consumer.on_arrival = lambda _: self._take(consumer)
        while consumer.queue:
            self._take(consumer)
        self.producer = await client.producer(topic_name((own + stride) % load.topics))
        self.client = client

    def leave(self) -> None:
        """End the connection at once."""
        if self.client is not None:
            self.client.abort()
        self.client = self.producer = None

    def _take(self, consumer: SimConsumer) -> None:
        if not consumer.queue or not consumer.is_open:
            return
        message = consumer.receive_nowait()
        self._taken += 1
        if self._taken % REDELIVER_EVERY == 0 and message.redelivery_count == 0:
            consumer.redeliver([message.position])
        else:
            consumer.ack_nowait(message.position)

    def publish(self) -> None:
        """Publish one message, if connected."""
        if self.producer is not None and self.producer.is_open:
            self.producer.send_nowait(b"x" * 200)


async def publish_all(load: Load, members: list[Member]) -> None:
    """Publish at the rate of the load, in turn through all members."""
    loop = asyncio.get_running_loop()
    began_s, sent = loop.time(), 0
    while True:
        await asyncio.sleep(0.01)
        due = int((loop.time() - began_s) * load.messages_per_s)
        for _ in range(min(due - sent, load.messages_per_s)):
            sent += 1
            members[sent * 7919 % len(members)].publish()


async def publish_bulk(load: Load) -> None:
    """Fill segments, and acknowledge all."""
    client = await connected(load.port)
    consumer = await client.subscribe(BULK_TOPIC, "s", queue_size=100)
    consumer.on_arrival = lambda _: consumer.ack_nowait(consumer.receive_nowait().position)
    producer = await client.producer(BULK_TOPIC)
    pause_s = BULK_BYTES / max(load.bulk_bytes_per_s, 1)
    while load.bulk_bytes_per_s:
        await producer.send(bytes(BULK_BYTES))
        await asyncio.sleep(pause_s)


async def rejoin(load: Load, members: list[Member]) -> None:
    """End connections and make them again."""
    for number in count():
        await asyncio.sleep(1 / max(load.joins_per_s, 1))
        if load.joins_per_s:
            member = members[number * 104_729 % len(members)]
            member.leave()
            await patiently(member.join)


async def patiently(work: Callable[[], Awaitable[Any]]) -> None:
    """``work``, again while the broker refuses it: topics are unloaded and deleted meanwhile."""
    for _ in range(50):
        try:
            await work()
        except (HeadgateError, OSError):
            await asyncio.sleep(0.1)
        else:
            return


async def run(load: Load) -> None:
    """Make everything, say so, and run."""
    await make_topics(load)
    members = [Member(load, number) for number in range(load.connections)]
    await each(range(load.connections), lambda number: patiently(members[number].join))
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    work = [
        loop.create_task(publish_all(load, members)),
        loop.create_task(publish_bulk(load)),
        loop.create_task(rejoin(load, members)),
        loop.create_task(asyncio.to_thread(sys.stdin.read)),
    ]
    done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


def main() -> None:
    """Entry of the process."""
    raise_descriptors_max()
    load = Load(**json.loads(sys.stdin.readline()))
    asyncio.run(run(load))


if __name__ == "__main__":
    main()
