"""Compares two definitions of a schema by their meaning.

Clients encode the same record differently: Java and Python order keys differently, and only Java
writes a package. If two definitions are equivalent, messages written with one can be read with the
other.

* Avro definitions (of AVRO, JSON and PROTOBUF schemas) are compared in a form like Avro's "parsing
  canonical form": without documentation, aliases, defaults and namespaces, which do not change the
  written bytes; fields, branches and symbols in their order, with logical types.
* Other definitions in JSON are compared as JSON values, the rest as bytes.
* In a KeyValue schema the key and the value are compared, each by its type, and the encoding.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

_JSON, _PROTOBUF, _AVRO, _KEY_VALUE = 2, 3, 4, 15
"""Numbers of ``Schema.Type``, as the protocol has them."""

_IN_AVRO: Final = frozenset((_JSON, _PROTOBUF, _AVRO))
_TYPE_OF_NAME: Final = {"JSON": _JSON, "PROTOBUF": _PROTOBUF, "AVRO": _AVRO}

_PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
_LOGICAL: Final = ("logicalType", "precision", "scale")
_KEY_VALUE_PROPERTIES: Final = ("key.schema.type", "value.schema.type", "kv.encoding.type")
_SIZE: Final = struct.Struct(">i")


def same_definition(
    type_: int,
    one: bytes,
    other: bytes,
    one_properties: Mapping[str, str],
    other_properties: Mapping[str, str],
) -> bool:
    """Whether two definitions of schemas of ``type_`` are equivalent.

    Properties matter for KeyValue schemas only: there they give the types of key and value.
    """
    if type_ != _KEY_VALUE:
        return one == other or _canonical(type_, one) == _canonical(type_, other)
    if any(one_properties.get(k) != other_properties.get(k) for k in _KEY_VALUE_PROPERTIES):
        return False
    if one == other:
        return True
    ours, theirs = _key_and_value(one), _key_and_value(other)
    if ours is None or theirs is None:
        return False
    types = [_TYPE_OF_NAME.get(one_properties.get(k, ""), 0) for k in _KEY_VALUE_PROPERTIES[:2]]
    return all(
        _canonical(part_type, a) == _canonical(part_type, b)
        for part_type, a, b in zip(types, ours, theirs, strict=True)
    )


def _key_and_value(data: bytes) -> tuple[bytes, bytes] | None:
    """The definitions of key and value, each after its size (-1 for none); None if malformed."""
    parts, at = [], 0
    for _ in range(2):
        if len(data) < at + _SIZE.size:
            return None
        size = max(_SIZE.unpack_from(data, at)[0], 0)
        at += _SIZE.size
        parts.append(data[at : at + size])
        at += size
    return (parts[0], parts[1]) if at == len(data) else None


def _canonical(type_: int, data: bytes) -> Any:
    """The form to compare: equal for equivalent definitions."""
    try:
        value = json.loads(data)
        if type_ in _IN_AVRO:
            with contextlib.suppress(KeyError, TypeError, AttributeError):
                value = _avro(value)  # old clients write JSON schemas in another notation
        return json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        return data


def _avro(schema: Any) -> Any:
    """An Avro type without the parts that do not change the written bytes.

    Raises:
        KeyError, TypeError, AttributeError: it is no Avro type.
    """
    if isinstance(schema, str):
        return _short(schema)
    if isinstance(schema, list):
        return [_avro(branch) for branch in schema]
    kind = schema["type"]
    if kind in ("record", "error"):
        fields = [[field["name"], _avro(field["type"])] for field in schema["fields"]]
        return {"type": "record", "name": _short(schema["name"]), "fields": fields}
    logical = {key: schema[key] for key in _LOGICAL if key in schema}
    if kind == "enum":
        return {"type": kind, "name": _short(schema["name"]), "symbols": schema["symbols"]}
    if kind == "fixed":
        return {"type": kind, "name": _short(schema["name"]), "size": schema["size"], **logical}
    if kind == "array":
        return {"type": kind, "items": _avro(schema["items"]), **logical}
    if kind == "map":
        return {"type": kind, "values": _avro(schema["values"]), **logical}
    if isinstance(kind, str) and kind not in _PRIMITIVES:
        raise KeyError(kind)
    inner = _avro(kind)
    return {"type": inner, **logical} if logical else inner


def _short(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition(".")[2]
