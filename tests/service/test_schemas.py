"""Schemas with the official client: versions, compatibility, policies, and what a kill leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from pulsar.schema import (
    AvroSchema,
    Boolean,
    Double,
    Integer,
    JsonSchema,
    Long,
    ProtobufNativeSchema,
    Record,
    String,
)

from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full
from tests.service.process import BrokerProcess

NAMESPACE = "/admin/v2/namespaces/public/default"


class Order(Record):  # type: ignore[misc]
    id = Long(required=True)
    note = String()


class Dated(Record):  # type: ignore[misc]
    id = Long(required=True)
    note = String()
    paid = Boolean(required_default=True)


class Invoice(Record):  # type: ignore[misc]
    sum = Double(required=True)


class Counted(Record):  # type: ignore[misc]
    id = Long(required=True)
    note = String()
    count = Integer(required=True)


def asked(broker: BrokerProcess, method: str, path: str, body: Any = None) -> Any:
    sent = None if body is None else json.dumps(body).encode()
    status, answer = broker.request(method, path, sent)
    assert status < 300, answer
    return json.loads(answer) if answer else None


@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_versions_of_a_definition(
    make_broker: Callable[..., BrokerProcess], schema: Callable[[Any], Any]
) -> None:
    broker, topic = make_broker().start(), full("orders")
    with client_of(broker.service_url) as client:
        client.create_producer(topic, schema=schema(Order)).send(Order(id=7, note="x"))
        client.create_producer(topic, schema=schema(Dated)).send(Dated(id=8, paid=True))
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=schema(Invoice))
    broker.kill()
    broker.start()
    with client_of(broker.service_url) as client:
        for record, name in ((Order, "old"), (Dated, "new")):
            consumer = client.subscribe(
                topic, name, schema=schema(record), initial_position=EARLIEST
            )
            assert [consumer.receive(RECEIVE_MS).value().id for _ in range(2)] == [7, 8]
        with pytest.raises(pulsar.IncompatibleSchema):
            client.subscribe(topic, "other", schema=schema(Invoice))
        client.create_producer(topic).send(b"bytes pass")
        client.subscribe(topic, "bytes").close()
        other = AvroSchema if schema is JsonSchema else JsonSchema
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=other(Order))
    found = asked(broker, "GET", "/admin/v2/schemas/public/default/orders/schemas")
    versions = found["getSchemaResponses"]
    assert [each["version"] for each in versions] == [0, 1]
    assert "exists schema type" in broker.log()


def test_what_policies_allow(make_broker: Callable[..., BrokerProcess]) -> None:
    broker, topic = make_broker().start(), full("policies")
    strategy = f"{NAMESPACE}/schemaCompatibilityStrategy"
    with client_of(broker.service_url) as client:
        client.create_producer(topic, schema=AvroSchema(Order)).close()
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=AvroSchema(Counted))
        asked(broker, "PUT", strategy, "FORWARD")
        client.create_producer(topic, schema=AvroSchema(Counted)).close()
        asked(broker, "PUT", strategy, "FULL")
        asked(broker, "POST", f"{NAMESPACE}/isAllowAutoUpdateSchema", False)
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(full("fresh"), schema=AvroSchema(Order))
        body = {"type": "AVRO", "schema": AvroSchema(Order).schema_info().schema()}
        path = "/admin/v2/schemas/public/default/fresh"
        assert asked(broker, "POST", f"{path}/schema", body) == {"version": {"version": 0}}
        client.create_producer(full("fresh"), schema=AvroSchema(Order)).close()
        asked(broker, "POST", f"{NAMESPACE}/schemaValidationEnforced", True)
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic)
        client.subscribe(topic, "bytes").close()
        assert asked(broker, "DELETE", f"{path}/schema?force=true") == {"version": 0}
        client.create_producer(full("fresh")).close()
    assert "without a schema" in broker.log()


def test_native_protobuf(make_broker: Callable[..., BrokerProcess]) -> None:
    broker, topic = make_broker().start(), full("native")
    schema = ProtobufNativeSchema(Timestamp)
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", schema=schema)
        client.create_producer(topic, schema=schema).send(Timestamp(seconds=7))
        assert consumer.receive(RECEIVE_MS).value() == Timestamp(seconds=7)
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=ProtobufNativeSchema(FieldMask))
    found = asked(broker, "GET", "/admin/v2/schemas/public/default/native/schema")
    assert (found["version"], found["type"]) == (0, "PROTOBUF_NATIVE")


def test_a_deleted_topic_begins_again(make_broker: Callable[..., BrokerProcess]) -> None:
    broker, topic = make_broker().start(), full("again")
    with client_of(broker.service_url) as client:
        client.create_producer(topic, schema=AvroSchema(Order)).close()
    asked(broker, "DELETE", "/admin/v2/persistent/public/default/again?force=true")
    status, _ = broker.request("GET", "/admin/v2/schemas/public/default/again/schema")
    assert status == 404
    with client_of(broker.service_url) as client:
        client.create_producer(topic, schema=AvroSchema(Invoice)).close()
    broker.kill()
    broker.start()
    found = asked(broker, "GET", "/admin/v2/schemas/public/default/again/schema")
    assert (found["version"], found["type"]) == (0, "AVRO")
    assert json.loads(found["data"])["name"] == "Invoice"
