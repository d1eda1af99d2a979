"""Schemas: read, add, compare and delete the versions of a topic's schema.

A topic need not exist to have a schema, as in Pulsar: it may be uploaded before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from headgate.admin.names import topic_name
from headgate.admin.operations import Operation
from headgate.admin.routing import Call, Query, Reply, Route, as_json
from headgate.admin.streaming import PART_BYTES, PARTS_HELD, answer
from headgate.base.schema_types import TYPES, CompatibilityStrategy, SchemaType, type_name
from headgate.metadata.errors import RefusalError, not_found
from headgate.metadata.rows import SchemaRow
from headgate.schema.definition import Definition
from headgate.schema.errors import InvalidSchemaError
from headgate.schema.key_value import key_value_as_text, key_value_from_text

_PATH: Final = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
_NO_LEDGER: Final = -1

JSON_BYTES_MAX: Final = 6
"""Most bytes that one of a definition takes in JSON: control characters are ``\\u0001``."""


class SchemaBody(Struct):
    """A definition as clients send it."""

    type: str
    """``AVRO``, ``JSON``, ``STRING`` and so on."""
    schema: str = ""
    """The definition; of a KeyValue schema, JSON with a key and a value."""
    properties: dict[str, str] | None = None


class SchemaAnswer(Struct):
    """A version of a schema."""

    version: int
    type: str
    timestamp: int
    """Milliseconds since the epoch."""
    data: str
    properties: Mapping[str, str]


class SchemasAnswer(Struct):
    """All versions of a schema, from the oldest on."""

    get_schema_responses: list[SchemaAnswer] = msgspec.field(name="getSchemaResponses")


class VersionAnswer(Struct):
    """The number of a version; -1 for none."""

    version: int


class PostedAnswer(Struct):
    """The number of the version of a posted definition, in Pulsar's form."""

    version: VersionAnswer


class CompatibilityAnswer(Struct, rename="camel"):
    """Whether a definition could be added, and the strategy that allows it."""

    compatibility: bool
    schema_compatibility_strategy: CompatibilityStrategy


class EntryAnswer(Struct, rename="camel"):
    """Where a version is stored. Headgate keeps schemas in no ledger."""

    version: int
    ledger_id: int = _NO_LEDGER
    entry_id: int = _NO_LEDGER


class MetadataAnswer(Struct):
    """The versions of a schema, as Pulsar describes where they are stored."""

    info: EntryAnswer
    index: list[EntryAnswer]


async def get_schema(call: Call) -> Reply:
    """The latest version."""
    return as_json(_answer(_existing(call)))


async def get_version(call: Call) -> Reply:
    """One version."""
    return as_json(_answer(_existing(call, call.number("version"))))


async def get_schemas(call: Call) -> Reply:
    """All versions that were not deleted."""
    rows = call.facade.catalog.schemas(topic_name(call))
    sizes_bytes = [JSON_BYTES_MAX * row.size_bytes for row in rows]
    held_bytes = PARTS_HELD * (PART_BYTES + max(sizes_bytes, default=0))
    await call.reserve(min(sum(sizes_bytes), held_bytes))

    def pieces() -> Iterator[bytes]:
        before = b'{"getSchemaResponses":['
        for row in rows:
            yield before + msgspec.json.encode(_answer(row))
            before = b","
        yield before + b"]}" if not rows else b"]}"

    return await answer(call, pieces())


async def get_metadata(call: Call) -> Reply:
    """The numbers of all versions."""
    latest = _existing(call)
    rows = call.facade.catalog.schemas(topic_name(call))
    return as_json(
        MetadataAnswer(EntryAnswer(latest.version), [EntryAnswer(r.version) for r in rows])
    )


async def post_schema(call: Call) -> Reply:
    """Add a definition, unless the topic has it."""
    topic, schema = topic_name(call), _posted(call)
    version = await call.facade.add_schema(topic, schema, call.check)
    return as_json(PostedAnswer(VersionAnswer(version)))


async def delete_schema(call: Call) -> Reply:
    """Delete all versions."""
    force = call.flag("force")
    version = await call.facade.delete_schema(topic_name(call), force=force, check=call.check)
    return as_json(VersionAnswer(version))


async def post_compatibility(call: Call) -> Reply:
    """Check that a definition could be added."""
    strategy = await call.facade.check_schema(topic_name(call), _posted(call))
    return as_json(CompatibilityAnswer(True, strategy))


async def post_version(call: Call) -> Reply:
    """The version of a definition."""
    version = await call.facade.schema_version(topic_name(call), _posted(call))
    return as_json(VersionAnswer(version))


def _existing(call: Call, version: int | None = None) -> SchemaRow:
    row = call.facade.schema(topic_name(call), version)
    if row is None:
        raise not_found("Schema not found")
    return row


def _answer(row: SchemaRow) -> SchemaAnswer:
    data = row.data.decode("utf-8", "replace")
    if row.type == SchemaType.KEY_VALUE:
        with suppress(InvalidSchemaError):  # earlier releases stored what they did not check
            data = key_value_as_text(Definition(row.type, row.data, row.properties))
    return SchemaAnswer(row.version, type_name(row.type), row.created_ms, data, row.properties)


def _posted(call: Call) -> Definition:
    """The definition in the body.

    Raises:
        RefusalError: 400 without one, 422 for an unknown type or a malformed KeyValue schema.
    """
    body: SchemaBody | None = call.decoded(SchemaBody)
    if body is None:
        raise RefusalError(400, "A schema is needed in the body")
    type_ = TYPES.get(body.type)
    if type_ is None:
        allowed = ", ".join(TYPES)
        raise RefusalError(422, f"Unknown schema type {body.type[:80]!r}: allowed are {allowed}")
    try:
        is_pair = type_ == SchemaType.KEY_VALUE
        data = key_value_from_text(body.schema) if is_pair else body.schema.encode()
    except (InvalidSchemaError, UnicodeEncodeError) as error:
        raise RefusalError(422, str(error)) from error
    return Definition(type_, data, body.properties or {})


_READ, _UPDATE = Operation.SCHEMA_READ, Operation.SCHEMA_UPDATE
_FORCE = Query("force", bool, False, "Also forget the numbers of the versions")

ROUTES = (
    Route("GET", f"{_PATH}/schema", _READ, get_schema,
          "The latest version of a topic's schema", reply=SchemaAnswer),
    Route("GET", f"{_PATH}/schema/{{version}}", _READ, get_version,
          "A version of a topic's schema", reply=SchemaAnswer),
    Route("GET", f"{_PATH}/schemas", _READ, get_schemas,
          "All versions of a topic's schema", reply=SchemasAnswer),
    Route("GET", f"{_PATH}/metadata", _READ, get_metadata,
          "Numbers of the versions of a topic's schema", reply=MetadataAnswer),
    Route("POST", f"{_PATH}/schema", _UPDATE, post_schema,
          "Add a version to a topic's schema", body=SchemaBody, reply=PostedAnswer),
    Route("DELETE", f"{_PATH}/schema", _UPDATE, delete_schema,
          "Delete all versions of a topic's schema", reply=VersionAnswer, query=(_FORCE,)),
    Route("POST", f"{_PATH}/compatibility", _UPDATE, post_compatibility,
          "Check that a definition could be added", body=SchemaBody, reply=CompatibilityAnswer),
    Route("POST", f"{_PATH}/version", _READ, post_version,
          "The version of a definition", body=SchemaBody, reply=VersionAnswer),
)  # fmt: skip
