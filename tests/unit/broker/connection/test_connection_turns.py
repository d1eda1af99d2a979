"""A connection with more than a turn of work is read no further until the work is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headgate.base.identity import Identity
from headgate.base.positions import Position
from headgate.base.units import KIB, MIB
from headgate.base.work_units import CLIENT_CLOSED, LOOP_UNITS, SLICE_UNITS, WATCHER_ENDED
from headgate.broker.commands.consuming import _check_exclusive
from headgate.broker.commands.producing import _take_over
from headgate.broker.connection.connection import Connection
from headgate.broker.held_memory import READER_BYTES
from headgate.broker.work.scheduler import JobClass, Steps
from headgate.engine.producer import Producer
from headgate.engine.types import SubscriptionType as EngineType
from headgate.testing import NetworkProfile, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.connection.iterations import Iterations
from tests.unit.broker.playing import TOPIC, played

QUICK = NetworkProfile(0, 0, piece_bytes_max=MIB, window_bytes=16 * MIB)
"""A network that hands over as much as the receiver takes, as a loopback socket does."""

LONG_ACK_IDS = 300_000
"""About as many as a frame holds: 4 MiB."""


def server_side(world: World, client: SimClient) -> Connection:
    """The broker's connection of a client."""
    (found,) = (c for c in world.broker.connections if c._transport is client.transport._peer)  # type: ignore[attr-defined]
    return found


async def write_at_once(world: World, client: SimClient, data: bytes) -> Connection:
    """Have all of ``data`` wait in the broker's socket before it reads any of it."""
    connection = server_side(world, client)
    connection._transport.pause_reading()
    client.write(data)
    await asyncio.sleep(0.1)
    connection._transport.resume_reading()
    return connection


def watch_buffer(world: World, connection: Connection) -> list[int]:
    """The largest receive buffer of a connection at the beginning of any turn, from now on."""
    largest, begin_turn = [0], world.broker.begin_turn

    def looked() -> None:
        largest[0] = max(largest[0], connection._decoder.statistics().buffer_bytes)
        begin_turn()

    world.broker.begin_turn = looked  # type: ignore[method-assign]
    return largest


@played(network=QUICK)
async def test_long_acks_behind_each_other(world: World) -> None:
    """While one is carried out in slices, those behind it wait in the socket."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    nowhere = [Position(1 << 34, 1 << 34)] * LONG_ACK_IDS
    ack = frames.ack(consumer.consumer_id, nowhere)
    assert len(ack) > 4 * MIB
    largest = watch_buffer(world, server_side(world, client))
    await write_at_once(world, client, ack * 3)
    assert await client.partitions(f"{TOPIC}-asked-behind-them") == 0
    assert largest[0] < len(ack) + 128 * KIB


@played(network=QUICK)
async def test_a_flood_of_small_commands(world: World) -> None:
    client = await world.connect()
    largest = watch_buffer(world, server_side(world, client))
    await write_at_once(world, client, frames.ping() * 100_000)
    assert await client.partitions(f"{TOPIC}-asked-behind-them") == 0
    assert len(client.unexpected) == 100_000
    assert largest[0] <= 128 * KIB


@played(network=QUICK, settings={"maxPendingPublishRequestsPerConnection": "50"})
async def test_receipts_do_not_cut_a_long_command_short(world: World) -> None:
    """A commit that ends amid a long command resumes nothing that the command holds back."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    connection = server_side(world, client)
    largest = watch_buffer(world, connection)
    ack = frames.ack(consumer.consumer_id, [Position(1 << 34, 1 << 34)] * LONG_ACK_IDS)
    connection._transport.pause_reading()
    sent = []
    for _ in range(3):
        client.write(ack)
        sent += [producer.send_nowait(b"x" * 1_000) for _ in range(500)]
    await asyncio.sleep(0.1)
    each_slice = world.broker.begin_turn

    def looked() -> None:
        each_slice()
        if connection._unfinished is not None:
            world.broker.commit_ended(world.broker.log)

    world.broker.begin_turn = looked  # type: ignore[method-assign]
    connection._transport.resume_reading()
    positions = await asyncio.gather(*sent)
    assert positions == sorted(positions)
    assert largest[0] < len(ack) + 128 * KIB


def watch_count(world: World, count: Callable[[], int]) -> list[int]:
    """By how much ``count`` changes from one turn to the next at most, from now on."""
    last, largest, begin_turn = count(), [0], world.broker.begin_turn

    def looked() -> None:
        nonlocal last
        largest[0] = max(largest[0], abs(count() - last))
        last = count()
        begin_turn()

    world.broker.begin_turn = looked  # type: ignore[method-assign]
    world.broker.work._begin_turn = looked
    return largest


CLIENTS = 10 * SLICE_UNITS // CLIENT_CLOSED
"""Producers or consumers of one connection: ten slices."""


@played()
async def test_many_consumers_of_a_connection_are_disconnected_in_slices(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    for _ in range(CLIENTS):
        await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    stays = await other.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    largest = watch_count(world, lambda: len(subscription.consumers))
    client.close()
    await asyncio.sleep(0.5)
    assert len(subscription.consumers) == 1
    assert largest[0] <= SLICE_UNITS // CLIENT_CLOSED
    await (await other.producer(TOPIC)).send(b"for the one that stays")
    assert (await stays.receive()).payload == b"for the one that stays"


@played()
async def test_many_producers_of_a_connection_are_disconnected_in_slices(world: World) -> None:
    client = await world.connect()
    for number in range(CLIENTS):
        await client.producer(TOPIC, name=f"p{number}")
    topic = world.broker.engine.topics[TOPIC]
    largest = watch_count(world, lambda: len(topic.producers))
    client.close()
    await asyncio.sleep(0.5)
    assert not topic.producers
    assert largest[0] <= SLICE_UNITS // CLIENT_CLOSED


@played()
async def test_clients_of_connections_that_all_end_at_once_are_disconnected_in_slices(
    world: World,
) -> None:
    """3,000 that ended in one iteration of the loop held it for 300 ms."""
    connections_count = 3 * LOOP_UNITS // CLIENT_CLOSED
    for number in range(connections_count):
        await (await world.connect()).producer(TOPIC, name=f"p{number}")
    topic = world.broker.engine.topics[TOPIC]
    await asyncio.sleep(1)
    for connection in list(world.broker.connections):
        connection.abort()
    ended = connections_count - len(topic.producers)
    assert 0 < ended <= 2 * LOOP_UNITS // CLIENT_CLOSED + 1
    largest = watch_count(world, lambda: len(topic.producers))
    await asyncio.sleep(0.5)
    assert not topic.producers
    assert largest[0] <= SLICE_UNITS // CLIENT_CLOSED


@played()
async def test_what_a_dead_connection_still_holds_is_free_for_others(world: World) -> None:
    """Its clients are disconnected in slices; names and exclusive access do not wait for that."""
    client, other = await world.connect(), await world.connect()
    for number in range(CLIENTS):
        await client.producer(TOPIC, name=f"p{number}")
    await client.subscribe(TOPIC, "s")
    topic = world.broker.engine.topics[TOPIC]
    holder, subscription = topic.producers[f"p{CLIENTS - 1}"], topic.subscriptions["s"]
    server_side(world, client).abort()
    assert holder.name in topic.producers
    assert subscription.consumers
    newcomer = Producer(1, holder.name, holder.port)
    await _take_over(server_side(world, other), topic, holder, newcomer)
    await _check_exclusive(server_side(world, other), subscription, EngineType.EXCLUSIVE)
    assert holder.name not in topic.producers
    assert not subscription.consumers
    topic.add_producer(newcomer)
    await asyncio.sleep(0.1)
    assert list(topic.producers.values()) == [newcomer]
    topic.remove_producer(newcomer)


@played()
async def test_connections_of_one_role_that_end_together_take_the_turns_of_one(
    world: World,
) -> None:
    """Each had turns of its own: 4,000 with 30 clients each, which ended at once, held up a
    failover consumer of another tenant for 0.8 s."""
    owners: list[str | None] = []
    work = world.broker.work
    run = work.run

    def noted(
        name: str, job_class: JobClass, steps: Steps, owner: str | None = None
    ) -> asyncio.Future[None]:
        if name == "closing a connection":
            owners.append(owner)
        return run(name, job_class, steps, owner)

    clients = []
    for role in ("crowd", "crowd", "other"):
        client = await world.connect()
        server_side(world, client).identity = Identity(role)
        for _ in range(SLICE_UNITS // CLIENT_CLOSED + 1):
            await client.producer(TOPIC)
        clients.append(client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "run", noted)
        for client in clients:
            client.abort()
        await asyncio.sleep(1)
    assert sorted(map(str, owners)) == ["role crowd", "role crowd", "role other"]
    assert not world.broker.engine.topics[TOPIC].producers


@played()
async def test_watchers_of_connections_that_end_together_end_in_slices(world: World) -> None:
    """150 connections with 1,000 each held the event loop for 7.6 s."""
    count = 10 * SLICE_UNITS
    ended = Iterations(count)

    class Watcher:
        def end(self) -> None:
            ended.note()

    for _ in range(5):
        await world.connect()
    connections = list(world.broker.connections)
    for connection in connections:
        connection.watchers = {number: Watcher() for number in range(count // 5)}
    ended.begin()
    for connection in connections:
        connection.abort()
    await asyncio.sleep(1)
    assert len(ended.noted) == count
    assert ended.most() <= 2 * SLICE_UNITS // WATCHER_ENDED


@played()
async def test_what_is_left_of_a_connection_counts_until_it_is_freed(world: World) -> None:
    """99,000 readers whose connections ended were growth that nobody was charged with: it brought
    a complete collection of garbage about, 3.3 s."""
    client, memory = await world.connect(), world.broker.client_memory
    count = 2 * SLICE_UNITS // CLIENT_CLOSED
    for number in range(count):
        client.write(frames.subscribe(number, number, TOPIC, f"r{number}", durable=False))
    await asyncio.sleep(3)
    connection = server_side(world, client)
    assert len(connection.consumers) == count
    before = sum(memory.by_kind().values())
    assert before > count * READER_BYTES
    connection.abort()
    list(memory.measure(list(world.broker.connections), []))
    assert sum(memory.by_kind().values()) > count * READER_BYTES
    await asyncio.sleep(5)
    assert sum(memory.by_kind().values()) < count * READER_BYTES
