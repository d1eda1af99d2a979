"""The source's columns: Spark types, and Arrow record batches built column by column.

Spark checks a batch against its own schema to the letter (names, order, types, nullability) and
reads Arrow without copying rows; yielding tuples instead would cost three times as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
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
    "__key": "Its partition key as its producer gave it, text or bytes, or null; of a separated "
    "KeyValue the key, encoded by its schema.",
    "__topic": "The topic it was read from, of a partition with `-partition-N`.",
    "__messageId": "Its id, serialized as all clients do.",
    "__publishTime": "When the producer sent it; null for a number beyond the year 294247.",
    "__eventTime": "When the producer says that it happened, or null, also for a number beyond "
    "that year.",
    "__messageProperties": "The producer's properties.",
}
"""What each column holds."""


TIME_MS_MAX = ((1 << 63) - 1) // 1_000
"""The last time that a column holds, in the year 294247. Producers set any 64 bits, and take
nanoseconds for milliseconds: such a cell is null, and its row is read like all others."""


_NO_PROPERTIES: list[tuple[str, str]] = []


class MessageId(Protocol):
    """What this package uses of a client's message id."""

    def ledger_id(self) -> int: ...
    def entry_id(self) -> int: ...
    def batch_index(self) -> int: ...
    def serialize(self) -> bytes: ...
    def __lt__(self, other: Any, /) -> bool: ...


class Message(Protocol):
    """What this package uses of a client's message."""

    def data(self) -> bytes: ...
    def message_id(self) -> Any: ...
    def partition_key(self) -> str: ...
    def producer_name(self) -> str: ...
    def publish_timestamp(self) -> int: ...
    def event_timestamp(self) -> int: ...
    def properties(self) -> dict[str, str]: ...
    def has_null_value(self) -> bool: ...


class KeyCells(Protocol):
    """Gives the cells of ``__key``: see :class:`pyspark_pulsar.keys.Keys`."""

    def cells(self, messages: Sequence[Message], ids: Sequence[MessageId]) -> list[bytes | None]:
        """The keys of messages, whose ids are ``ids``."""


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


class Rows:
    """Cells of one partition's messages, gathered column by column until they make a batch.

    What is read of messages in one go finds them in the processor's caches: so they are added in
    portions of some hundred, each soon after it was received.
    """

    def __init__(self, schema: pa.Schema, topic: str, keys: KeyCells) -> None:
        """``schema`` is one of :func:`arrow_schema`, ``topic`` the partition's name."""
        self._keys = keys
        self._schema = schema
        self._topic = topic
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._cells: dict[str, list[Any]] = {
            name: [] for name in self._schema.names if name != "__topic"
        }
        self.count = 0
        self.size_bytes = 0
        """Bytes of the values, whether they are among the columns or not."""

    def fitting(self, values: Sequence[bytes], rows_max: int, bytes_max: int) -> int:
        """How many of these may be added within both limits; one at least if there is no row."""
        count = min(len(values), rows_max - self.count)
        left_bytes = bytes_max - self.size_bytes
        if sum(map(len, values)) > left_bytes:
            sums = accumulate(map(len, values))
            count = min(count, next(i for i, total in enumerate(sums) if total > left_bytes))
        return max(count, 0 if self.count else 1)

    def add(
        self, messages: Sequence[Message], ids: Sequence[MessageId], values: Sequence[bytes]
    ) -> None:
        """Add messages, their ids and their data, all in the same order."""
        for column, cells in self._cells.items():
            if column == "__key":
                cells.extend(self._keys.cells(messages, ids))
            else:
                cells.extend(_cells(column, messages, ids, values))
        self.count += len(values)
        self.size_bytes += sum(map(len, values))

    def batch(self) -> pa.RecordBatch:
        """All that was added since the last call, as one record batch."""
        arrays = [
            pa.repeat(pa.scalar(self._topic, field.type), self.count)
            if field.name == "__topic"
            else _array(self._cells[field.name], field)
            for field in self._schema
        ]
        self.clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _array(cells: list[Any], field: pa.Field) -> pa.Array:
    """One column's cells as Arrow has them; times are milliseconds until then."""
    if not pa.types.is_timestamp(field.type):
        return pa.array(cells, field.type)
    milliseconds = pa.timestamp("ms", field.type.tz)
    try:
        return pa.array(cells, milliseconds).cast(field.type)
    except (OverflowError, pa.ArrowInvalid):  # seldom: looking at every cell first would cost all
        held = [None if each is None or abs(each) > TIME_MS_MAX else each for each in cells]
        return pa.array(held, milliseconds).cast(field.type)


def _cells(
    column: str, messages: Sequence[Message], ids: Sequence[MessageId], values: Sequence[bytes]
) -> Sequence[Any]:
    """One column's cells, times as milliseconds since the epoch."""
    match column:
        case "value":
            return values if all(values) else _with_nulls(messages, values)
        case "__messageId":
            return [each.serialize() for each in ids]
        case "__publishTime":
            return [each.publish_timestamp() for each in messages]
        case "__eventTime":
            return [each.event_timestamp() or None for each in messages]
        case _:
            return [
                list(found.items()) if (found := each.properties()) else _NO_PROPERTIES
                for each in messages
            ]


def _with_nulls(messages: Sequence[Message], values: Sequence[bytes]) -> list[bytes | None]:
    """The values with tombstones as None; a tombstone is not the same as an empty value."""
    return [
        None if not value and message.has_null_value() else value
        for message, value in zip(messages, values, strict=True)
    ]
