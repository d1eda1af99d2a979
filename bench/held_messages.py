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
from pyspark_pulsar.message_ids import MessageIds
from pyspark_pulsar.options import COLUMNS

TOPIC = "persistent://public/default/held"
PARTS = 2
LEDGER = 5
_PUBLISH_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """An entry with one message."""

    number: int
    value: bytes

    @property
    def publish_time_ms(self) -> int:
        """Epoch milliseconds."""
        return _PUBLISH_MS + self.number


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
    """Record batches as the source makes them, by its own code."""
    rows = Rows(schema, TOPIC)
    for each in held:
        place = LEDGER, each.number
        if not rows.add_usual(place, each.value, each.publish_time_ms):
            yield rows.batch()
            rows.add_usual(place, each.value, each.publish_time_ms)
    if rows.count:
        yield rows.batch()


def tuples(held: list[HeldMessage]) -> Iterator[tuple[Any, ...]]:
    """A tuple for each message, as Spark's documentation shows a source."""
    ids = MessageIds(-1)
    for each in held:
        place = LEDGER, each.number
        yield (
            each.value,
            None,
            TOPIC,
            ids.of(place, [-1], 0, place)[0],
            datetime.datetime.fromtimestamp(each.publish_time_ms / 1_000, datetime.UTC),
            None,
            {},
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
