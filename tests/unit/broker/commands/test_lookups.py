"""Partition metadata, lookup and topic lists, over the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.broker.commands.lookups import SLICE_NAMES, LookupCommands
from headgate.broker.info import BrokerInfo
from headgate.metadata.rows import TenantRow
from headgate.testing import RefusedError, World
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
        await client.request(_consumer_stats)
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    assert "CONSUMER_STATS" in refusal.value.message
    assert await client.lookup(TOPIC)


def _consumer_stats(request_id: int) -> bytes:
    command = BaseCommand(type=CommandType.CONSUMER_STATS)
    command.consumerStats.request_id = request_id
    command.consumerStats.consumer_id = 1
    return encode_frame(command)


@played()
async def test_a_namespace_that_is_not_there_yet_has_no_topics(world: World) -> None:
    """Whoever subscribes by a pattern may come before it."""
    client = await world.connect()
    assert await client.topics("acme/later") == []
    catalog, tenant = world.broker.catalog, TenantRow(allowed_clusters=("standalone",))
    for change in (
        lambda: catalog.plan_create_tenant("acme", tenant),
        lambda: catalog.plan_create_namespace(NamespaceName("acme", "later")),
    ):
        await world.broker.writer.commit(change())
    name = "persistent://acme/later/orders"
    await client.producer(name)
    assert await client.topics("acme/later") == [name]


@played()
async def test_a_long_list_of_topics_is_made_in_slices(
    world: World,
) -> None:
    """It was one call: a namespace of 100,000 topics stopped everybody for 0.1 s and more."""
    catalog, count = world.broker.catalog, 3 * SLICE_NAMES + 5
    names = [f"persistent://public/default/t{number:06}" for number in range(count)]
    for name in names:
        change = catalog.plan_create_topic(parse_topic(name), now_ms=1)
        catalog.apply(change)
    client = await world.connect()
    turn, asked = 0, []
    topics_after, begin_turn = catalog.topics_after, world.broker.begin_turn

    def begun() -> None:
        nonlocal turn
        turn += 1
        begin_turn()

    def noting(namespace: NamespaceName, after: str, count_max: int) -> list[str]:
        asked.append(turn)
        found = topics_after(namespace, after, count_max)
        assert len(found) <= SLICE_NAMES
        return found

    catalog.topics_after = noting  # type: ignore[method-assign]
    world.broker.begin_turn = begun  # type: ignore[method-assign]
    assert await client.topics("public/default") == names
    assert len(asked) == len(set(asked)) == 4


@played()
async def test_a_list_of_topics_beyond_the_bound_is_refused(
    world: World,
) -> None:
    catalog = world.broker.catalog
    for number in range(20):
        name = f"persistent://public/default/t{number}"
        catalog.apply(catalog.plan_create_topic(parse_topic(name), now_ms=1))
    client = await world.connect()
    settings = world.broker.settings
    before = settings.maxMessageSize
    settings.maxMessageSize = 100
    try:
        with pytest.raises(RefusedError, match="more than 100 bytes") as refusal:
            await client.topics("public/default")
    finally:
        settings.maxMessageSize = before
    assert refusal.value.code == ServerError.TOO_MANY_REQUESTS
    assert len(await client.topics("public/default")) == 20


@played()
async def test_with_tls_a_lookup_has_both_addresses(world: World) -> None:
    seen: list[tuple[str, str]] = []
    info = BrokerInfo("b:8443", "", "", "1", "", "pulsar+ssl://b:6651", "https://b:8443")
    for each in (info, replace(info, broker_url="pulsar://b:6650")):
        commands = LookupCommands(
            world.broker.registry, world.broker.catalog, world.broker.settings,
            world.broker.counts, each,
        )  # fmt: skip
        connection: Any = SimpleNamespace(write=lambda frame: seen.append(urls_of(frame)))
        command = BaseCommand(type=CommandType.LOOKUP)
        command.lookupTopic.topic = TOPIC
        command.lookupTopic.request_id = 7
        await commands.lookup(connection, command)
    assert seen == [
        ("", "pulsar+ssl://b:6651"), ("pulsar://b:6650", "pulsar+ssl://b:6651"),
    ]  # fmt: skip


def urls_of(frame: bytes) -> tuple[str, str]:
    """Both addresses of a reply."""
    reply = BaseCommand.FromString(frame[8:]).lookupTopicResponse
    return reply.brokerServiceUrl, reply.brokerServiceUrlTls
