"""Schemas on PRODUCER, SUBSCRIBE, GET_SCHEMA and GET_OR_CREATE_SCHEMA, over the wire."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.schema_types import CompatibilityStrategy, SchemaType
from headgate.base.units import MIB
from headgate.broker.schemas import registry
from headgate.broker.schemas.registry import version_bytes
from headgate.metadata.rows import Kind
from headgate.metadata.store import Write
from headgate.schema.definition import DEFINITION_BYTES_MAX
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import ServerError
from headgate.wire.messages import BaseCommand, Schema
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.unread import unsent_after

NAME = parse_topic(TOPIC)
NAMESPACE = NAME.namespace


def avro(*fields: str, type_: SchemaType = SchemaType.AVRO, **more: Any) -> Schema:
    """A record of longs; a field with a ``?`` has a default."""
    described = [
        {"name": f.rstrip("?"), "type": "long"} | ({"default": 0} if f.endswith("?") else {})
        for f in fields
    ]
    definition = {"type": "record", "name": "R", "fields": described, **more}
    return Schema(name="R", type=type_, schema_data=json.dumps(definition).encode())


A, AB, B = avro("a"), avro("a", "b?"), avro("b")
BYTES = Schema(name="", type=SchemaType.NONE, schema_data=b"")
AUTO = Schema(name="", type=SchemaType.AUTO_CONSUME, schema_data=b"")
VERSIONS = [version_bytes(number) for number in range(4)]


async def produce(client: SimClient, schema: Schema | None, topic: str = TOPIC) -> bytes:
    """Connect a producer; returns the schema's version that it is told."""
    return (await client.producer(topic, schema=schema)).schema_version


async def consume(client: SimClient, schema: Schema | None, topic: str = TOPIC) -> None:
    await client.subscribe(topic, f"s{client.new_id()}", schema=schema)


async def refused(asking: Any) -> RefusedError:
    with pytest.raises(RefusedError) as refusal:
        await asking
    return refusal.value


async def set_strategy(world: World, strategy: CompatibilityStrategy) -> None:
    catalog = world.broker.catalog
    change = catalog.plan_namespace_policies(NAMESPACE, schema_compatibility_strategy=strategy)
    await world.broker.commit(change)


@played()
async def test_versions_count_from_0_and_survive_a_crash(world: World) -> None:
    client = await world.connect()
    assert await produce(client, None) == b""
    assert await produce(client, A) == VERSIONS[0] == bytes(8)
    assert await produce(client, A) == VERSIONS[0]
    assert await produce(client, AB) == VERSIONS[1]
    assert await produce(client, None) == b"", "bytes pass"
    error = await refused(produce(client, B))
    assert error.code == ServerError.INCOMPATIBLE_SCHEMA
    assert "field 'a' of the reader has no default" in error.message
    error = await refused(produce(client, avro("a", type_=SchemaType.JSON)))
    assert "exists schema type AVRO, new schema type JSON" in error.message
    world.crash()
    await world.start()
    client = await world.connect()
    assert await produce(client, A) == VERSIONS[0], "an old definition keeps its version"
    assert await produce(client, avro("a", doc="another text")) == VERSIONS[0]
    assert await produce(client, AB) == VERSIONS[1]
    assert (await refused(produce(client, B))).code == ServerError.INCOMPATIBLE_SCHEMA


@played()
async def test_a_row_of_a_release_without_versions_is_version_0(world: World) -> None:
    client = await world.connect()
    await produce(client, None)
    world.crash()
    data = base64.b64encode(A.schema_data)
    row = b'{"type":4,"name":"R","data":"' + data + b'","properties":{"k":"v"}}'
    world.store.commit([Write(Kind.SCHEMA.value, TOPIC, row)])
    await world.start()
    client = await world.connect()
    assert await produce(client, A) == VERSIONS[0]
    assert await produce(client, AB) == VERSIONS[1]
    first = world.broker.catalog.schema(NAME, 0)
    assert first is not None
    assert first.properties == {"k": "v"}


@played()
async def test_a_consumer_brings_the_first_schema_of_an_idle_topic_only(world: World) -> None:
    client = await world.connect()
    await consume(client, AUTO)
    await consume(client, A)
    assert await produce(client, A) == VERSIONS[0]
    other = "persistent://public/default/other"
    await consume(client, None, other)
    error = await refused(consume(client, A, other))
    assert error.code == ServerError.INCOMPATIBLE_SCHEMA
    assert "Topic does not have schema to check" in error.message
    third = "persistent://public/default/third"
    await produce(client, None, third)
    assert "Topic does not have schema" in (await refused(consume(client, A, third))).message
    fourth = "persistent://public/default/fourth"
    producer = await client.producer(fourth)
    await producer.send(b"x")
    client.close()
    await client.lost
    client = await world.connect()
    assert "Topic does not have schema" in (await refused(consume(client, A, fourth))).message
    await set_strategy(world, CompatibilityStrategy.ALWAYS_COMPATIBLE)
    await consume(client, A, fourth)
    assert world.broker.catalog.schema(parse_topic(fourth)) is None


@played()
async def test_a_consumer_must_read_the_latest_version(world: World) -> None:
    client = await world.connect()
    await produce(client, A)
    await consume(client, A)
    await consume(client, AB)
    await consume(client, avro("c?"))
    assert (await refused(consume(client, B))).code == ServerError.INCOMPATIBLE_SCHEMA
    assert (
        "new schema type STRING"
        in (
            await refused(consume(client, Schema(name="", type=SchemaType.STRING, schema_data=b"")))
        ).message
    )
    await consume(client, AUTO)
    await consume(client, None)
    assert "new schema type NONE" in (await refused(consume(client, BYTES))).message
    assert world.broker.catalog.schema(NAME).version == 0, "consumers add nothing"  # type: ignore[union-attr]


@played()
async def test_the_strategy_of_the_namespace_and_the_topic(world: World) -> None:
    client = await world.connect()
    await produce(client, A)
    await set_strategy(world, CompatibilityStrategy.BACKWARD)
    assert await produce(client, avro("b?")) == VERSIONS[1]
    await set_strategy(world, CompatibilityStrategy.BACKWARD_TRANSITIVE)
    await refused(produce(client, avro("b", "c?")))
    await refused(produce(client, avro("b")))
    catalog = world.broker.catalog
    await world.broker.commit(
        catalog.plan_topic_policies(
            NAME, schema_compatibility_strategy=CompatibilityStrategy.ALWAYS_COMPATIBLE
        )
    )
    text = Schema(name="", type=SchemaType.STRING, schema_data=b"")
    assert await produce(client, text) == VERSIONS[2]
    await set_strategy(world, CompatibilityStrategy.ALWAYS_COMPATIBLE)
    await world.broker.commit(
        catalog.plan_topic_policies(
            NAME, schema_compatibility_strategy=CompatibilityStrategy.ALWAYS_INCOMPATIBLE
        )
    )
    assert await produce(client, A) == VERSIONS[0]
    assert await produce(client, text) == VERSIONS[2]
    await consume(client, text)
    await refused(produce(client, avro("b?", "a?")))


@played()
async def test_new_definitions_only_from_the_administrator(world: World) -> None:
    client = await world.connect()
    await produce(client, A)
    catalog = world.broker.catalog
    change = catalog.plan_namespace_policies(NAMESPACE, is_allow_auto_update_schema=False)
    await world.broker.commit(change)
    assert await produce(client, A) == VERSIONS[0]
    error = await refused(produce(client, AB))
    assert "Schema not found and schema auto updating is disabled." in error.message
    await refused(consume(client, A, "persistent://public/default/idle"))
    await world.broker.commit(
        catalog.plan_namespace_policies(NAMESPACE, is_allow_auto_update_schema=None)
    )
    await world.broker.commit(catalog.plan_setting("isAllowAutoUpdateSchemaEnabled", "false"))
    await refused(produce(client, AB))


@played()
async def test_validation_refuses_producers_without_a_schema(world: World) -> None:
    client = await world.connect()
    catalog = world.broker.catalog
    change = catalog.plan_namespace_policies(NAMESPACE, schema_validation_enforced=True)
    await world.broker.commit(change)
    await produce(client, None)
    await produce(client, A)
    error = await refused(produce(client, None))
    assert error.code == ServerError.INCOMPATIBLE_SCHEMA
    assert "without a schema to topics with a schema" in error.message
    asking = client.request(lambda i: frames.get_or_create_schema(i, TOPIC, BYTES))
    assert "without a schema" in (await refused(asking)).message
    await consume(client, None)
    await world.broker.commit(catalog.plan_topic_policies(NAME, schema_validation_enforced=False))
    await produce(client, None)


@played()
async def test_the_bytes_of_the_go_client_are_a_schema(world: World) -> None:
    """It asks for the version that its messages have."""
    client = await world.connect()
    assert await produce(client, BYTES) == VERSIONS[0]
    await consume(client, BYTES)
    answer = await client.request(lambda i: frames.get_schema(i, TOPIC, VERSIONS[0]))
    assert answer.getSchemaResponse.schema.type == SchemaType.NONE
    assert "exists schema type NONE" in (await refused(produce(client, A))).message
    assert (await refused(produce(client, AUTO))).code == ServerError.INCOMPATIBLE_SCHEMA


@played()
async def test_all_partitions_have_one_schema(world: World) -> None:
    catalog = world.broker.catalog
    await world.broker.writer.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=1))
    client = await world.connect()
    assert await produce(client, A, f"{TOPIC}-partition-0") == VERSIONS[0]
    assert await produce(client, AB, f"{TOPIC}-partition-1") == VERSIONS[1]
    await refused(produce(client, B, f"{TOPIC}-partition-1"))
    await world.broker.registry.delete(NAME.partition_name(0), force=True)
    assert await produce(client, A, f"{TOPIC}-partition-1") == VERSIONS[0]
    await world.broker.registry.delete(NAME, force=True)
    assert catalog.schema(NAME) is None
    assert catalog.schema_bytes == 0
    assert await produce(client, B) == VERSIONS[0]


@played()
async def test_a_topic_that_becomes_a_partition_brings_its_schema(world: World) -> None:
    client = await world.connect()
    await produce(client, A, f"{TOPIC}-partition-0")
    await produce(client, AB, f"{TOPIC}-partition-0")
    catalog = world.broker.catalog
    await world.broker.writer.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=1))
    await refused(produce(client, B, f"{TOPIC}-partition-1"))
    assert await produce(client, A, f"{TOPIC}-partition-1") == VERSIONS[0]


@played()
async def test_several_at_once(world: World) -> None:
    client = await world.connect()
    await produce(client, None)
    answers = await asyncio.gather(
        *(produce(client, each) for each in (A, AB, A, avro("a", "c?"))), return_exceptions=True
    )
    assert answers[0] == answers[2] == VERSIONS[0]
    assert {answers[1], answers[3]} == {VERSIONS[1], VERSIONS[2]}
    assert world.broker.catalog.in_flight_count == 0


@played()
async def test_a_client_that_waited_for_a_failed_definition_defines_its_own(world: World) -> None:
    client = await world.connect()
    await produce(client, None)
    world.store.fail_next(StorageError("hiccup", retryable=True))
    answers = await asyncio.gather(produce(client, A), produce(client, B), return_exceptions=True)
    assert isinstance(answers[0], RefusedError)
    assert answers[0].code == ServerError.PERSISTENCE_ERROR
    assert answers[1] == VERSIONS[0]


@played()
async def test_a_topic_that_is_deleted_meanwhile(world: World) -> None:
    """Its schema goes with it, and none stays behind."""
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
async def test_a_definition_that_is_too_long_or_none(world: World) -> None:
    client = await world.connect()
    long = Schema(name="R", type=SchemaType.AVRO, schema_data=b"x" * (DEFINITION_BYTES_MAX + 1))
    error = await refused(produce(client, long))
    assert error.code == ServerError.INCOMPATIBLE_SCHEMA
    assert str(DEFINITION_BYTES_MAX) in error.message
    for data in (b"", b"no json", b'{"type":"record"}', b"[" * 100_000):
        bad = Schema(name="R", type=SchemaType.AVRO, schema_data=data)
        error = await refused(produce(client, bad))
        assert error.code == ServerError.INCOMPATIBLE_SCHEMA
        assert "Invalid schema definition data for AVRO schema" in error.message
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
async def test_get_schema_answers_with_any_version(world: World) -> None:
    client = await world.connect()

    async def told(make: Callable[[int], bytes]) -> BaseCommand:
        return await client.request(make)

    absent = await refused(told(lambda i: frames.get_schema(i, TOPIC)))
    assert absent.code == ServerError.TOPIC_NOT_FOUND
    schema = Schema(name="n", type=SchemaType.AVRO, schema_data=A.schema_data)
    schema.properties.add(key="k", value="v")
    await produce(client, schema)
    await produce(client, AB)
    for asked, version, data in (
        (None, VERSIONS[1], AB.schema_data),
        (VERSIONS[0], VERSIONS[0], A.schema_data),
        (VERSIONS[1] + bytes(56), VERSIONS[1], AB.schema_data),
    ):
        answer = (await told(lambda i, v=asked: frames.get_schema(i, TOPIC, v))).getSchemaResponse
        assert answer.schema_version == version
        assert answer.schema.schema_data == data
        assert answer.schema.name == "public/default/orders"
    first = (await told(lambda i: frames.get_schema(i, TOPIC, VERSIONS[0]))).getSchemaResponse
    assert {p.key: p.value for p in first.schema.properties} == {"k": "v"}
    for version in (VERSIONS[2], b"\xff" * 8):
        later = await refused(told(lambda i, v=version: frames.get_schema(i, TOPIC, v)))
        assert later.code == ServerError.TOPIC_NOT_FOUND
    for short in (b"", b"\1"):
        empty = await refused(told(lambda i, v=short: frames.get_schema(i, TOPIC, v)))
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
    assert await ask(A) == VERSIONS[0]
    assert await ask(AB) == VERSIONS[1]
    assert await ask(BYTES) == b""
    assert (await refused(ask(B))).code == ServerError.INCOMPATIBLE_SCHEMA
    assert client.is_open


@played()
async def test_a_first_schema_looks_at_a_bounded_number_of_consumers(world: World) -> None:
    """A definition that is refused left the topic as it was, so each SUBSCRIBE with one looked at
    all consumers: 2.5 ms for 40,000."""
    client = await world.connect()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "IDLE_CLIENTS_MAX", 4)
        await consume(client, AUTO)
        await consume(client, AUTO)
        await consume(client, AUTO)
        error = await refused(consume(client, A))
    assert error.code == ServerError.INCOMPATIBLE_SCHEMA
    assert "does not have schema to check" in str(error)
    patient = "persistent://public/default/patient"
    await consume(client, AUTO, patient)
    await consume(client, A, patient)
    assert await produce(client, A, patient) == VERSIONS[0]


@played()
async def test_answers_do_not_pass_the_bound_on_memory(world: World) -> None:
    """0.7 MB of such commands took 1.1 GB where clients may hold 256 MB."""
    await produce(await world.connect(), avro("a", doc="x" * 100_000))
    found = await unsent_after(world, lambda i: frames.get_schema(i, TOPIC))
    assert MIB // 2 < found < 3 * MIB
