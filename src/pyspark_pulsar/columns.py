"""The columns of the source.

Spark requires a batch to match its schema exactly (names, order, types, nullability) and reads
Arrow without copying rows. Tuples would cost three times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

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

from pyspark_pulsar.batches import NO_PROPERTIES, Messages
from pyspark_pulsar.entries import Entry, EntryId
from pyspark_pulsar.errors import OptionsError
from pyspark_pulsar.message_ids import MessageIds
from pyspark_pulsar.offsets import partition_index
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


BATCH_ROWS_MAX = 10_000
BATCH_BYTES_MAX = 1024 * 1024
"""A record batch ends at either limit; a larger message is a batch alone."""


class Rows:
    """The pending rows of one partition, collected by column until they make a batch."""

    def __init__(
        self,
        schema: pa.Schema,
        topic: str,
        rows_max: int = BATCH_ROWS_MAX,
        bytes_max: int = BATCH_BYTES_MAX,
    ) -> None:
        """``schema`` is one of :func:`arrow_schema`, ``topic`` the partition's name."""
        self.rows_max, self._bytes_max = rows_max, bytes_max
        self._schema = schema
        self._topic = topic
        self._ids = MessageIds(partition_index(topic))
        self._columns = [name for name in schema.names if name != "__topic"]
        self.clear()

    def clear(self) -> None:
        """Discard all rows."""
        self._cells: dict[str, list[Any]] = {name: [] for name in self._columns}
        self._run_places: list[EntryId] = []
        self._run_payloads: list[bytes] = []
        self._run_times_ms: list[int] = []
        """Of the usual messages that are the last rows, with their publish times."""
        self.count = 0
        self.size_bytes = 0
        """Bytes of the payloads, also if ``value`` is not selected, and of keys and properties."""

    def fitting(self, values: Sequence[bytes | None]) -> int:
        """How many of these values fit within both limits; at least one if there is no row yet."""
        count = min(len(values), self.rows_max - self.count)
        left_bytes = self._bytes_max - self.size_bytes
        if count == 1:
            fits = values[0] is None or len(values[0]) <= left_bytes
            return 1 if fits or not self.count else 0
        sizes = [0 if value is None else len(value) for value in values]
        if sum(sizes) > left_bytes:
            sums = accumulate(sizes)
            count = min(count, next(i for i, total in enumerate(sums) if total > left_bytes))
        return max(count, 0 if self.count else 1)

    def add_usual(self, place: EntryId, payload: bytes, publish_time_ms: int) -> bool:
        """Add the message of an entry that is :attr:`Entry.usual`; returns whether it fits within
        both limits. It costs a fifth of :meth:`add`, which goes through each column."""
        size_bytes = self.size_bytes + len(payload)
        if self.count >= self.rows_max or size_bytes > self._bytes_max:
            return False
        self._run_places.append(place)
        self._run_payloads.append(payload)
        self._run_times_ms.append(publish_time_ms)
        self.count += 1
        self.size_bytes = size_bytes
        return True

    def _end_run(self) -> None:
        """Move the usual messages into the columns."""
        places = self._run_places
        if not places:
            return
        nones: list[None] = [None] * len(places)
        found: dict[str, Callable[[], list[Any]]] = {
            "value": lambda: self._run_payloads,
            "__key": lambda: nones,
            "__messageId": lambda: self._ids.of_entries(places),
            "__publishTime": lambda: self._run_times_ms,
            "__eventTime": lambda: nones,
            "__messageProperties": lambda: [NO_PROPERTIES] * len(places),
        }
        for name, column in self._cells.items():
            column += found[name]()
        for run in (places, self._run_payloads, self._run_times_ms):
            run.clear()

    def add(self, place: EntryId, first: EntryId, entry: Entry, messages: Messages) -> None:
        """Add ``messages`` of an entry. ``first`` is the entry of the first chunk of a message in
        chunks, else ``place``."""
        self._end_run()
        count = len(messages.values)
        cells = self._cells
        if (column := cells.get("value")) is not None:
            column += messages.values
        if (column := cells.get("__key")) is not None:
            column += messages.keys
            self.size_bytes += sum(map(len, filter(None, messages.keys)))
        if (column := cells.get("__messageId")) is not None:
            column += self._ids.of(place, messages.batch_indexes, entry.batch_size, first)
        if (column := cells.get("__publishTime")) is not None:
            column += [entry.publish_time_ms] * count
        if (column := cells.get("__eventTime")) is not None:
            column += messages.event_times_ms
        if (column := cells.get("__messageProperties")) is not None:
            column += messages.properties
            if any(messages.properties):
                pairs = chain.from_iterable(filter(None, messages.properties))
                self.size_bytes += sum(len(name) + len(value) for name, value in pairs)
        self.count += count
        self.size_bytes += sum(map(len, filter(None, messages.values)))

    def batch(self) -> pa.RecordBatch:
        """All rows since the last call, as one record batch."""
        self._end_run()
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
