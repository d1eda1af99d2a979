"""Clients of earlier protocol versions get only the frames that they know."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.testing import RefusedError, SimClient, World
from headgate.wire.codes import ServerError, SubscriptionType
from headgate.wire.peer import PROTOCOL_VERSION_MAX
from tests.unit.broker.playing import TOPIC, played

FAILOVER = SubscriptionType.FAILOVER


async def connect(world: World, version: int) -> SimClient:
    client = world.open_connection()
    await client.connect(protocol_version=version)
    return client


@played()
async def test_the_lower_version_of_both_is_spoken(world: World) -> None:
    for asked, spoken in ((0, 0), (7, 7), (PROTOCOL_VERSION_MAX + 5, PROTOCOL_VERSION_MAX)):
        client = await connect(world, asked)
        assert client.connected is not None
        assert client.connected.connected.protocol_version == spoken
        assert client.connected.connected.max_message_size == 5 * 1024 * 1024


@played()
async def test_old_clients_get_entries_without_checksum(world: World) -> None:
    old, new = await connect(world, 10), await connect(world, 11)
    consumers = [await old.subscribe(TOPIC, "old"), await new.subscribe(TOPIC, "new")]
    bodies: list[bytes] = []
    for consumer in consumers:
        arrived = consumer.arrived
        consumer.arrived = lambda told, body, go=arrived: (bodies.append(body), go(told, body))  # type: ignore[assignment,method-assign,func-returns-value]
    producer = await new.producer(TOPIC)
    await producer.send(b"payload")
    for consumer in consumers:
        assert (await consumer.receive()).payload == b"payload"
    short, long = sorted(bodies, key=len)
    assert long[:2] == b"\x0e\x01"
    assert long[6:] == short


@played()
async def test_old_clients_that_know_no_close_command_are_disconnected(world: World) -> None:
    old, new = await connect(world, 4), await connect(world, 5)
    neighbour = await (await world.connect()).producer(f"{TOPIC}-other")
    await old.subscribe(TOPIC, "old")
    consumer = await new.subscribe(TOPIC, "new")
    await world.broker.registry.unload(parse_topic(TOPIC))
    await asyncio.sleep(0.1)
    assert not old.is_open
    assert new.is_open
    assert not consumer.is_open
    assert await neighbour.send(b"x")


@played()
async def test_clients_that_know_it_learn_which_consumer_is_active(world: World) -> None:
    old, new = await connect(world, 11), await connect(world, 12)
    silent = await old.subscribe(TOPIC, "s", kind=FAILOVER, name="a")
    told = await new.subscribe(TOPIC, "s", kind=FAILOVER, name="b")
    await asyncio.sleep(0.1)
    assert silent.active_changes == []
    assert len(told.active_changes) == 1


@played(settings={"keepAliveIntervalSeconds": "5"})
async def test_only_clients_that_know_pings_get_them(world: World) -> None:
    old, new = await connect(world, 0), await connect(world, 1)
    pings: dict[SimClient, int] = {old: 0, new: 0}
    for client in (old, new):
        receive = client._receive

        def count(command: object, body: bytes | None, c: SimClient = client, go=receive) -> None:  # type: ignore[no-untyped-def]
            pings[c] += "PING" in str(command)
            go(command, body)

        client._receive = count  # type: ignore[assignment,method-assign]
    await asyncio.sleep(9)
    assert pings == {old: 0, new: 1}
    await asyncio.sleep(60)
    assert old.is_open  # it cannot be asked whether it lives


@played()
async def test_a_client_that_knows_no_batches_is_refused_where_there_are_some(world: World) -> None:
    old, new = await connect(world, 3), await connect(world, 4)
    producer = await new.producer(TOPIC)
    await producer.send(b"", batch=[b"a", b"b"])
    with pytest.raises(RefusedError, match="doesn't support batch-message") as refusal:
        await old.subscribe(TOPIC, "old")
    assert refusal.value.code == ServerError.UNSUPPORTED_VERSION_ERROR
    assert (await (await new.subscribe(TOPIC, "new")).receive()).payloads == (b"a", b"b")


@played()
async def test_a_client_that_knows_no_batches_gets_none(world: World) -> None:
    old, new = await connect(world, 3), await connect(world, 21)
    consumer = await old.subscribe(TOPIC, "s")
    producer = await new.producer(TOPIC)
    await producer.send(b"single")
    assert (await consumer.receive()).payload == b"single"
    await producer.send(b"", batch=[b"a"])
    await asyncio.sleep(0.1)
    assert not old.is_open
    other = await new.subscribe(TOPIC, "s")
    assert [(await other.receive()).payloads for _ in range(2)] == [(b"single",), (b"a",)]
