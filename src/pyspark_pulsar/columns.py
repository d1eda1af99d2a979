"""The columns of the source.

Spark requires a batch to match its schema exactly (names, order, types, nullability) and reads
Arrow without copying rows. Tuples would cost three times as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
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
    "value": "Payload of the message; null for a tombstone, which differs from an empty payload.",
    "__key": "Partition key that the producer set, as text or bytes, or null. For a separated "
    "KeyValue, the key, encoded by its schema.",
    "__topic": "Topic from which it was read; a partition has the suffix `-partition-N`.",
    "__messageId": "Message id, serialized as in all Pulsar clients.",
    "__publishTime": "Time at which the producer sent it; null beyond the year 294247.",
    "__eventTime": "Event time that the producer set, or null; also null beyond the year 294247.",
    "__messageProperties": "Properties that the producer set; null if one of them is no UTF-8.",
}
"""The meaning of each column."""


TIME_MS_MAX = ((1 << 63) - 1) // 1_000
"""The last time that a column can hold, in the year 294247. Producers can set any 64-bit number,
such as nanoseconds instead of milliseconds: then the cell is null, and the row is read as usual."""


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
    """Returns the cells of ``__key``, as :class:`pyspark_pulsar.keys.KeyDecoder` does."""

    def cells(self, messages: Sequence[Message], ids: Sequence[MessageId]) -> list[bytes | None]:
        """The keys of ``messages``, which have these ``ids``."""


def spark_schema(columns: Sequence[str]) -> StructType:
    """The Spark schema of these columns of :data:`pyspark_pulsar.options.COLUMNS`."""
    return StructType([StructField(name, _TYPES[name], True) for name in columns])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects for ``schema``, which the user may have set.

    Raises :class:`OptionsError` if a column is unknown or has another type.
    """
    problems: list[str] = []
    for field in schema.fields:
        expected = _TYPES.get(field.name)
        if expected is None:
            problems.append(f"the source has no column {field.name}; it has {', '.join(COLUMNS)}")
        elif field.dataType != expected:
            problems.append(f"column {field.name} must be {expected.simpleString()}")
        elif not field.nullable:
            problems.append(f"column {field.name} must be nullable")
    if problems:
        raise OptionsError(problems)
    return to_arrow_schema(schema, timezone="UTC")


class Rows:
    """The pending rows of one partition, collected by column until they make a batch.

    Messages are added in portions of some hundred, soon after they arrive, while they are in the
    processor's caches.
    """

    def __init__(self, schema: pa.Schema, topic: str, keys: KeyCells) -> None:
        """``schema`` is one of :func:`arrow_schema`, ``topic`` the partition's name."""
        self._keys = keys
        self._schema = schema
        self._topic = topic
        self.clear()

    def clear(self) -> None:
        """Discard all rows."""
        self._cells: dict[str, list[Any]] = {
            name: [] for name in self._schema.names if name != "__topic"
        }
        self.count = 0
        self.size_bytes = 0
        """Bytes of the payloads, also if ``value`` is not selected, and of keys and properties."""

    def fitting(self, values: Sequence[bytes], rows_max: int, bytes_max: int) -> int:
        """How many of these values fit within both limits; at least one if there is no row yet."""
        count = min(len(values), rows_max - self.count)
        left_bytes = bytes_max - self.size_bytes
        if sum(map(len, values)) > left_bytes:
            sums = accumulate(map(len, values))
            count = min(count, next(i for i, total in enumerate(sums) if total > left_bytes))
        return max(count, 0 if self.count else 1)

    def add(
        self, messages: Sequence[Message], ids: Sequence[MessageId], values: Sequence[bytes]
    ) -> None:
        """Add messages with their ids and payloads, all in the same order."""
        for column, cells in self._cells.items():
            if column == "__key":
                keys = self._keys.cells(messages, ids)
                self.size_bytes += sum(len(key) for key in keys if key)
                cells.extend(keys)
                continue
            added = _cells(column, messages, ids, values)
            if column == "__messageProperties":
                pairs = chain.from_iterable(filter(None, added))
                self.size_bytes += sum(len(name) + len(value) for name, value in pairs)
            cells.extend(added)
        self.count += len(values)
        self.size_bytes += sum(map(len, values))

    def batch(self) -> pa.RecordBatch:
        """All rows since the last call, as one record batch."""
        arrays = [
            pa.repeat(pa.scalar(self._topic, field.type), self.count)
            if field.name == "__topic"
            else _array(self._cells[field.name], field)
            for field in self._schema
        ]
        self.clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _array(cells: list[Any], field: pa.Field) -> pa.Array:
    """The Arrow array of one column's cells; times are in milliseconds in ``cells``."""
    if not pa.types.is_timestamp(field.type):
        return pa.array(cells, field.type)
    milliseconds = pa.timestamp("ms", field.type.tz)
    try:
        return pa.array(cells, milliseconds).cast(field.type)
    except (OverflowError, pa.ArrowInvalid):  # rare: a check of every cell would cost all batches
        valid = [None if each is None or abs(each) > TIME_MS_MAX else each for each in cells]
        return pa.array(valid, milliseconds).cast(field.type)


def _cells(
    column: str, messages: Sequence[Message], ids: Sequence[MessageId], values: Sequence[bytes]
) -> Sequence[Any]:
    """The cells of one column; times are milliseconds since the epoch."""
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
            try:
                return [
                    list(found.items()) if (found := each.properties()) else _NO_PROPERTIES
                    for each in messages
                ]
            except UnicodeDecodeError:
                return [_properties(each) for each in messages]


def _properties(message: Message) -> list[tuple[str, str]] | None:
    """None if one is no UTF-8, which a client in C++ may send: then the client gives none."""
    try:
        return list(message.properties().items())
    except UnicodeDecodeError:
        return None


def _with_nulls(messages: Sequence[Message], values: Sequence[bytes]) -> list[bytes | None]:
    """The values, with None for a tombstone; an empty payload stays empty."""
    return [
        None if not value and message.has_null_value() else value
        for message, value in zip(messages, values, strict=True)
    ]
