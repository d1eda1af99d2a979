"""What deduplication, acknowledgements inside batches and delayed messages cost the broker.

CPU is measured in whole brokers in memory (headgate.testing), so disk and other processes take no
part; sides that are compared take turns (ABBA). Memory is what Python's allocator counts. How late
delayed messages come is measured with real sockets, and beside it how late a timer of the same
machine is.

    ./dev bench application_features
    ./dev bench application_features --quick
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import random
import select
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Final

from bench.client import RECEIVE_BYTES, Client
from bench.report import Table, median, median_interval, number, quantile
from bench.servers import headgate, scratch
from headgate.base.ack_words import words_of
from headgate.base.partial_acks import PartialAcks, PartialEntry
from headgate.base.positions import Position
from headgate.base.sequence_table import SequenceTable
from headgate.base.units import MIB, NS_PER_US
from headgate.broker.connection.connection import Connection
from headgate.engine.delayed_index import DelayedIndex
from headgate.testing import NetworkProfile, World
from headgate.wire import client
from headgate.wire.codes import CommandType, SubscriptionType
from headgate.wire.entry import build_entry, parse_metadata
from headgate.wire.frame import FrameDecoder
from headgate.wire.messages import BaseCommand, MessageMetadata

TOPIC: Final = "persistent://public/default/features"
MESSAGES: Final = 4_000
"""Of one round."""
PUBLISHED: Final = 100
"""Messages of one round of publishing, which is one turn and one commit: so few that most rounds
of a busy machine are disturbed little, and both of a pair alike."""
PAIRS: Final = 100
"""Rounds of either side in a block."""
LEAST: Final = 0.1
"""The quantile of a block's rounds that stands for one that other programs did not disturb."""
PUBLISH_TIME_MS: Final = 1_795_000_000_000
"""As any client's clock has it: the broker reads such a time without the parser."""
DUPLICATE_US_MAX: Final = 0.5
PRODUCERS: Final = 20_000
PRODUCER_BYTES_MAX: Final = 400
BATCH_MESSAGES: Final = 1_000
BATCHES: Final = 2_000
BATCH_BYTES_MAX: Final = 160
DELAYED: Final = 1_000_000
DELAYED_MIB_MAX: Final = 200
LATE_MESSAGES: Final = 2_000
LATE_FROM_S, LATE_TO_S = 1.0, 4.0
LATE_MS_MAX: Final = 50


def cpu_us() -> float:
    """CPU time of this thread."""
    return time.thread_time_ns() / NS_PER_US


@contextlib.contextmanager
def _traced() -> Iterator[Callable[[], int]]:
    """Counts the bytes that are allocated and not freed."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    def taken() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    try:
        yield taken
    finally:
        tracemalloc.stop()


# -- deduplication ---------------------------------------------------------------------------


class Publishing:
    """A broker in memory to which one producer publishes numbered messages of 100 bytes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sequence = 0
        world.run(self._begin())

    async def _begin(self) -> None:
        await self._world.start()
        connected = await self._world.connect()
        await connected.producer(TOPIC, name="numbered")

    def round_us(self) -> float:
        """CPU of a message, from its SEND without the socket to its receipt."""
        first = self._sequence = self._sequence + PUBLISHED
        bodies = [_body(first + index) for index in range(PUBLISHED)]
        return self._world.run(self._publish(first, bodies)) / PUBLISHED

    async def _publish(self, first: int, bodies: list[bytes]) -> float:
        broker = self._world.broker
        topic = broker.engine.topics[TOPIC]
        producer = next(iter(topic.producers.values()))
        began_us = cpu_us()
        broker.begin_turn()
        for index, body in enumerate(bodies):
            sequence = first + index
            topic.publishing.publish(producer, sequence, sequence, 1, body)
        await broker.when_durable()
        took_us = cpu_us() - began_us
        stored = topic.log.end
        if stored % PUBLISHED:
            raise RuntimeError(f"{stored} messages are stored")
        return took_us


def _body(sequence: int) -> bytes:
    metadata = MessageMetadata(
        producer_name="numbered", sequence_id=sequence, publish_time=PUBLISH_TIME_MS
    )
    return build_entry(metadata, bytes(100))


def deduplication(table: Table, blocks: int) -> None:
    """A published message with and without it, and what a producer takes."""
    quiet = NetworkProfile(0, 0)
    with (
        World(network=quiet) as plain,
        World(network=quiet, settings={"brokerDeduplicationEnabled": "true"}) as numbered,
    ):
        rounds = _rounds_us(Publishing(plain), Publishing(numbered), blocks)
    least = [(quantile(before, LEAST), quantile(after, LEAST)) for before, after in rounds]
    plain_us = median([before for before, _ in least])
    name = "a published message of 100 B, without deduplication, undisturbed"
    table.add(name, f"{number(plain_us)} us")
    more = [after - before for before, after in least]
    low, high = median_interval(more)
    note = f"95 % {number(low)} to {number(high)}"
    table.check("more with it", median(more), "us", DUPLICATE_US_MAX, note=note)
    more = [b - a for before, after in rounds for a, b in zip(before, after, strict=True)]
    low, high = median_interval(more)
    note = f"95 % {number(low)} to {number(high)}"
    table.add("... in all rounds", f"{number(median(more))} us  ({note})")
    with _traced() as taken:
        rows = SequenceTable()
        for each in range(PRODUCERS):
            rows.entry_staged(each, f"a-producer-of-some-name-{each:06}", 1_000_000 + each)
            rows.entries_durable(each + 1)
        producer_bytes = taken() / PRODUCERS
    table.check("memory of a producer", producer_bytes, "bytes", PRODUCER_BYTES_MAX)


def _rounds_us(
    without: Publishing, with_it: Publishing, blocks: int
) -> list[tuple[list[float], list[float]]]:
    """The CPU of a message in each round of each block, without and with it. A block before them
    warms both sides up."""
    found: list[tuple[list[float], list[float]]] = []
    for _ in range(blocks + 1):
        before: list[float] = []
        after: list[float] = []
        gc.collect()
        gc.disable()  # a collection takes longer than a round, and falls on either side
        for pair in range(PAIRS):
            if pair % 2:
                after.append(with_it.round_us())
                before.append(without.round_us())
            else:
                before.append(without.round_us())
                after.append(with_it.round_us())
        gc.enable()
        found.append((before, after))
    return found[1:]


# -- acknowledgements inside batches ---------------------------------------------------------


async def _ack_us(world: World, begun: int) -> tuple[float, float]:
    """CPU of an ACK of a whole entry, and of one message of a batch, while ``begun`` other batches
    are partly acknowledged."""
    await world.start()
    connected = await world.connect()
    producer = await connected.producer(TOPIC)
    consumer = await connected.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=0)
    singles = [await producer.send(b"x") for _ in range(MESSAGES // 10)]
    batches = [await producer.send(b"", batch=[b"x"] * 100) for _ in range(begun + 20)]
    consumer.flow(1_000_000)
    await asyncio.sleep(1)
    (connection,) = world.broker.connections
    assert isinstance(connection, Connection)

    def carried_out_us(commands: list[BaseCommand]) -> float:
        began_us = cpu_us()
        for command in commands:
            connection._acknowledge(connection, command)
        return (cpu_us() - began_us) / len(commands)

    full = (1 << 100) - 1
    others = [_ack(consumer.consumer_id, at, full ^ 1) for at in batches[20:]]
    parts = [
        _ack(consumer.consumer_id, at, full ^ ((2 << index) - 1))
        for at in batches[:20]
        for index in range(99)
    ]
    whole = [_ack(consumer.consumer_id, at, 0) for at in singles]
    for command in others:
        connection._acknowledge(connection, command)
    await asyncio.sleep(1)
    found = carried_out_us(whole), carried_out_us(parts)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    assert subscription.acks.partials is not None
    assert len(subscription.acks.partials) == begun + 20
    return found


def _ack(consumer_id: int, at: Position, left: int) -> BaseCommand:
    frame = client.ack(consumer_id, [at])
    command = BaseCommand.FromString(frame[8:])
    if left:
        command.ack.message_id[0].ack_set.extend(words_of(left))
    return command


def acknowledgements(table: Table, rounds: int) -> None:
    """An ACK of one message of a batch, beside one of an entry; the memory of such a batch."""
    for begun in (0, BATCHES):
        found: list[tuple[float, float]] = []
        for _ in range(rounds):
            with World(network=NetworkProfile(0, 0)) as world:
                found.append(world.run(_ack_us(world, begun)))
        beside = f", beside {begun:,} partly acknowledged batches" if begun else ""
        whole, part = (median([each[side] for each in found]) for side in (0, 1))
        name = f"an ACK of one message of a batch / of an entry{beside}"
        table.add(name, f"{number(part)} us / {number(whole)} us")
    chance = random.Random(7)
    for count, name in ((BATCHES, "each of many"), (1, "one that is alone in its subscription")):
        sets_count = BATCHES // count
        with _traced() as taken:
            kept = [PartialAcks() for _ in range(sets_count)]
            for partials in kept:
                for ordinal in range(10**12, 10**12 + count):
                    mask = chance.getrandbits(BATCH_MESSAGES - 1) | 1
                    partials.put(PartialEntry(ordinal, mask, BATCH_MESSAGES))
                    partials.take_changed()
            each_bytes = taken() / BATCHES
        what = f"memory of a batch of {BATCH_MESSAGES:,} messages, half acknowledged at random"
        if count > 1:
            table.check(f"{what}: {name}", each_bytes, "bytes", BATCH_BYTES_MAX)
        else:
            table.add(f"{what}: {name}", f"{number(each_bytes)} bytes")


# -- delayed messages ------------------------------------------------------------------------


def delays(table: Table, count: int, late_count: int) -> None:
    """The memory of many delayed messages, and how late they come."""
    chance = random.Random(7)
    with _traced() as taken:
        index = DelayedIndex()
        for ordinal in range(count):
            index.add(ordinal, chance.randrange(1 << 40), 1, 100)
        table.check(f"{count:,} delayed messages", taken() / MIB, "MiB", DELAYED_MIB_MAX)
    late_ms, timer_ms = _lateness(late_count)
    note = f"median {number(median(late_ms))}, latest {number(max(late_ms))}"
    table.check(
        f"{late_count:,} messages that are due at random times, late, p99",
        quantile(late_ms, 0.99), "ms", LATE_MS_MAX, note=note,
    )  # fmt: skip
    note = f"latest {number(max(timer_ms))}"
    table.add(
        "a timer of the same machine, late, p99", f"{number(quantile(timer_ms, 0.99))} ms ({note})"
    )
    if min(late_ms) < 0:
        raise RuntimeError(f"a message came {-min(late_ms):.1f} ms early")


def _lateness(count: int) -> tuple[list[float], list[float]]:
    """How many milliseconds after their due times delayed messages come to a consumer of a real
    broker, and sleeps of this process end."""
    chance = random.Random(3)
    with scratch() as folder:
        server = headgate(folder)
        try:
            consumer = Client(server.port)
            consumer.ask(client.subscribe(1, 0, TOPIC, "s", kind=SubscriptionType.SHARED))
            producer = Client(server.port)
            producer.ask(client.producer(1, 0, TOPIC))
            now_ms = time.time_ns() // 1_000_000
            for sequence in range(count):
                metadata = MessageMetadata(
                    producer_name="p", sequence_id=sequence, publish_time=now_ms
                )
                delay_s = chance.uniform(LATE_FROM_S, LATE_TO_S)
                metadata.deliver_at_time = now_ms + int(delay_s * 1_000)
                frame = client.send(0, sequence, build_entry(metadata, bytes(100)))
                producer.socket.sendall(frame)
            consumer.socket.sendall(client.flow(0, 2 * count))
            late_ms = _received_late(consumer, count)
            producer.close()
            consumer.close()
        finally:
            server.close()
    timer_ms = []
    for _ in range(200):
        due_s = time.monotonic() + chance.uniform(0.001, 0.02)
        time.sleep(due_s - time.monotonic())
        timer_ms.append((time.monotonic() - due_s) * 1_000)
    return late_ms, timer_ms


def _received_late(consumer: Client, count: int) -> list[float]:
    frames, late_ms = FrameDecoder(), list[float]()
    while len(late_ms) < count:
        readable, _, _ = select.select([consumer.socket], [], [], 30)
        if not readable:
            raise RuntimeError(f"{len(late_ms)} of {count} messages came")
        frames.feed(consumer.socket.recv(RECEIVE_BYTES))
        now_ms = time.time() * 1_000
        while (found := frames.next_frame()) is not None:
            command, body = found
            if command.type == CommandType.MESSAGE and body is not None:
                late_ms.append(now_ms - parse_metadata(body).deliver_at_time)
            elif command.type == CommandType.PING:
                consumer.socket.sendall(client.pong())
    return late_ms


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    is_quick = parser.parse_args().quick
    table = Table("What features of applications cost")
    deduplication(table, 8 if is_quick else 60)
    acknowledgements(table, 1 if is_quick else 5)
    delays(
        table,
        DELAYED // 10 if is_quick else DELAYED,
        LATE_MESSAGES // 4 if is_quick else LATE_MESSAGES,
    )
    table.print()


if __name__ == "__main__":
    main()
