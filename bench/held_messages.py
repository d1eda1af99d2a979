"""A source of messages in memory, which gives them as ``format("pulsar")`` does, or as tuples."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_pulsar.columns import Rows, arrow_schema, spark_schema
from pyspark_pulsar.keys import KeyDecoder
from pyspark_pulsar.options import COLUMNS
from pyspark_pulsar.range_reader import BATCH_ROWS_MAX, PORTION_MESSAGES_MAX

TOPIC = "persistent://public/default/held"
PARTS = 2
_PUBLISH_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class HeldId:
    """What the source uses of a message id."""

    number: int

    def ledger_id(self) -> int:
        """One ledger for all."""
        return 5

    def entry_id(self) -> int:
        """An entry for each."""
        return self.number

    def batch_index(self) -> int:
        """They are not batched."""
        return -1

    def __lt__(self, other: HeldId) -> bool:
        return self.number < other.number

    def serialize(self) -> bytes:
        """About as long as a real one."""
        return b"\x08\x05\x10" + self.number.to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """What the source uses of a message."""

    number: int
    value: bytes

    def data(self) -> bytes:
        """Its payload."""
        return self.value

    def message_id(self) -> HeldId:
        """A new object each time, as the client has it."""
        return HeldId(self.number)

    def partition_key(self) -> str:
        """None."""
        return ""

    def producer_name(self) -> str:
        """One for all."""
        return "held"

    def publish_timestamp(self) -> int:
        """Epoch milliseconds."""
        return _PUBLISH_MS + self.number

    def event_timestamp(self) -> int:
        """None."""
        return 0

    def properties(self) -> dict[str, str]:
        """None."""
        return {}

    def has_null_value(self) -> bool:
        """It is no tombstone."""
        return False


_held: dict[int, list[HeldMessage]] = {}


def messages(count: int) -> list[HeldMessage]:
    """So many messages, made once in each worker."""
    if count not in _held:
        _held[count] = [HeldMessage(each, each.to_bytes(100, "big")) for each in range(count)]
    return _held[count]


class HeldReader(DataSourceReader):
    """Reads each half in a task."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._count = int(options["count"]) // PARTS
        self._as_tuples = options["as"] == "tuples"
        self._schema = arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        """Two."""
        return [InputPartition(each) for each in range(PARTS)]

    def read(self, _partition: InputPartition) -> Iterator[Any]:
        """The messages, in the form asked for."""
        held = messages(self._count)
        return tuples(held) if self._as_tuples else batches(self._schema, held)


def batches(schema: pa.Schema, held: list[HeldMessage]) -> Iterator[pa.RecordBatch]:
    """Record batches as the source makes them: in its portions, by its own code."""
    rows = Rows(schema, TOPIC, KeyDecoder(TOPIC, lambda _: {}))
    for first in range(0, len(held), PORTION_MESSAGES_MAX):
        part = held[first : first + PORTION_MESSAGES_MAX]
        rows.add(part, [each.message_id() for each in part], [each.data() for each in part])
        if rows.count + PORTION_MESSAGES_MAX > BATCH_ROWS_MAX:
            yield rows.batch()
    if rows.count:
        yield rows.batch()


def tuples(held: list[HeldMessage]) -> Iterator[tuple[Any, ...]]:
    """A tuple for each message, as Spark's documentation shows a source."""
    for each in held:
        key, event_ms = each.partition_key(), each.event_timestamp()
        yield (
            each.data(),
            key.encode() if key else None,
            TOPIC,
            each.message_id().serialize(),
            datetime.datetime.fromtimestamp(each.publish_timestamp() / 1_000, datetime.UTC),
            datetime.datetime.fromtimestamp(event_ms / 1_000, datetime.UTC) if event_ms else None,
            each.properties(),
        )


class HeldMessages(DataSource):
    """``format("held")``: options ``count`` and ``as`` (``batches`` or ``tuples``)."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format()``."""
        return "held"

    def schema(self) -> StructType:
        """All columns of the source."""
        return spark_schema(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Its reader."""
        return HeldReader(dict(self.options), schema)
