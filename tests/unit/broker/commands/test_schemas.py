"""A topic keeps its first schema definition and refuses others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.broker.commands.schemas import SCHEMA_BYTES_MAX, VERSION
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import SchemaType, ServerError
from headgate.wire.messages import BaseCommand, Schema
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


def avro(*fields: str, type_: SchemaType = SchemaType.AVRO) -> Schema:
    definition = {
        "type": "record", "name": "R", "fields": [{"name": f, "type": "long"} for f in fields],
    }  # fmt: skip
    return Schema(name="R", type=type_, schema_data=json.dumps(definition).encode())


A, B = avro("a"), avro("b")
BYTES = Schema(name="", type=SchemaType.NONE, schema_data=b"")
AUTO = Schema(name="", type=SchemaType.AUTO_CONSUME, schema_data=b"")


async def produce(client: SimClient, schema: Schema | None, topic: str = TOPIC) -> bytes:
    """Connect a producer; returns the schema's version that it is told."""
    return (await client.producer(topic, schema=schema)).schema_version


async def consume(client: SimClient, schema: Schema | None, topic: str = TOPIC) -> None:
    await client.subscribe(topic, f"s{client.new_id()}", schema=schema)


async def refused(asking: Any) -> RefusedError:
    with pytest.raises(RefusedError) as refusal:
        await asking
    return refusal.value


@played()
async def test_the_first_definition_stays_also_over_a_crash(world: World) -> None:
    client = await world.connect()
    assert await produce(client, None) == b""
    assert await produce(client, A) == VERSION == bytes(8)
    assert await produce(client, A) == VERSION
    assert await produce(client, None) == b""  # bytes pass
    await consume(client, A)
    for asking in (produce(client, B), consume(client, B)):
        error = await refused(asking)
        assert error.code == ServerError.INCOMPATIBLE_SCHEMA
        assert "has another AVRO schema" in error.message
    error = await refused(consume(client, avro("a", type_=SchemaType.JSON)))
    assert "has a schema of type AVRO, the client's is of type JSON" in error.message
    world.crash()
    await world.start()
    client = await world.connect()
    assert (await refused(produce(client, B))).code == ServerError.INCOMPATIBLE_SCHEMA
    assert await produce(client, A) == VERSION


@played()
async def test_a_consumer_may_be_the_first_to_say_it(world: World) -> None:
    client = await world.connect()
    await consume(client, AUTO)
    await consume(client, BYTES)
    await consume(client, None)
    await consume(client, B)
    assert await produce(client, B) == VERSION
    await refused(produce(client, A))
    await consume(client, AUTO)


@played()
async def test_all_partitions_have_one_schema(world: World) -> None:
    catalog = world.broker.catalog
    await world.broker.writer.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=1))
    client = await world.connect()
    assert await produce(client, A, f"{TOPIC}-partition-0") == VERSION
    await refused(produce(client, B, f"{TOPIC}-partition-1"))
    await refused(consume(client, B, f"{TOPIC}-partition-1"))
    await world.broker.registry.delete(NAME.partition_name(0), force=True)
    assert await produce(client, A, f"{TOPIC}-partition-1") == VERSION
    await world.broker.registry.delete(NAME, force=True)
    assert catalog.schema(NAME) is None
    assert await produce(client, B) == VERSION


@played()
async def test_a_topic_that_becomes_a_partition_brings_its_schema(world: World) -> None:
    client = await world.connect()
    await produce(client, A, f"{TOPIC}-partition-0")
    catalog = world.broker.catalog
    await world.broker.writer.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=1))
    await refused(produce(client, B, f"{TOPIC}-partition-1"))
    assert await produce(client, A, f"{TOPIC}-partition-1") == VERSION


@played()
async def test_several_that_say_it_at_once(world: World) -> None:
    client = await world.connect()
    await produce(client, None)
    answers = await asyncio.gather(
        produce(client, A), produce(client, B), produce(client, A), return_exceptions=True
    )
    assert answers[0] == answers[2] == VERSION
    assert isinstance(answers[1], RefusedError)
    assert world.broker.catalog.in_flight_count == 0


@played()
async def test_a_client_that_waited_for_a_failed_definition_defines_its_own(world: World) -> None:
    client = await world.connect()
    await produce(client, None)
    world.store.fail_next(StorageError("hiccup", retryable=True))
    answers = await asyncio.gather(produce(client, A), produce(client, B), return_exceptions=True)
    assert isinstance(answers[0], RefusedError)
    assert answers[0].code == ServerError.PERSISTENCE_ERROR
    assert answers[1] == VERSION


@played()
async def test_a_topic_that_is_deleted_meanwhile(world: World) -> None:
    """Its schema goes with it, or it is made anew with one."""
    client = await world.connect()
    await produce(client, None)
    world.lanes[2].freeze()
    deleting = asyncio.ensure_future(world.broker.registry.delete(NAME, force=True))
    await asyncio.sleep(0.1)
    asking = asyncio.ensure_future(
        client.request(lambda i: frames.get_or_create_schema(i, TOPIC, A))
    )
    await asyncio.sleep(0.1)
    world.lanes[2].thaw()
    await deleting
    assert (await refused(asking)).code == ServerError.TOPIC_NOT_FOUND
    assert world.broker.catalog.schema(NAME) is None


@played()
async def test_a_definition_that_is_too_long(world: World) -> None:
    client = await world.connect()
    long = Schema(name="R", type=SchemaType.AVRO, schema_data=b"x" * SCHEMA_BYTES_MAX)
    error = await refused(produce(client, long))
    assert error.code == ServerError.INCOMPATIBLE_SCHEMA
    assert str(SCHEMA_BYTES_MAX) in error.message
    assert client.is_open
    assert world.broker.catalog.schema(NAME) is None


@played()
async def test_the_brokers_own_topic_has_none(world: World) -> None:
    client = await world.connect()
    telemetry = world.broker.settings.headgateTelemetryTopic
    await consume(client, A, telemetry)
    await consume(client, B, telemetry)
    assert world.broker.catalog.schema(parse_topic(telemetry)) is None


@played()
async def test_get_schema_answers_with_the_definition(world: World) -> None:
    client = await world.connect()

    async def told(make: Callable[[int], bytes]) -> BaseCommand:
        return await client.request(make)

    absent = await refused(told(lambda i: frames.get_schema(i, TOPIC)))
    assert absent.code == ServerError.TOPIC_NOT_FOUND
    schema = Schema(name="n", type=SchemaType.AVRO, schema_data=A.schema_data)
    schema.properties.add(key="k", value="v")
    await produce(client, schema)
    for version in (None, VERSION):
        answer = await told(lambda i, v=version: frames.get_schema(i, TOPIC, v))
        assert answer.getSchemaResponse.schema == schema
        assert answer.getSchemaResponse.schema_version == VERSION
    later = await refused(told(lambda i: frames.get_schema(i, TOPIC, b"\0" * 7 + b"\1")))
    assert later.code == ServerError.TOPIC_NOT_FOUND
    empty = await refused(told(lambda i: frames.get_schema(i, TOPIC, b"")))
    assert empty.code == ServerError.INCOMPATIBLE_SCHEMA
    bad = await refused(told(lambda i: frames.get_schema(i, "a//b")))
    assert bad.code == ServerError.INVALID_TOPIC_NAME


@played()
async def test_a_producer_asks_for_a_further_schema(world: World) -> None:
    client = await world.connect()

    async def ask(schema: Schema, topic: str = TOPIC) -> bytes:
        answer = await client.request(lambda i: frames.get_or_create_schema(i, topic, schema))
        return bytes(answer.getOrCreateSchemaResponse.schema_version)

    assert (await refused(ask(A))).code == ServerError.TOPIC_NOT_FOUND
    await produce(client, None)
    assert await ask(A) == VERSION
    assert (await refused(ask(B))).code == ServerError.INCOMPATIBLE_SCHEMA
    assert client.is_open
