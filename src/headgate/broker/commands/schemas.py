"""Carries out GET_SCHEMA and GET_OR_CREATE_SCHEMA, and reads the schemas in other commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from headgate.base.identity import Identity
from headgate.base.names import TopicName, parse_topic
from headgate.base.schema_types import SchemaType
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.registry import TopicNotFoundError, TopicRegistry
from headgate.broker.schemas.registry import NO_VERSION, SchemaRegistry, version_bytes
from headgate.engine.topic import Topic
from headgate.metadata.errors import RefusalError
from headgate.schema.definition import Definition
from headgate.schema.errors import IncompatibleSchemaError
from headgate.wire import encode
from headgate.wire.messages import BaseCommand, CommandProducer, CommandSubscribe, Schema

VERSION_BYTES: Final = 8
"""A version in the protocol; older clients send more, of which the first count."""


class TopicSchemas:
    """What commands ask of the registry. The broker's own topics have no schema."""

    def __init__(self, schemas: SchemaRegistry, registry: TopicRegistry) -> None:
        self._schemas = schemas
        self._registry = registry

    async def version(
        self, name: TopicName, request: CommandProducer, check: Callable[[], None]
    ) -> bytes:
        """The version of a producer's schema. ``check`` and errors are those of
        :meth:`SchemaRegistry.version_for_producer`."""
        if self._registry.is_system(name):
            return NO_VERSION
        schema = definition_in(request.schema) if request.HasField("schema") else None
        return await self._schemas.version_for_producer(name, schema, check)

    async def check_consumer(
        self, topic: Topic, request: CommandSubscribe, check: Callable[[], None]
    ) -> None:
        """Check a consumer's schema. ``check`` and errors are those of
        :meth:`SchemaRegistry.version_for_producer`."""
        if request.HasField("schema") and not self._registry.is_system(topic.name):
            await self._schemas.check_consumer(topic, definition_in(request.schema), check)


class SchemaCommands:
    """Carries out GET_SCHEMA and GET_OR_CREATE_SCHEMA."""

    def __init__(
        self,
        schemas: SchemaRegistry,
        registry: TopicRegistry,
        check: Callable[[ClientConnection, BaseCommand], None],
        check_answer: Callable[[Identity, int], None],
    ) -> None:
        """``check`` raises a refusal unless a client may have a command carried out,
        ``check_answer`` if there is no memory for an answer of so many bytes."""
        self._check_answer = check_answer
        self._schemas = schemas
        self._registry = registry
        self._check = check

    async def get_schema(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Answer with the latest version of a topic's schema, or with the requested one."""
        request = command.getSchema
        name, version = parse_topic(request.topic), None
        if request.HasField("schema_version"):
            version = _version_in(request.schema_version)
        row = self._schemas.get(name, version)
        if row is None:
            raise RefusalError(404, "Topic not found or no-schema")
        found = await self._schemas.encoded(name, row)
        self._check_answer(connection.identity, len(found))
        connection.write(encode.schema(request.request_id, found, version_bytes(row.version)))

    async def get_or_create_schema(
        self, connection: ClientConnection, command: BaseCommand
    ) -> None:
        """Answer with the version of a further schema of a connected producer."""
        request = command.getOrCreateSchema
        name = parse_topic(request.topic)
        if await self._registry.get_in_turn(name) is None:
            raise TopicNotFoundError(name)
        version = NO_VERSION
        if not self._registry.is_system(name):
            # Here alone NONE is no schema, as in Pulsar; the Go client sends it for bytes.
            is_none = request.schema.type == SchemaType.NONE
            schema = None if is_none else definition_in(request.schema)
            check = partial(self._check, connection, command)
            version = await self._schemas.version_for_producer(name, schema, check)
        connection.write(encode.schema_known(request.request_id, version))


def definition_in(schema: Schema) -> Definition:
    """The definition that a client sent."""
    properties: Any = schema.properties  # the generated types do not describe it
    return Definition(
        schema.type, schema.schema_data, {item.key: item.value for item in properties}
    )


def takes_any_schema(request: CommandSubscribe) -> bool:
    """Whether a consumer decodes each message by the schema that its producer had."""
    return bool(request.HasField("schema") and request.schema.type == SchemaType.AUTO_CONSUME)


def _version_in(data: bytes) -> int:
    """The version that a client asks for.

    Raises:
        IncompatibleSchemaError: it is none.
    """
    if not data:
        raise IncompatibleSchemaError("Empty schema version")
    if len(data) < VERSION_BYTES:
        raise IncompatibleSchemaError(
            f"A schema version has {VERSION_BYTES} bytes, this one {len(data)}"
        )
    return int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
