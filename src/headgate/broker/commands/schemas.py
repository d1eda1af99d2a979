"""Schemas of topics: a topic keeps the first definition that a client gives it.

There are no versions of schemas yet. The first producer or consumer that connects with a schema
defines it for the topic. The definition is stored with the topic, once for all its partitions, and
is deleted with it. A client with another definition is refused, because it would write or expect
other data. Clients without a schema exchange bytes, as in a Pulsar with
``isSchemaValidationEnforced=false``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate.base.names import TopicName, parse_topic
from headgate.base.units import KIB
from headgate.broker.commands.schema_definitions import same_definition
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.registry import TopicNotFoundError, TopicRegistry
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import IncompatibleSchemaError, RefusalError
from headgate.metadata.rows import SchemaRow
from headgate.storage.metadata_writer import MetadataWriter
from headgate.wire import encode
from headgate.wire.codes import SchemaType
from headgate.wire.messages import BaseCommand, Schema

VERSION: Final = bytes(8)
"""The version of every topic's only definition: 0, as Pulsar writes it."""

NO_VERSION: Final = b""
"""The version in the answer to a producer without a schema, as in Pulsar."""

SCHEMA_BYTES_MAX: Final = 128 * KIB
"""Largest definition, with its name and properties. The broker stores it as long as its topic."""

TRIES: Final = 3
"""How often a client waits for another client's definition, whose commit may fail."""

_WITHOUT_DEFINITION: Final = frozenset((SchemaType.NONE, SchemaType.AUTO_CONSUME))


class TopicSchemas:
    """The schemas of the topics of one broker."""

    def __init__(
        self,
        registry: TopicRegistry,
        catalog: Catalog,
        writer: MetadataWriter,
        begin_turn: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._writer = writer
        self._begin_turn = begin_turn

    async def define_or_check(self, name: TopicName, schema: Schema) -> bytes:
        """Make a client's schema the schema of the topic, or check it against the one that the
        topic has. Returns the schema's version once it is durable.

        Raises:
            IncompatibleSchemaError: the topic has another definition, or the definition is too
                large.
            TopicNotFoundError: the topic was deleted meanwhile.
            StorageError: the definition could not be stored.
        """
        if schema.type in _WITHOUT_DEFINITION or self._registry.is_system(name):
            return NO_VERSION
        given = _row_of(schema)
        for _ in range(TRIES):
            present = self._catalog.schema(name)
            if present is not None:
                _check_same(name, present, given)
                return VERSION
            try:
                change = self._catalog.plan_schema(name, given)
            except RefusalError as refusal:
                if refusal.status == 404:
                    raise TopicNotFoundError(name) from refusal
                await self._writer.when_earlier_done()  # until another client's is stored
            else:
                await self._writer.commit(change)
            self._begin_turn()
        raise TopicNotFoundError(name)


class SchemaCommands:
    """Carries out GET_SCHEMA and GET_OR_CREATE_SCHEMA."""

    def __init__(self, schemas: TopicSchemas, registry: TopicRegistry, catalog: Catalog) -> None:
        self._schemas = schemas
        self._registry = registry
        self._catalog = catalog

    async def get_schema(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Answer with the schema of a topic, if the requested version is its only one."""
        request = command.getSchema
        row = self._catalog.schema(parse_topic(request.topic))
        if request.HasField("schema_version") and not request.schema_version:
            raise IncompatibleSchemaError("Empty schema version")
        wanted = request.schema_version if request.HasField("schema_version") else VERSION
        if row is None or wanted != VERSION:
            raise RefusalError(404, "Topic not found or no-schema")
        schema = Schema(name=row.name, type=row.type, schema_data=row.data)
        for key, value in row.properties.items():
            schema.properties.add(key=key, value=value)
        connection.write(encode.schema(request.request_id, schema, VERSION))

    async def get_or_create_schema(
        self, connection: ClientConnection, command: BaseCommand
    ) -> None:
        """Check a further schema of a connected producer against that of its topic."""
        request = command.getOrCreateSchema
        name = parse_topic(request.topic)
        if self._registry.get(name) is None:
            raise TopicNotFoundError(name)
        version = await self._schemas.define_or_check(name, request.schema)
        connection.write(encode.schema_known(request.request_id, version))


def _row_of(schema: Schema) -> SchemaRow:
    size_bytes = schema.ByteSize()
    if size_bytes > SCHEMA_BYTES_MAX:
        raise IncompatibleSchemaError(
            f"The schema has {size_bytes} bytes: {SCHEMA_BYTES_MAX} are allowed"
        )
    properties: Any = schema.properties  # the generated types do not describe it
    return SchemaRow(
        type=schema.type,
        name=schema.name,
        data=schema.schema_data,
        properties={item.key: item.value for item in properties},
    )


def _check_same(name: TopicName, present: SchemaRow, given: SchemaRow) -> None:
    if present.type != given.type:
        raise IncompatibleSchemaError(
            f"{name} has a schema of type {_type_name(present.type)}, the client's is of type "
            f"{_type_name(given.type)}"
        )
    if not same_definition(
        present.type, present.data, given.data, present.properties, given.properties
    ):
        raise IncompatibleSchemaError(
            f"{name} has another {_type_name(present.type)} schema: Headgate keeps the first "
            "definition of a topic until the topic is deleted"
        )


def _type_name(number: int) -> str:
    try:
        return SchemaType(number).name
    except ValueError:
        return str(number)
