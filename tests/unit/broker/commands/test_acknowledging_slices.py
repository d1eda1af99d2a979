"""ACKs and REDELIVERs of very many ids let other connections have their turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, Position
from headgate.base.units import KIB, MIB
from headgate.base.work_units import TURN_UNITS
from headgate.broker.connection.bounds import SLICE_IDS
from headgate.engine.subscription import Subscription
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.testing import RefusedError, SimClient, SimConsumer, World
from headgate.wire import client as frames
from headgate.wire.codes import ServerError, SubscriptionType
from tests.unit.broker.memory_rig import set_bound
from tests.unit.broker.playing import TOPIC, played

ENTRIES = 8 * SLICE_IDS + 7


def of(world: World) -> Subscription:
    return world.broker.engine.topics[TOPIC].subscriptions["s"]


async def delivered(world: World) -> tuple[SimClient, SimConsumer, list[Position]]:
    """A Shared consumer that holds :data:`ENTRIES` messages."""
    producer = await (await world.connect()).producer(TOPIC)
    client = await world.connect()
    consumer = await client.subscribe(
        TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=2 * ENTRIES
    )
    positions = await asyncio.gather(*[producer.send_nowait(b"x") for _ in range(ENTRIES)])
    for _ in positions:
        await consumer.receive()
    return client, consumer, positions


def each_turn(world: World, look: Callable[[], None]) -> None:
    """Have ``look`` called at the beginning of each of the broker's turns."""
    begin_turn = world.broker.begin_turn

    def looked() -> None:
        look()
        begin_turn()

    world.broker.begin_turn = looked  # type: ignore[method-assign]


def steps(world: World, field: str) -> list[int]:
    """By how much a figure of the subscription changes between turns, from now on."""
    subscription, changes = of(world), [0]
    seen = [getattr(subscription, field)]

    def look() -> None:
        seen.append(getattr(subscription, field))
        changes.append(abs(seen[-1] - seen[-2]))

    each_turn(world, look)
    return changes


def when_begun(world: World, action: Callable[[], object]) -> None:
    """Have ``action`` called between two turns, when some of the acknowledgement is done."""
    done: list[object] = []

    def look() -> None:
        if not done and of(world).backlog_entries < ENTRIES:
            done.append(world.loop.call_soon(action))

    each_turn(world, look)


@played()
async def test_an_ack_of_many_ids_is_carried_out_in_slices(world: World) -> None:
    client, consumer, positions = await delivered(world)
    changes = steps(world, "backlog_entries")
    await client.request(lambda i: frames.ack(consumer.consumer_id, positions, request_id=i))
    assert sum(changes) == ENTRIES
    assert max(changes) <= TURN_UNITS


@played()
async def test_many_acks_of_some_ids_are_charged_by_their_ids(world: World) -> None:
    client, consumer, positions = await delivered(world)
    size = SLICE_IDS // 2
    acks = [positions[i : i + size] for i in range(0, ENTRIES, size)]
    changes = steps(world, "backlog_entries")
    client.write(b"".join(frames.ack(consumer.consumer_id, ids) for ids in acks))
    await asyncio.sleep(1)
    assert sum(changes) == ENTRIES
    assert max(changes) <= TURN_UNITS


@played()
async def test_what_is_given_back_is_taken_in_slices(world: World) -> None:
    _, consumer, positions = await delivered(world)
    changes = steps(world, "redelivered_messages")
    consumer.redeliver(positions)
    await asyncio.sleep(1)
    assert sum(changes) == ENTRIES
    assert max(changes) <= TURN_UNITS
    for _ in range(ENTRIES):
        assert (await consumer.receive()).redelivery_count == 1


@played()
async def test_a_long_ack_counts_although_its_consumer_leaves(world: World) -> None:
    client, consumer, positions = await delivered(world)
    consumer.ack_nowait(*positions)
    await asyncio.sleep(0.0001)  # so that the end does not arrive in the very instant of the ACK
    client.close()
    await asyncio.sleep(1)
    assert not of(world).consumers
    assert of(world).backlog_entries == 0


@played()
async def test_a_broken_connection_ends_its_long_ack(world: World) -> None:
    client, consumer, positions = await delivered(world)
    (connection,) = (c for c in world.broker.connections if c.consumers)
    when_begun(world, connection.abort)
    consumer.ack_nowait(*positions)
    await client.lost
    await asyncio.sleep(1)
    left = of(world).backlog_entries
    assert 0 < left < ENTRIES
    again = await (await world.connect()).subscribe(
        TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=2 * ENTRIES
    )
    for _ in range(left):
        await again.receive()
    assert of(world).backlog_entries == left


@played()
async def test_a_long_ack_does_not_reach_a_cursor_that_was_moved_meanwhile(world: World) -> None:
    client, consumer, positions = await delivered(world)
    facade, moves = AdminFacade(world.broker, world.observer), []

    def move() -> None:
        assert of(world).backlog_entries > SLICE_IDS
        to = AtPosition(EARLIEST)
        moves.append(asyncio.ensure_future(facade.reset_cursor(parse_topic(TOPIC), "s", to)))

    when_begun(world, move)
    with pytest.raises(RefusedError) as refusal:
        await client.request(lambda i: frames.ack(consumer.consumer_id, positions, request_id=i))
    assert refusal.value.code == ServerError.CONSUMER_NOT_FOUND
    await asyncio.gather(*moves)
    await asyncio.sleep(1)
    assert of(world).backlog_entries == ENTRIES


@played()
async def test_long_commands_are_charged_while_they_are_carried_out(world: World) -> None:
    """300 ACKs of 255 KB took 1.1 GB, and counted as nothing."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    ids = [Position(1, number) for number in range(5_000)]
    charged: list[int] = []
    memory, own = world.broker.client_memory, consumer.consumer_id
    each_turn(world, lambda: charged.append(memory.by_kind()["commands"]))
    for frame in (frames.ack(own, ids), frames.redeliver(own, ids)):
        charged.clear()
        client.write(frame)
        await asyncio.sleep(1)
        assert max(charged) > 400 * KIB
        assert memory.by_kind()["commands"] == 0


@played()
async def test_long_commands_whose_peers_read_nothing_keep_messages_from_nobody(
    world: World,
) -> None:
    """They were never done, of no connection that was closed for them, and held the memory in which
    newcomers have their place and messages of others go out."""
    memory, others = world.broker.client_memory, await world.connect()
    producer, other = await others.producer(TOPIC), await others.subscribe(TOPIC, "other")
    clients = [await world.connect() for _ in range(8)]
    consumers = [await c.subscribe(TOPIC, f"s{n}", queue_size=0) for n, c in enumerate(clients)]
    for client, consumer in zip(clients, consumers, strict=True):
        client.transport.pause_reading()
        consumer.flow(1)
    await producer.send(b"x" * 200 * KIB)
    await other.receive()
    for client in clients:
        client.write(frames.ping())
    await asyncio.sleep(2)
    set_bound(memory, memory.held.total + MIB)
    ids = [Position(1, number) for number in range(20_000)]
    for client, consumer in zip(clients, consumers, strict=True):
        client.write(frames.ack(consumer.consumer_id, ids))
    await asyncio.sleep(0.5)
    assert memory.is_over
    await asyncio.sleep(10)
    assert not memory.is_over
    await producer.send(b"x")
    await asyncio.wait_for(other.receive(), 1)
    await (await world.connect()).producer(TOPIC)
