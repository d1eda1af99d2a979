"""What is an Avro schema, and which are equal."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.schema.avro import DEPTH_MAX, AvroSchema, AvroType, parse_avro
from headgate.schema.errors import InvalidSchemaError
from tests.unit.schema.running import outcome


def parse(value: Any) -> AvroSchema:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return outcome(parse_avro(data))


def record(*fields: Any, name: str = "Order", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}


def same(one: Any, other: Any) -> bool:
    return parse(one).fingerprint == parse(other).fingerprint


def test_what_does_not_count() -> None:
    plain = record(ID, NOTE)
    assert same(plain, json.dumps(plain, indent=2).encode())
    assert same(plain, dict(reversed(plain.items())))
    assert same(plain, record(ID, NOTE, doc="An order", aliases=["Purchase"]))
    assert same(plain, record(ID | {"doc": "number"}, NOTE | {"aliases": ["remark"]}))
    assert same(plain, record({"name": "id", "type": {"type": "long"}}, NOTE))
    assert same(record(ID, name="com.x.Order"), record(ID, namespace="com.x"))
    assert same(record(ID), record(ID | {"order": "ascending"}))


@pytest.mark.parametrize(
    "other",
    [
        record(ID),
        record(NOTE, ID),
        record(ID, NOTE, namespace="com.x"),
        record(ID, {"name": "note", "type": ["null", "string"]}),
        record(ID, {"name": "note", "type": ["string", "null"]}),
        record(ID | {"default": 1}, NOTE),
        record(ID | {"order": "ignore"}, NOTE),
        record({"name": "id", "type": "int"}, NOTE),
        record({"name": "id", "type": {"type": "long", "logicalType": "timestamp-millis"}}, NOTE),
        record(ID, NOTE, name="Invoice"),
        record(ID, NOTE, note="kept"),
        "string",
    ],
    ids=str,
)
def test_what_counts(other: Any) -> None:
    assert not same(record(ID, NOTE), other)


def test_names_are_resolved_in_their_namespace() -> None:
    node = record(
        {"name": "next", "type": ["null", "Node"]},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["A", "B"]}},
        {"name": "other", "type": "Color"},
        {"name": "key", "type": {"type": "fixed", "name": "y.Key", "size": 4}},
        {"name": "keys", "type": {"type": "array", "items": "y.Key"}},
        {"name": "map", "type": {"type": "map", "values": "x.Color"}},
        name="Node", namespace="x",
    )  # fmt: skip
    found = parse(node)
    assert set(found.named) == {"x.Node", "x.Color", "y.Key"}
    fields = found.root.fields
    assert fields["next"].type.inner[1] is found.root
    assert fields["other"].type is fields["color"].type is fields["map"].type.inner[0]
    assert fields["keys"].type.inner[0].size == 4
    assert (found.root.short_name, found.root.name) == ("Node", "x.Node")
    assert parse(record(name="com.example.Outer$Inner")).root.short_name == "Outer$Inner"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff", "no JSON"),
        (7, "7 is no type"),
        ({"type": 7}, "No type"),
        ({}, "No type"),
        ("Order", "Undefined name: 'Order'"),
        ({"type": "record", "name": "R"}, "has no fields"),
        ({"type": "record", "fields": []}, "No name"),
        (record({"name": "a"}), "no name or no type"),
        (record(7), "no name or no type"),
        (record(ID, ID), "Duplicate field 'id'"),
        (record(ID | {"aliases": "x"}), "aliases is no list"),
        (record(ID, namespace=7), "namespace"),
        (record({"name": "a", "type": record()}), "Can't redefine"),
        (record(name="string"), "Can't redefine"),
        (["null", "null"], "Duplicate in union: 'null'"),
        ([["null"]], "Nested union"),
        ({"type": "array"}, "array without items"),
        ({"type": "map"}, "map without values"),
        ({"type": "enum", "name": "E"}, "needs different symbols"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "needs different symbols"),
        ({"type": "enum", "name": "E", "symbols": [1]}, "symbols is no list"),
        ({"type": "fixed", "name": "F", "size": -1}, "Invalid or no size"),
        ({"type": "fixed", "name": "F", "size": True}, "Invalid or no size"),
    ],
)
def test_what_is_no_schema(value: Any, words: str) -> None:
    with pytest.raises(InvalidSchemaError, match=words.replace("(", r"\(")) as caught:
        parse(value)
    assert len(str(caught.value)) < 500


def test_types_inside_types_end_somewhere() -> None:
    value: Any = "int"
    for _ in range(DEPTH_MAX):
        value = {"type": "array", "items": value}
    parse(value)
    with pytest.raises(InvalidSchemaError, match="inside each other"):
        parse({"type": "array", "items": value})
    deep = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":'
    with pytest.raises(InvalidSchemaError):
        parse(deep + b"[" * 60_000 + b"]" * 60_000 + b"}]}")


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    | st.sampled_from(["record", "enum", "union", "null", "int"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["type", "name", "fields", "items", "symbols"]), inner),
    max_leaves=12,
))  # fmt: skip
def test_any_json_is_a_schema_or_is_refused(value: Any) -> None:
    try:
        parse(value)
    except InvalidSchemaError:
        return
    assert same(value, value)


def test_a_value_that_nests_to_the_limit_is_refused() -> None:
    for depth in range(900, 1_000):
        with pytest.raises(InvalidSchemaError):
            parse(b'{"type":"record","x":' + b"[" * depth + b"]" * depth + b"}")


def test_a_record_that_contains_itself_is_freed_without_a_collection() -> None:
    """A cycle would stay until a complete collection: 300 such definitions took 300 MB."""
    again = {"name": "next", "type": ["null", "Order"]}
    inside = record(again, {"name": "own", "type": "Line"}, name="Line")
    wrapped = {
        "name": "all",
        "type": {"type": "map", "values": {"type": "array", "items": "Order"}},
    }
    whole = record(ID, again, {"name": "line", "type": inside}, wrapped)
    broken = record(again, {"name": "x", "type": "None"})
    gc.collect()
    gc.disable()
    try:
        schema = parse(whole)
        assert schema.root.fields["next"].type.inner[1] is schema.root
        gone = [weakref.ref(each) for each in schema.named.values()]
        del schema
        assert [one() for one in gone] == [None, None]
        with pytest.raises(InvalidSchemaError):
            parse(broken)
        steps = parse_avro(json.dumps(whole).encode())
        for _ in range(12):
            next(steps)
        steps.close()
        del steps
        left = [each for each in gc.get_objects() if isinstance(each, AvroType) and each.name]
        assert left == []
    finally:
        gc.enable()
