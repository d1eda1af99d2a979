"""Definitions of each type: well formed, the same, compatible."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.schema_types import PRIMITIVES, CompatibilityStrategy, SchemaType
from headgate.schema.compatibility import (
    ALL_COST_MAX,
    BYTES_PER_COST,
    check_definition,
    incompatibility,
)
from headgate.schema.definition import Definition
from headgate.schema.errors import InvalidSchemaError
from tests.unit.schema.running import outcome
from tests.unit.schema.test_avro import record

S = CompatibilityStrategy
A, B = {"name": "a", "type": "int"}, {"name": "b", "type": "int"}
B0 = B | {"default": 0}


def definition(type_: SchemaType, value: Any = b"", **properties: str) -> Definition:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Definition(type_, data, properties)


def avro(*fields: Any, type_: SchemaType = SchemaType.AVRO) -> Definition:
    return definition(type_, record(*fields))


def why(strategy: S, new: Definition, *present: Definition) -> str:
    return outcome(incompatibility(present, new, strategy))


ONE, TWO, THREE = avro(A), avro(A, B0), avro(B0)


@pytest.mark.parametrize(
    ("strategy", "new", "present", "allowed"),
    [
        (S.FULL, TWO, [ONE], True),
        (S.FULL, THREE, [ONE], False),
        (S.BACKWARD, THREE, [ONE], True),
        (S.BACKWARD, avro(A, B), [ONE], False),
        (S.FORWARD, avro(A, B), [ONE], True),
        (S.FORWARD, THREE, [ONE], False),
        (S.BACKWARD, avro(B), [ONE, avro(B)], True),
        (S.BACKWARD_TRANSITIVE, avro(B), [ONE, avro(B)], False),
        (S.FORWARD, ONE, [avro(B), ONE], True),
        (S.FORWARD_TRANSITIVE, ONE, [avro(B), ONE], False),
        (S.FULL_TRANSITIVE, ONE, [avro(B), ONE], False),
        (S.FULL_TRANSITIVE, TWO, [ONE, TWO], True),
        (S.ALWAYS_COMPATIBLE, definition(SchemaType.STRING), [ONE], True),
        (S.ALWAYS_INCOMPATIBLE, ONE, [ONE], False),
        (S.ALWAYS_INCOMPATIBLE, ONE, [], True),
        (S.FULL, definition(SchemaType.STRING), [definition(SchemaType.STRING, b"x")], True),
        (S.FULL, definition(SchemaType.INT8), [definition(SchemaType.INT16)], False),
        (S.FULL, avro(A, type_=SchemaType.JSON), [ONE], False),
        (S.FULL_TRANSITIVE, ONE, [definition(SchemaType.STRING), ONE], False),
        (S.FULL, ONE, [definition(SchemaType.STRING), ONE], True),
    ],
)
def test_what_may_follow(
    strategy: S, new: Definition, present: list[Definition], allowed: bool
) -> None:
    assert (not why(strategy, new, *present)) == allowed


def test_the_older_notation_of_json_goes_with_the_newer_one() -> None:
    old = definition(SchemaType.JSON, {"type": "object", "id": "urn:x", "properties": {}})
    other = definition(SchemaType.JSON, {"type": "object", "id": "urn:y"})
    new = avro(A, type_=SchemaType.JSON)
    outcome(check_definition(old))
    assert why(S.FULL, new, old) == why(S.FULL, old, new) == why(S.FULL, old, old) == ""
    assert "different ids" in why(S.FULL, other, old)


@pytest.mark.parametrize("type_", sorted(PRIMITIVES))
def test_primitives_have_no_definition(type_: SchemaType) -> None:
    outcome(check_definition(definition(type_)))
    with pytest.raises(InvalidSchemaError, match="should be zero, but 1 bytes is found"):
        outcome(check_definition(definition(type_, b"x")))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (definition(SchemaType.AVRO, ["null", "int"]), r"typed \[UNION\] is not supported"),
        (definition(SchemaType.AVRO, {"type": "object"}), "AVRO schema: Undefined name: 'object'"),
        (definition(SchemaType.PROTOBUF, b"x"), "PROTOBUF schema: no JSON"),
        (definition(SchemaType.JSON, b"x"), "JSON schema: no JSON"),
        (definition(SchemaType.JSON, [7]), "JSON schema"),
        (definition(SchemaType.AUTO_CONSUME), "client-side schema type"),
        (definition(SchemaType.EXTERNAL), "Unknown schema type : EXTERNAL"),
        (definition(SchemaType.PROTOBUF_NATIVE, b"{}"), "PROTOBUF_NATIVE"),
        (definition(SchemaType.KEY_VALUE, b"abc"), "cut off"),
    ],
)
def test_what_is_not_well_formed(bad: Definition, words: str) -> None:
    with pytest.raises(InvalidSchemaError, match=words):
        outcome(check_definition(bad))


def test_a_union_is_a_json_schema() -> None:
    outcome(check_definition(definition(SchemaType.JSON, ["null", "int"])))


def key_value(first: bytes, second: bytes, **types: str) -> Definition:
    data = struct.pack(">i", len(first)) + first + struct.pack(">i", len(second)) + second
    properties = {f"{name}.schema.type": type_ for name, type_ in types.items()}
    return Definition(SchemaType.KEY_VALUE, data, properties)


def test_key_and_value_each_by_its_type() -> None:
    one = key_value(b"", ONE.data, key="STRING", value="AVRO")
    two = key_value(b"", TWO.data, key="STRING", value="AVRO")
    outcome(check_definition(one))
    assert why(S.FULL, two, one) == ""
    assert "cannot read" in why(S.FULL, key_value(b"", THREE.data, key="STRING", value="AVRO"), one)
    other = key_value(b"", ONE.data, key="INT32", value="AVRO")
    assert "from key schema type is STRING and to key schema type is INT32" in why(
        S.FULL, other, one
    )
    assert why(S.ALWAYS_INCOMPATIBLE, two, one)
    outcome(check_definition(key_value(b"any", b"bytes")))
    with pytest.raises(InvalidSchemaError, match="inside"):
        outcome(check_definition(key_value(b"", b"", key="KEY_VALUE")))


def native(root: str, file: str = "x.proto", *, package: str = "p") -> Definition:
    files = FileDescriptorSet()
    described = files.file.add(name="x.proto", package=package)
    described.message_type.add(name="M").nested_type.add(name="N")
    described.message_type.add(name="O")
    body = {
        "fileDescriptorSet": base64.b64encode(files.SerializeToString()).decode(),
        "rootMessageTypeName": root,
        "rootFileDescriptorName": file,
    }
    return definition(SchemaType.PROTOBUF_NATIVE, body)


def test_the_root_message_of_protobuf_stays() -> None:
    for good in (native("p.M"), native("p.M.N"), native("M", package="")):
        outcome(check_definition(good))
    assert why(S.FULL, native("p.M"), native("p.M")) == ""
    assert "root message" in why(S.FULL, native("p.O"), native("p.M"))
    for bad in (native("p.X"), native("p.M.X"), native("q.M"), native("p.M", "y.proto")):
        with pytest.raises(InvalidSchemaError, match="root message descriptor is null"):
            outcome(check_definition(bad))


def test_fingerprints_tell_definitions_apart() -> None:
    spaced = Definition(SchemaType.AVRO, json.dumps(record(A), indent=1).encode())
    assert outcome(check_definition(ONE)) == outcome(check_definition(spaced))
    assert outcome(check_definition(ONE)) != outcome(check_definition(TWO))


@given(st.sampled_from(SchemaType), st.binary(max_size=60), st.dictionaries(
    st.sampled_from(["key.schema.type", "value.schema.type"]), st.sampled_from(["AVRO", "x", ""])
))  # fmt: skip
def test_any_bytes_are_a_definition_or_are_refused(
    type_: SchemaType, data: bytes, properties: dict[str, str]
) -> None:
    given = Definition(type_, data, properties)
    try:
        outcome(check_definition(given))
    except InvalidSchemaError:
        return
    assert isinstance(why(S.FULL, given, given), str)


def fields_like(count: int) -> Definition:
    """A definition as people write them, of that many fields."""
    return avro(*({"name": f"field_{n}", "type": "long", "default": 0} for n in range(count)))


def cost_of(new: Definition, present: list[Definition]) -> int:
    return sum(incompatibility(present, new, S.FULL_TRANSITIVE))


def test_comparisons_with_many_versions_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions = [fields_like(count) for count in range(40, 60)]
    cost = cost_of(fields_like(60), versions)
    own = sum(each.size_bytes for each in versions) // BYTES_PER_COST
    monkeypatch.setattr("headgate.schema.compatibility.ALL_COST_MAX", cost - own)
    assert why(S.FULL_TRANSITIVE, fields_like(60), *versions) == ""
    monkeypatch.setattr("headgate.schema.compatibility.ALL_COST_MAX", cost - own - 1)
    with pytest.raises(InvalidSchemaError, match="The 20 versions of the schema are too complex"):
        why(S.FULL_TRANSITIVE, fields_like(60), *versions)
    monkeypatch.setattr("headgate.schema.compatibility.ALL_COST_MAX", cost // 10)
    assert why(S.FULL, fields_like(60), *versions) == ""


def test_a_thousand_versions_of_people_cost_a_tenth_of_what_is_allowed() -> None:
    versions = [fields_like(60)] * 100
    cost = 10 * cost_of(fields_like(61), versions)
    size_bytes = 10 * sum(each.size_bytes for each in versions)
    assert cost < (ALL_COST_MAX + size_bytes // BYTES_PER_COST) // 5
