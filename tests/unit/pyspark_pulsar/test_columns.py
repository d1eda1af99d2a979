from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_pulsar.batches import NO_PROPERTIES, Messages
from pyspark_pulsar.columns import (
    COLUMN_MEANINGS,
    TIME_MS_MAX,
    Rows,
    arrow_schema,
    spark_schema,
)
from pyspark_pulsar.entries import Entry, Kind
from pyspark_pulsar.errors import OptionsError
from pyspark_pulsar.options import COLUMNS


def row(
    value: bytes | None = b"",
    key: bytes | None = None,
    event_ms: int | None = None,
    properties: list[tuple[str, str]] | None = NO_PROPERTIES,
    index: int = -1,
) -> Messages:
    return Messages([value], [key], [event_ms], [properties], [index])


def add(rows: Rows, entry_id: int, messages: Messages, publish_ms: int = 5, size: int = 0) -> None:
    entry = Entry(Kind.MESSAGES, max(1, size), publish_ms, size)
    rows.add((8, entry_id), (8, entry_id), entry, messages)


def test_one_batch_has_all_columns() -> None:
    schema = arrow_schema(spark_schema(COLUMNS))
    rows = Rows(schema, "t")
    full = row(b"v", b"k", 1_700_000_000_456, [("a", "b")], 1)
    add(rows, 3, full, 1_700_000_000_123, 5)
    add(rows, 4, row())
    add(rows, 5, row(None, b"", properties=None))
    batch = rows.batch()
    assert (rows.count, rows.size_bytes) == (0, 0)
    assert batch.schema == schema
    columns = batch.to_pydict()
    assert columns["value"] == [b"v", b"", None]
    assert columns["__key"] == [b"k", None, b""]
    assert columns["__topic"] == ["t", "t", "t"]
    assert columns["__messageId"][:2] == [bytes.fromhex("0808100320013005"), b"\x08\x08\x10\x04"]
    assert columns["__publishTime"][0] == datetime.datetime(
        2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC
    )
    assert columns["__eventTime"][1] is None
    assert columns["__messageProperties"] == [[("a", "b")], [], None]


def test_the_number_of_fitting_values_is_found() -> None:
    schema = arrow_schema(spark_schema(["__topic"]))
    rows = Rows(schema, "t", rows_max=4, bytes_max=9)
    assert rows.fitting([b"1234", b"5678", b"90"]) == 2
    assert rows.fitting([b"1", b"2", b"3", b"4", b"5"]) == 4
    assert rows.fitting([b"1234567890"]) == 1, "one message is always let in"
    add(rows, 4, row(b"12345"))
    assert rows.size_bytes == 5
    assert rows.fitting([b"12345"]) == 0
    assert rows.fitting([b"1234", None, b"5"]) == 2
    for entry_id in (5, 6, 7):
        add(rows, entry_id, row())
    assert rows.fitting([b"1"]) == 0
    assert rows.batch().to_pydict() == {"__topic": ["t"] * 4}


@pytest.mark.parametrize("columns", [COLUMNS, ("value",), ("__topic",), ("__messageId", "__key")])
def test_usual_messages_are_rows_like_others_in_order(columns: tuple[str, ...]) -> None:
    schema = arrow_schema(spark_schema(columns))
    rows, expected = Rows(schema, "t-partition-3"), Rows(schema, "t-partition-3")
    for entry_id in range(9):
        value, publish_ms = bytes(entry_id), 1_000 + entry_id
        add(expected, entry_id, row(value), publish_ms)
        if entry_id in (2, 3, 7):
            add(rows, entry_id, row(value), publish_ms)
        else:
            assert rows.add_usual((8, entry_id), value, publish_ms)
    assert (rows.count, rows.size_bytes) == (expected.count, expected.size_bytes) == (9, 36)
    assert rows.batch().equals(expected.batch())
    assert rows.add_usual((9, 0), b"later", 5)
    assert rows.batch().num_rows == 1


def test_usual_messages_that_do_not_fit_are_not_taken() -> None:
    rows = Rows(arrow_schema(spark_schema(["value"])), "t", rows_max=3, bytes_max=9)
    assert not rows.add_usual((8, 0), bytes(10), 5), "it would be a batch alone"
    assert [rows.add_usual((8, 1), bytes(size), 5) for size in (5, 5, 4)] == [True, False, True]
    assert [rows.add_usual((8, 2), b"", 5) for _ in range(2)] == [True, False]
    assert [len(value) for value in rows.batch().to_pydict()["value"]] == [5, 4, 0]


@pytest.mark.parametrize(
    ("column", "size"), [("__key", 5), ("__messageProperties", 3 + 4), ("value", 0)]
)
def test_keys_and_properties_take_room_as_values_do(column: str, size: int) -> None:
    """A batch of a few kilobytes may have 60 MB of them."""
    rows = Rows(arrow_schema(spark_schema([column])), "t", bytes_max=4)
    add(rows, 4, row(b"", b"k" * 5, properties=[("abc", "defg")]))
    add(rows, 5, row())
    assert rows.size_bytes == size
    assert rows.fitting([b"", b""]) == (0 if size else 2)


def test_times_are_microseconds_in_utc() -> None:
    schema = arrow_schema(spark_schema(["__publishTime"]))
    assert schema.field("__publishTime").type == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    "number", [1_763_719_200_000_000_000, TIME_MS_MAX + 1, (1 << 63) + 5, (1 << 64) - 1]
)
def test_an_invalid_time_is_null_and_the_rest_is_read(number: int) -> None:
    rows = Rows(arrow_schema(spark_schema(["__publishTime", "__eventTime"])), "t")
    add(rows, 1, row(event_ms=7), 5)
    add(rows, 2, row(event_ms=number), number)
    add(rows, 3, row(), TIME_MS_MAX)
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
