from __future__ import annotations

import datetime
from typing import Any

import _pulsar
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_pulsar.columns import (
    COLUMN_MEANINGS,
    TIME_MS_MAX,
    Rows,
    arrow_schema,
    spark_schema,
)
from pyspark_pulsar.errors import OptionsError
from pyspark_pulsar.keys import KeyDecoder
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.options import COLUMNS
from tests.unit.pyspark_pulsar.fakes import FakeMessage, no_keys


def test_one_batch_has_all_columns() -> None:
    schema = arrow_schema(spark_schema(COLUMNS))
    full = FakeMessage(
        Position(8, 3, -1, 1), 5, b"v", "k", 1_700_000_000_123, 1_700_000_000_456, {"a": "b"}
    )
    bare = FakeMessage(Position(8, 4), 0, b"", publish_ms=5)
    tombstone = FakeMessage(Position(8, 5), 0, None, publish_ms=5)
    rows = Rows(schema, "t", KeyDecoder("t", no_keys))
    for portion in ([full, bare], [tombstone]):
        rows.add(
            portion, [each.message_id() for each in portion], [each.data() for each in portion]
        )
    batch = rows.batch()
    assert (rows.count, rows.size_bytes) == (0, 0)
    assert batch.schema == schema
    columns = batch.to_pydict()
    assert columns["value"] == [b"v", b"", None]
    assert columns["__key"] == [b"k", None, None]
    assert columns["__topic"] == ["t", "t", "t"]
    assert columns["__messageId"][1] == bytes.fromhex("08081004")
    assert columns["__publishTime"][0] == datetime.datetime(
        2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC
    )
    assert columns["__eventTime"][1] is None
    assert columns["__messageProperties"] == [[("a", "b")], [], []]


def test_keys_and_properties_that_are_no_text_end_no_query() -> None:
    """A client in C++ may send any bytes; one such message ended each query over its topic."""

    def built(key: bytes, value: bytes) -> Any:
        builder = _pulsar.MessageBuilder()
        builder.content(b"x")
        builder.partition_key(key)
        builder.property("a", value)
        return builder.build()

    schema = arrow_schema(spark_schema(["__key", "__messageProperties"]))
    rows = Rows(schema, "t", KeyDecoder("t", no_keys))
    found = [built(b"k", b"v"), built(b"\xff\xfe", b"v"), built(b"", b"\xff")]
    rows.add(found, [each.message_id() for each in found], [each.data() for each in found])
    columns = rows.batch().to_pydict()
    assert columns["__key"] == [b"k", b"\xff\xfe", None]
    assert columns["__messageProperties"] == [[("a", "v")], [("a", "v")], None]


def test_the_number_of_fitting_values_is_found() -> None:
    rows = Rows(arrow_schema(spark_schema(["__topic"])), "t", KeyDecoder("t", no_keys))
    message = FakeMessage(Position(8, 4), 0, b"12345")
    assert rows.fitting([b"12", b"34", b"5"], 10, 4) == 2
    assert rows.fitting([b"12", b"34", b"5"], 2, 100) == 2
    assert rows.fitting([b"12345"], 10, 4) == 1, "one message is always let in"
    rows.add([message], [message.message_id()], [message.data()])
    assert rows.size_bytes == 5
    assert rows.fitting([b"12345"], 10, 9) == 0
    assert rows.fitting([b"1234", b"5"], 10, 9) == 1
    assert rows.fitting([b"1"], 1, 9) == 0
    assert rows.batch().to_pydict() == {"__topic": ["t"]}


@pytest.mark.parametrize(
    ("column", "size"), [("__key", 5), ("__messageProperties", 3 + 4), ("value", 0)]
)
def test_keys_and_properties_take_room_as_values_do(column: str, size: int) -> None:
    """A batch of a few kilobytes may have 60 MB of them."""
    rows = Rows(arrow_schema(spark_schema([column])), "t", KeyDecoder("t", no_keys))
    message = FakeMessage(Position(8, 4), 0, b"", "k" * 5, 0, 0, {"abc": "defg"})
    bare = FakeMessage(Position(8, 5), 0, b"")
    portion = [message, bare]
    rows.add(portion, [each.message_id() for each in portion], [b"", b""])
    assert rows.size_bytes == size
    assert rows.fitting([b"", b""], 10, 4) == (0 if size else 2)


def test_times_are_microseconds_in_utc() -> None:
    schema = arrow_schema(spark_schema(["__publishTime"]))
    assert schema.field("__publishTime").type == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    "number", [1_763_719_200_000_000_000, TIME_MS_MAX + 1, (1 << 63) + 5, (1 << 64) - 1]
)
def test_an_invalid_time_is_null_and_the_rest_is_read(number: int) -> None:
    messages = [
        FakeMessage(Position(8, 1), publish_ms=5, event_ms=7),
        FakeMessage(Position(8, 2), publish_ms=number, event_ms=number),
        FakeMessage(Position(8, 3), publish_ms=TIME_MS_MAX, event_ms=0),
    ]
    rows = Rows(
        arrow_schema(spark_schema(["__publishTime", "__eventTime"])), "t", KeyDecoder("t", no_keys)
    )
    rows.add(messages, [each.message_id() for each in messages], [b""] * 3)
    found = [column.cast("int64").to_pylist() for column in rows.batch()]
    assert found == [[5_000, None, TIME_MS_MAX * 1_000], [7_000, None, None]]


def test_a_users_schema_may_narrow_but_not_change() -> None:
    assert arrow_schema(spark_schema(["__topic", "value"])).names == ["__topic", "value"]
    wrong = StructType(
        [
            StructField("value", StringType()),
            StructField("other", LongType()),
            StructField("__topic", StringType(), False),
        ]
    )
    with pytest.raises(OptionsError) as caught:
        arrow_schema(wrong)
    assert caught.value.problems[0] == "column value must be binary"
    assert caught.value.problems[1].startswith("the source has no column other; it has value")
    assert caught.value.problems[2] == "column __topic must be nullable"


def test_every_column_has_a_meaning() -> None:
    assert tuple(COLUMN_MEANINGS) == COLUMNS
