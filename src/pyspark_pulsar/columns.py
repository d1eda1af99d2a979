"""The source's columns: Spark types, and Arrow record batches built column by column.

Spark checks a batch against its own schema to the letter (names, order, types, nullability) and
reads Arrow without copying rows; yielding tuples instead would cost three times as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_pulsar.errors import OptionsError
from pyspark_pulsar.options import COLUMNS

_TYPES: Mapping[str, DataType] = {
    "value": BinaryType(),
    "__key": BinaryType(),
    "__topic": StringType(),
    "__messageId": BinaryType(),
    "__publishTime": TimestampType(),
    "__eventTime": TimestampType(),
    "__messageProperties": MapType(StringType(), StringType()),
}


COLUMN_MEANINGS: Mapping[str, str] = {
    "value": "The message as it was sent; null for a tombstone, which is not the same as empty.",
    "__key": "Its partition key, or null.",
    "__topic": "The topic it was read from, of a partition with `-partition-N`.",
    "__messageId": "Its id, serialized as all clients do.",
    "__publishTime": "When the producer sent it.",
    "__eventTime": "When the producer says that it happened, or null.",
    "__messageProperties": "The producer's properties.",
}
"""What each column holds."""


class MessageId(Protocol):
    """What this package uses of a client's message id."""

    def ledger_id(self) -> int: ...
    def entry_id(self) -> int: ...
    def batch_index(self) -> int: ...
    def serialize(self) -> bytes: ...


class Message(Protocol):
    """What this package uses of a client's message."""

    def data(self) -> bytes: ...
    def message_id(self) -> Any: ...
    def partition_key(self) -> str: ...
    def publish_timestamp(self) -> int: ...
    def event_timestamp(self) -> int: ...
    def properties(self) -> dict[str, str]: ...
    def has_null_value(self) -> bool: ...


def spark_schema(columns: Sequence[str]) -> StructType:
    """The Spark schema of these columns of :data:`pyspark_pulsar.options.COLUMNS`."""
    return StructType([StructField(name, _TYPES[name], True) for name in columns])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects for ``schema``, which may be the user's own.

    Raises :class:`OptionsError` if it has a column that the source does not have, or has it with
    another type.
    """
    problems: list[str] = []
    for field in schema.fields:
        expected = _TYPES.get(field.name)
        if expected is None:
            problems.append(f"the source has no column {field.name}; it has {', '.join(COLUMNS)}")
        elif field.dataType != expected:
            problems.append(f"column {field.name} is {expected.simpleString()}")
        elif not field.nullable:
            problems.append(f"column {field.name} is nullable")
    if problems:
        raise OptionsError(problems)
    return to_arrow_schema(schema, timezone="UTC")


def record_batch(
    schema: pa.Schema, topic: str, messages: Sequence[Message], values: Sequence[bytes]
) -> pa.RecordBatch:
    """The messages of partition ``topic`` and their data as one record batch of ``schema``."""
    arrays = [pa.array(_cells(field.name, topic, messages, values), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cells(
    column: str, topic: str, messages: Sequence[Message], values: Sequence[bytes]
) -> Sequence[Any]:
    """One column's cells. Times are microseconds since the epoch, as Spark's Arrow type has."""
    match column:
        case "value":
            return values if all(values) else _with_nulls(messages, values)
        case "__key":
            return [key.encode() if (key := each.partition_key()) else None for each in messages]
        case "__topic":
            return [topic] * len(messages)
        case "__messageId":
            return [each.message_id().serialize() for each in messages]
        case "__publishTime":
            return [each.publish_timestamp() * 1_000 for each in messages]
        case "__eventTime":
            return [each.event_timestamp() * 1_000 or None for each in messages]
        case _:
            return [list(each.properties().items()) for each in messages]


def _with_nulls(messages: Sequence[Message], values: Sequence[bytes]) -> list[bytes | None]:
    """The values with tombstones as None; a tombstone is not the same as an empty value."""
    return [
        None if not value and message.has_null_value() else value
        for message, value in zip(messages, values, strict=True)
    ]
