"""Definitions of one meaning are equal, and those of another are not."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.commands.schema_definitions import same_definition
from headgate.wire.codes import SchemaType

AVRO, JSON, STRING = SchemaType.AVRO, SchemaType.JSON, SchemaType.STRING
PROTOBUF_NATIVE, KEY_VALUE = SchemaType.PROTOBUF_NATIVE, SchemaType.KEY_VALUE


def same(type_: SchemaType, one: Any, other: Any) -> bool:
    texts = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in (one, other)]
    answers = {
        same_definition(type_, texts[0], texts[1], {}, {}),
        same_definition(type_, texts[1], texts[0], {}, {}),
    }
    assert len(answers) == 1
    return answers.pop()


def record(*fields: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": list(fields), **more}


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": ["null", "string"]}


@pytest.mark.parametrize("type_", [AVRO, JSON])
def test_what_changes_no_written_byte(type_: SchemaType) -> None:
    plain = record(ID, NOTE)
    assert same(type_, plain, json.dumps(plain, indent=2).encode())
    assert same(type_, plain, dict(reversed(plain.items())))
    assert same(type_, plain, record(ID, NOTE, namespace="com.example", doc="An order"))
    assert same(type_, plain, record(ID, NOTE) | {"name": "com.example.Order"})
    assert same(type_, plain, record({"name": "id", "type": {"type": "long"}}, NOTE))
    other = record(ID | {"doc": "number"}, NOTE | {"default": None, "aliases": ["remark"]})
    assert same(type_, plain, other)
    java = {"type": "string", "avro.java.string": "String"}
    assert same(type_, plain, record(ID, {"name": "note", "type": ["null", java]}))


@pytest.mark.parametrize("type_", [AVRO, JSON])
@pytest.mark.parametrize(
    "other",
    [
        record(ID),
        record(NOTE, ID),
        record(ID, {"name": "note", "type": ["string", "null"]}),
        record(ID, {"name": "remark", "type": ["null", "string"]}),
        record({"name": "id", "type": "int"}, NOTE),
        record({"name": "id", "type": {"type": "long", "logicalType": "timestamp-millis"}}, NOTE),
        record(ID, NOTE) | {"name": "Invoice"},
        "string",
        b"no json",
        b"",
    ],
    ids=str,
)
def test_what_does(type_: SchemaType, other: Any) -> None:
    assert not same(type_, record(ID, NOTE), other)


def test_types_inside_types() -> None:
    def outer(inner: Any) -> dict[str, Any]:
        return record(
            {"name": "a", "type": {"type": "array", "items": inner}},
            {"name": "m", "type": {"type": "map", "values": "Order"}},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}},
        )

    assert same(AVRO, outer("int"), outer({"type": "int"}))
    assert not same(AVRO, outer("int"), outer("long"))
    for name, value in (("symbols", ["B", "A"]), ("size", 5), ("values", "int")):
        text = json.dumps(outer("int"))
        changed = json.loads(text)
        for field in changed["fields"]:
            if name in field["type"]:
                field["type"][name] = value
        assert not same(AVRO, outer("int"), changed)


def test_definitions_that_are_no_avro() -> None:
    assert same(PROTOBUF_NATIVE, {"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same(PROTOBUF_NATIVE, {"a": 1, "doc": "x"}, {"a": 1, "doc": "y"})
    old = {"type": "object", "properties": {"doc": {"type": "string"}}}
    assert same(JSON, old, dict(reversed(old.items())))
    assert not same(JSON, old, {"type": "object", "properties": {}})
    assert same(STRING, b"", b"")
    assert not same(STRING, b"", b"x")


def key_value(key: bytes, value: bytes) -> bytes:
    return struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value


def test_key_and_value_are_compared_each_by_its_type() -> None:
    properties = {
        "key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": "SEPARATED",
    }  # fmt: skip
    one = key_value(b"", json.dumps(record(ID)).encode())
    other = key_value(b"", json.dumps(record(ID, doc="x")).encode())

    def compare(a: bytes, b: bytes, **changed: str) -> bool:
        theirs = properties | {k.replace("_", "."): v for k, v in changed.items()}
        return same_definition(KEY_VALUE, a, b, properties, theirs)

    assert compare(one, one)
    assert compare(one, other)
    assert compare(one, other, key_schema_name="any")
    assert not compare(one, one, kv_encoding_type="INLINE")
    assert not compare(one, one, value_schema_type="JSON")
    assert not compare(one, key_value(b"", json.dumps(record(NOTE)).encode()))
    assert not compare(one, key_value(b"x", json.dumps(record(ID)).encode()))
    assert not compare(one, one[:-1])
    assert not compare(one, b"")
    absent = struct.pack(">i", -1) + one[4:]
    assert compare(one, absent)


@given(st.binary(), st.binary(), st.sampled_from(SchemaType))
def test_any_bytes_are_compared(one: bytes, other: bytes, type_: SchemaType) -> None:
    assert same_definition(type_, one, one, {}, {})
    answer = same_definition(type_, one, other, {}, {})
    assert answer == same_definition(type_, other, one, {}, {})


@pytest.mark.parametrize("data", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b"9" * 10_000])
def test_bad_definitions_cost_nobody_anything(data: bytes) -> None:
    assert same_definition(AVRO, data, data, {}, {})
    assert not same_definition(AVRO, data, b"{}", {}, {})
