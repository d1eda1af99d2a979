"""Partition metadata, lookup and topic lists, over the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.broker.commands.lookups import LookupCommands, is_loopback
from headgate.broker.info import BrokerInfo
from headgate.testing import RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played


async def partition(world: World, topic: str, count: int) -> None:
    """Make ``topic`` a partitioned one."""
    broker = world.broker
    change = broker.catalog.plan_create_partitioned(
        parse_topic(topic), count, now_ms=world.wall_ms()
    )
    await broker.writer.commit(change)


@played()
async def test_a_topic_without_partitions_is_made_on_demand(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.partitions(TOPIC, auto_creation=False)
    assert refusal.value.code == ServerError.TOPIC_NOT_FOUND
    assert await client.partitions(TOPIC) == 0
    await client.producer(TOPIC)
    assert await client.partitions(TOPIC, auto_creation=False) == 0
    assert await client.topics("public/default") == [TOPIC]


@played()
async def test_partitions_are_topics_of_their_own(world: World) -> None:
    await partition(world, TOPIC, 3)
    client = await world.connect()
    assert await client.partitions(TOPIC) == 3
    names = [f"{TOPIC}-partition-{index}" for index in range(3)]
    assert await client.topics("public/default") == names
    producer = await client.producer(names[1])
    consumer = await client.subscribe(names[1], "s")
    await producer.send(b"in the middle")
    assert (await consumer.receive()).partition == 1


@played()
async def test_a_partitioned_topic_itself_holds_nothing(world: World) -> None:
    await partition(world, TOPIC, 3)
    client = await world.connect()
    for topic in (TOPIC, f"{TOPIC}-partition-3"):
        with pytest.raises(RefusedError) as refusal:
            await client.producer(topic)
        assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
        with pytest.raises(RefusedError) as refusal:
            await client.subscribe(topic, "s")
        assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR


@played()
async def test_every_topic_is_served_here(world: World) -> None:
    client = await world.connect()
    assert await client.lookup(TOPIC) == world.broker.info.broker_url
    answer = await client.request(lambda i: frames.lookup(i, TOPIC))
    through = answer.lookupTopicResponse.proxy_through_service_url
    assert through is is_loopback(world.broker.info.broker_url)


@played()
async def test_names_that_lead_nowhere(world: World) -> None:
    client = await world.connect()
    for topic in ("persistent://nobody/here/x", "persistent://public/nowhere/x"):
        with pytest.raises(RefusedError) as refusal:
            await client.lookup(topic)
        assert refusal.value.code == ServerError.TOPIC_NOT_FOUND
        with pytest.raises(RefusedError):
            await client.partitions(topic)
        with pytest.raises(RefusedError):
            await client.producer(topic)
    for topic in ("persistent://public/default/", "a//b", "persistent://a b/c/d", ""):
        with pytest.raises(RefusedError) as refusal:
            await client.lookup(topic)
        assert refusal.value.code == ServerError.INVALID_TOPIC_NAME
    with pytest.raises(RefusedError):
        await client.topics("nowhere")
    assert client.is_open


@played(settings={"allowAutoTopicCreation": "false"})
async def test_topics_are_not_made_where_that_is_forbidden(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC)
    assert refusal.value.code == ServerError.TOPIC_NOT_FOUND
    with pytest.raises(RefusedError) as refusal:
        await client.subscribe(TOPIC, "s")
    assert refusal.value.code == ServerError.TOPIC_NOT_FOUND


@played(settings={"maxConcurrentLookupRequest": "3", "allowAutoTopicCreationType": "partitioned"})
async def test_lookups_that_wait_are_bounded(world: World) -> None:
    client = await world.connect()
    world.lanes[2].freeze()
    asked = [asyncio.ensure_future(client.partitions(f"{TOPIC}-{index}")) for index in range(5)]
    await asyncio.sleep(0.1)
    assert [future.done() for future in asked] == [False, False, False, True, True]
    with pytest.raises(RefusedError) as refusal:
        await asked[3]
    assert refusal.value.code == ServerError.TOO_MANY_REQUESTS
    world.lanes[2].thaw()
    assert await asyncio.gather(*asked[:3]) == [1, 1, 1]
    assert await client.partitions(f"{TOPIC}-4") == 1
    with pytest.raises(RefusedError):
        await asked[4]


@played()
async def test_nobody_but_the_broker_produces_telemetry(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.producer(world.broker.settings.headgateTelemetryTopic)
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR


@played()
async def test_topics_that_nobody_uses_go(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await producer.send(b"x")
    await producer.close()
    world.clock.advance(200 * 1_000_000_000)
    await world.broker.endings.topics.delete()
    assert world.broker.catalog.topic(TOPIC) is None
    world.crash()
    await world.start()
    assert TOPIC not in world.broker.engine.topics
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    assert (await consumer.last_message_id()).entry_id == -1


@played()
async def test_commands_that_are_not_built_are_refused_one_by_one(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.request(_new_transaction)
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    assert "NEW_TXN" in refusal.value.message
    assert await client.lookup(TOPIC)


def _new_transaction(request_id: int) -> bytes:
    command = BaseCommand(type=CommandType.NEW_TXN)
    command.newTxn.request_id = request_id
    return encode_frame(command)


@pytest.mark.parametrize(
    ("url", "through"),
    [
        ("pulsar://localhost:6650", True),
        ("pulsar://127.0.0.2:6650", True),
        ("pulsar+ssl://[::1]:6651", True),
        ("pulsar://broker.example.com:6650", False),
        ("pulsar://10.0.0.1:6650", False),
        ("pulsar://localhost.example.com:6650", False),
        ("", False),
    ],
)
def test_clients_stay_with_their_address_where_ours_is_of_no_use_to_them(
    url: str, through: bool
) -> None:
    assert is_loopback(url) is through


@played()
async def test_with_tls_a_lookup_has_both_addresses(world: World) -> None:
    seen: list[tuple[str, str]] = []
    info = BrokerInfo("b:8443", "", "", "1", "", "pulsar+ssl://b:6651", "https://b:8443")
    for each in (info, replace(info, broker_url="pulsar://b:6650")):
        commands = LookupCommands(
            world.broker.registry, world.broker.catalog, world.broker.settings,
            world.broker.counts, each, lambda *_: None,
        )  # fmt: skip
        connection: Any = SimpleNamespace(write=lambda frame: seen.append(urls_of(frame)))
        command = BaseCommand(type=CommandType.LOOKUP)
        command.lookupTopic.topic = TOPIC
        command.lookupTopic.request_id = 7
        commands.lookup(connection, command)
    assert seen == [
        ("", "pulsar+ssl://b:6651"), ("pulsar://b:6650", "pulsar+ssl://b:6651"),
    ]  # fmt: skip


def urls_of(frame: bytes) -> tuple[str, str]:
    """Both addresses of a reply."""
    reply = BaseCommand.FromString(frame[8:]).lookupTopicResponse
    return reply.brokerServiceUrl, reply.brokerServiceUrlTls
