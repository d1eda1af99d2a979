"""The definitions of key and value in a KeyValue schema, and their form in the admin API."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

import msgspec

from headgate.base.schema_types import IN_AVRO, TYPES, SchemaType
from headgate.schema.definition import DEFINITION_BYTES_MAX, Definition
from headgate.schema.errors import InvalidSchemaError

TEXT_CHARACTERS_MAX: Final = 2 * DEFINITION_BYTES_MAX
"""Longest text of a definition that is read: it may have blanks that the definition lacks. To read
a megabyte and write it anew took 70 ms."""

_SIZE: Final = struct.Struct(">i")
_TYPE_PROPERTIES: Final = ("key.schema.type", "value.schema.type")
_PARTS: Final = ("key", "value")
_IN_JSON: Final = IN_AVRO | {SchemaType.PROTOBUF_NATIVE}


def split_key_value(definition: Definition) -> tuple[Definition, Definition]:
    """The definitions of key and value. Bytes without a schema are of type NONE.

    Raises:
        InvalidSchemaError: the definition is malformed, or names an unknown type.
    """
    parts, at = [], 0
    for _ in _PARTS:
        if len(definition.data) < at + _SIZE.size:
            raise InvalidSchemaError("The definition of a KeyValue schema is cut off")
        size = max(_SIZE.unpack_from(definition.data, at)[0], 0)
        at += _SIZE.size
        parts.append(definition.data[at : at + size])
        at += size
    if at != len(definition.data):
        raise InvalidSchemaError("The definition of a KeyValue schema has another length")
    key, value = (
        Definition(_type_of(definition.properties.get(name, "BYTES")), data)
        for name, data in zip(_TYPE_PROPERTIES, parts, strict=True)
    )
    return key, value


def key_value_as_text(definition: Definition) -> str:
    """A KeyValue definition as the admin API shows it: JSON with a key and a value.

    Raises:
        InvalidSchemaError: as :func:`split_key_value`.
    """
    shown = {}
    for name, part in zip(_PARTS, split_key_value(definition), strict=True):
        shown[name] = _json(part.data) if part.type in _IN_JSON else ""
    return _text(shown)


def key_value_from_text(text: str) -> bytes:
    """The data of a KeyValue definition that the admin API got.

    Raises:
        InvalidSchemaError: it is no JSON object with a key and a value, or too long.
    """
    if len(text) > TEXT_CHARACTERS_MAX:
        raise InvalidSchemaError(
            f"The text of the KeyValue schema has {len(text)} characters: {TEXT_CHARACTERS_MAX} "
            "are allowed"
        )
    given = _json(text.encode())
    if not isinstance(given, dict) or not all(name in given for name in _PARTS):
        raise InvalidSchemaError("The definition of a KeyValue schema needs a key and a value")
    parts = []
    for name in _PARTS:
        value = given[name]
        data = b"" if value == "" else _text(value).encode()
        parts.append(_SIZE.pack(len(data)) + data)
    return b"".join(parts)


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"A part of the KeyValue schema is no JSON: {error}") from error


def _text(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError as error:  # it nests a little less than what cannot be decoded
        raise InvalidSchemaError(f"A part of the KeyValue schema is too deep: {error}") from error


def _type_of(name: str) -> int:
    found = TYPES.get(name)
    if found is None:
        raise InvalidSchemaError(f"Unknown schema type of a key or value: {name[:80]!r}")
    return found
