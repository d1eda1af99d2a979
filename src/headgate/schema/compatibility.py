"""Which definitions are well formed, which are the same, and which may follow others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, cast

from headgate.base.schema_types import (
    IN_AVRO,
    PRIMITIVES,
    CompatibilityStrategy,
    SchemaType,
    type_name,
)
from headgate.base.work_units import SCHEMA_BYTES_PER_UNIT
from headgate.schema.avro import AvroSchema, parse_avro
from headgate.schema.avro_resolution import COST_MAX, misfit
from headgate.schema.definition import Definition, Steps
from headgate.schema.errors import InvalidSchemaError
from headgate.schema.json_notation import old_json_id
from headgate.schema.key_value import split_key_value
from headgate.schema.protobuf_native import root_message

TRANSITIVE: Final = frozenset(
    (
        CompatibilityStrategy.BACKWARD_TRANSITIVE,
        CompatibilityStrategy.FORWARD_TRANSITIVE,
        CompatibilityStrategy.FULL_TRANSITIVE,
    )
)
"""The strategies that compare with all versions, not only with the latest."""

_UNCHECKED: Final = (SchemaType.NONE, SchemaType.STRING)
"""Their definition is empty, or whatever older clients wrote."""

_NEW_READS: Final = frozenset(
    (
        CompatibilityStrategy.BACKWARD,
        CompatibilityStrategy.FULL,
        CompatibilityStrategy.BACKWARD_TRANSITIVE,
        CompatibilityStrategy.FULL_TRANSITIVE,
    )
)
_NEW_IS_READ: Final = frozenset(
    (
        CompatibilityStrategy.FORWARD,
        CompatibilityStrategy.FULL,
        CompatibilityStrategy.FORWARD_TRANSITIVE,
        CompatibilityStrategy.FULL_TRANSITIVE,
    )
)


def check_definition(definition: Definition) -> Steps[bytes]:
    """Check that a definition is well formed; returns its fingerprint, which equal definitions of
    one type share.

    Raises:
        InvalidSchemaError: it is not.
    """
    kind, data = definition.type, definition.data
    if kind in IN_AVRO:
        found = yield from _avro_or_old(definition)
        if isinstance(found, AvroSchema):
            if kind == SchemaType.AVRO and found.root.kind == "union":
                raise InvalidSchemaError("Avro schema typed [UNION] is not supported")
            return found.fingerprint
    elif kind == SchemaType.PROTOBUF_NATIVE:
        root_message(data)
        yield 1 + len(data) // SCHEMA_BYTES_PER_UNIT
    elif kind == SchemaType.KEY_VALUE:
        for part in split_key_value(definition):
            if part.type == SchemaType.KEY_VALUE:
                raise InvalidSchemaError("A KeyValue schema inside a KeyValue schema")
            yield from check_definition(part)
    elif kind in PRIMITIVES:
        if data:
            raise InvalidSchemaError(
                f"Invalid schema definition data for primitive schemas:length of schema data "
                f"should be zero, but {len(data)} bytes is found"
            )
    elif kind == SchemaType.AUTO_CONSUME:
        raise InvalidSchemaError(f"Schema {type_name(kind)} is a client-side schema type")
    elif kind not in _UNCHECKED:
        raise InvalidSchemaError(f"Unknown schema type : {type_name(kind)}")
    return hashlib.sha256(data).digest()


ALL_COST_MAX: Final = 4 * COST_MAX
BYTES_PER_COST: Final = 8
"""Comparisons with many versions may together cost four times what a single one may, and a unit
more for each eight bytes of the versions: definitions of people cost about a tenth of that."""


def incompatibility(
    present: Sequence[Definition], new: Definition, strategy: CompatibilityStrategy
) -> Steps[str]:
    """Why ``new`` may not follow ``present``, the versions of a topic from the oldest on; empty if
    it may. A strategy that is not transitive asks about the last one only.

    Raises:
        InvalidSchemaError: a definition is not well formed, or they are too complex to compare.
    """
    size_bytes = sum(each.size_bytes for each in present) if strategy in TRANSITIVE else 0
    left = ALL_COST_MAX + size_bytes // BYTES_PER_COST
    steps = _incompatibility(present, new, strategy)
    while True:
        try:
            units = next(steps)
        except StopIteration as end:
            return cast(str, end.value)
        left -= units
        if left < 0:
            raise InvalidSchemaError(
                f"The {len(present)} versions of the schema are too complex to be compared with "
                f"another one: {strategy.value} asks about all of them"
            )
        yield units


def _incompatibility(
    present: Sequence[Definition], new: Definition, strategy: CompatibilityStrategy
) -> Steps[str]:
    if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE or not present:
        return ""
    present = present if strategy in TRANSITIVE else present[-1:]
    for each in present:
        if each.type != new.type:
            return (
                f"Incompatible schema: exists schema type {type_name(each.type)}, "
                f"new schema type {type_name(new.type)}"
            )
    if new.type == SchemaType.KEY_VALUE:
        return (yield from _key_value(present, new, strategy))
    if strategy is CompatibilityStrategy.ALWAYS_INCOMPATIBLE:
        return "Incompatible schema: the schema compatibility strategy is ALWAYS_INCOMPATIBLE"
    if new.type in IN_AVRO:
        return (yield from _in_avro(present, new, strategy))
    if new.type == SchemaType.PROTOBUF_NATIVE:
        name = root_message(new.data)
        for each in present:
            yield 1 + len(each.data) // SCHEMA_BYTES_PER_UNIT
            if root_message(each.data) != name:
                return "Protobuf root message isn't allow change!"
    return ""


def _avro_or_old(definition: Definition) -> Steps[AvroSchema | str]:
    """An Avro schema, or the id of a JSON schema in the old notation."""
    try:
        return (yield from parse_avro(definition.data))
    except InvalidSchemaError as error:
        if definition.type == SchemaType.JSON:
            try:
                return old_json_id(definition.data)
            except InvalidSchemaError:
                pass
        name = type_name(definition.type)
        raise InvalidSchemaError(
            f"Invalid schema definition data for {name} schema: {error}"
        ) from error


def _in_avro(
    present: Sequence[Definition], new: Definition, strategy: CompatibilityStrategy
) -> Steps[str]:
    ours = yield from _avro_or_old(new)
    for each in reversed(present):
        theirs = yield from _avro_or_old(each)
        if isinstance(ours, AvroSchema) and isinstance(theirs, AvroSchema):
            if strategy in _NEW_READS:
                why = yield from misfit(ours, theirs)
                if why:
                    return f"Incompatible schema: it cannot read what the topic has: {why}"
            if strategy in _NEW_IS_READ:
                why = yield from misfit(theirs, ours)
                if why:
                    return f"Incompatible schema: the topic's schema cannot read its data: {why}"
        elif ours != theirs and isinstance(ours, str) and isinstance(theirs, str):
            return "Incompatible schema: JSON schemas in the old notation have different ids"
    return ""


def _key_value(
    present: Sequence[Definition], new: Definition, strategy: CompatibilityStrategy
) -> Steps[str]:
    ours = split_key_value(new)
    theirs = [split_key_value(each) for each in present]
    for pair in theirs:
        if tuple(part.type for part in pair) != tuple(part.type for part in ours):
            return (
                "Key schemas or Value schemas are different schema type, "
                f"from key schema type is {type_name(pair[0].type)} and to key schema type is "
                f"{type_name(ours[0].type)}, from value schema is {type_name(pair[1].type)} and "
                f"to value schema is {type_name(ours[1].type)}"
            )
    for index, part in enumerate(ours):
        why = yield from _incompatibility([pair[index] for pair in theirs], part, strategy)
        if why:
            return why
    return ""
