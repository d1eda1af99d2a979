"""The compiled .proto is the protocol: compared with a table of every field and enum value."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from headgate.wire import messages
from headgate.wire._generated import PulsarApi_pb2

TABLE = Path(__file__).with_name("pulsar-fields.csv")
TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def rows(first_column: str) -> set[tuple[str, ...]]:
    """The rows of one of the two tables in the file, without the replication markers."""
    chosen: set[tuple[str, ...]] = set()
    inside = False
    with TABLE.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            if row and row[0] in ("message", "enum"):
                inside = row[0] == first_column
            elif row and inside and not row[0].startswith("markers:"):
                chosen.add(tuple(row))
    return chosen


def plain_name(descriptor: Descriptor | EnumDescriptor) -> str:
    return str(descriptor.full_name).removeprefix("pulsar.proto.")


def label_of(field: FieldDescriptor) -> str:
    if field.is_repeated:
        return "repeated"
    if field.containing_oneof is not None:
        return f"optional (oneof {field.containing_oneof.name})"
    return "required" if field.is_required else "optional"


def default_of(field: FieldDescriptor) -> str:
    if not field.has_default_value:
        return ""
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[field.default_value].name)
    value = field.default_value
    return str(value).lower() if isinstance(value, bool) else str(value)


def message_rows(descriptor: Descriptor) -> set[tuple[str, ...]]:
    name = plain_name(descriptor)
    if not descriptor.fields:
        return {(name, "(no fields)", "", "", "", "")}
    found = set()
    for field in descriptor.fields:
        target = field.message_type or field.enum_type
        kind = plain_name(target) if target is not None else TYPES[field.type]
        found.add((name, field.name, str(field.number), label_of(field), kind, default_of(field)))
    return found


def test_every_field_is_as_in_the_table() -> None:
    compiled: set[tuple[str, ...]] = set()
    for descriptor in PulsarApi_pb2.DESCRIPTOR.message_types_by_name.values():
        compiled |= message_rows(descriptor)
    assert compiled == rows("message")


def test_every_enum_value_is_as_in_the_table() -> None:
    file = PulsarApi_pb2.DESCRIPTOR
    enums = list(file.enum_types_by_name.values())
    for message in file.message_types_by_name.values():
        enums += message.enum_types
    compiled = {
        (plain_name(enum), value.name, str(value.number)) for enum in enums for value in enum.values
    }
    assert compiled == rows("enum")


def test_repeated_numbers_are_not_packed() -> None:
    encoded = messages.MessageIdData(ledgerId=1, entryId=2, ack_set=[3, 4]).SerializeToString()
    assert encoded == b"\x08\x01\x10\x02\x28\x03\x28\x04"


@pytest.mark.parametrize("name", messages.__all__)
def test_what_is_exported_is_generated(name: str) -> None:
    assert getattr(messages, name) is getattr(PulsarApi_pb2, name)
