"""A topic's schema: the first definition that a client says, and no other beside it.

There is no registry of versions yet. Whoever connects with a schema first, producer or consumer,
says what the topic's messages are; that is stored with the topic, for all its partitions together,
and goes when the topic is deleted. A client with another definition is refused, because it would
read, or have others read, what is not there. Clients without a schema pass bytes, as in a Pulsar
with ``isSchemaValidationEnforced=false``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headgate.base.names import TopicName, parse_topic
from headgate.base.units import KIB
from headgate.broker.commands.schema_definitions import same_definition
from headgate.broker.registry import TopicNotFoundError
from headgate.metadata.errors import IncompatibleSchemaError, RefusalError
from headgate.metadata.rows import SchemaRow
from headgate.wire import encode
from headgate.wire.codes import SchemaType
from headgate.wire.messages import BaseCommand, Schema

if TYPE_CHECKING:
    from headgate.broker.connection import Connection
    from headgate.broker.service import Broker

VERSION: Final = bytes(8)
"""The version of every topic's only definition: 0, as Pulsar writes it."""

NO_VERSION: Final = b""
"""What a producer without a schema is told, as by Pulsar."""

SCHEMA_BYTES_MAX: Final = 128 * KIB
"""Longest definition, with its name and properties: it is kept as long as its topic."""

TRIES: Final = 3
"""A definition that others make and fail to store is not waited for more often than this."""

_SAYS_NOTHING: Final = frozenset((SchemaType.NONE, SchemaType.AUTO_CONSUME))


async def agree(broker: Broker, name: TopicName, schema: Schema) -> bytes:
    """Hold a client's schema against its topic's, which it becomes if there is none; return its
    version when that is durable.

    Raises:
        IncompatibleSchemaError: the topic has another one, or it is too long to be kept.
        TopicNotFoundError: the topic was deleted meanwhile.
        StorageError: it could not be stored.
    """
    if schema.type in _SAYS_NOTHING or broker.registry.is_system(name):
        return NO_VERSION
    given = _row_of(schema)
    catalog = broker.catalog
    for _ in range(TRIES):
        known = catalog.schema(name)
        if known is not None:
            _check_same(name, known, given)
            return VERSION
        try:
            change = catalog.plan_schema(name, given)
        except RefusalError as refusal:
            if refusal.status == 404:
                raise TopicNotFoundError(name) from refusal
            await broker.writer.settled()  # somebody else's is on its way to the disk
        else:
            await broker.writer.commit(change)
        broker.begin_turn()
    raise TopicNotFoundError(name)


def _row_of(schema: Schema) -> SchemaRow:
    size_bytes = schema.ByteSize()
    if size_bytes > SCHEMA_BYTES_MAX:
        raise IncompatibleSchemaError(
            f"The schema has {size_bytes} bytes: {SCHEMA_BYTES_MAX} are allowed"
        )
    properties: Any = schema.properties  # which the generated types do not describe
    return SchemaRow(
        type=schema.type,
        name=schema.name,
        data=schema.schema_data,
        properties={item.key: item.value for item in properties},
    )


def _check_same(name: TopicName, known: SchemaRow, given: SchemaRow) -> None:
    if known.type != given.type:
        raise IncompatibleSchemaError(
            f"{name} has a schema of type {_type_name(known.type)}, the client's is of type "
            f"{_type_name(given.type)}"
        )
    if not same_definition(known.type, known.data, given.data, known.properties, given.properties):
        raise IncompatibleSchemaError(
            f"{name} has another {_type_name(known.type)} schema: Headgate keeps the first "
            "definition of a topic until the topic is deleted"
        )


def _type_name(number: int) -> str:
    try:
        return SchemaType(number).name
    except ValueError:
        return str(number)


async def get_schema(connection: Connection, command: BaseCommand) -> None:
    """Tell a topic's schema: its last version, or the one that is asked for."""
    request = command.getSchema
    row = connection.broker.catalog.schema(parse_topic(request.topic))
    if request.HasField("schema_version") and not request.schema_version:
        raise IncompatibleSchemaError("Empty schema version")
    wanted = request.schema_version if request.HasField("schema_version") else VERSION
    if row is None or wanted != VERSION:
        raise RefusalError(404, "Topic not found or no-schema")
    schema = Schema(name=row.name, type=row.type, schema_data=row.data)
    for key, value in row.properties.items():
        schema.properties.add(key=key, value=value)
    connection.write(encode.schema(request.request_id, schema, VERSION))


async def get_or_create_schema(connection: Connection, command: BaseCommand) -> None:
    """Hold a producer's further schema against its topic's."""
    request = command.getOrCreateSchema
    broker = connection.broker
    name = parse_topic(request.topic)
    if broker.registry.get(name) is None:
        raise TopicNotFoundError(name)
    version = await agree(broker, name, request.schema)
    connection.write(encode.schema_known(request.request_id, version))
