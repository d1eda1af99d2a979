"""Rows survive the way through bytes; bad bytes give the right error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import CorruptionError, InputError
from headgate.record import codec
from headgate.record.codec import (
    COLUMNS_PER_YIELD,
    BatchHeader,
    UnknownVersionError,
    decode,
    encode_in_steps,
    encode_window,
    message_properties,
)
from headgate.record.fields import CELL_NAMES, FIELDS, MESSAGE_BYTES_MAX, FieldType, Kind

GOLDEN = Path(__file__).parent / "golden" / "sample_batch_v1.bin"
HEADER = BatchHeader("src-1", "c1", "b1", "boot-1", 1_000_000_000, 11_000_000_000, True)


def golden_tables() -> dict[Kind, dict[str, list[Any]]]:
    """Three rows of every kind in which every field has a value at least once."""
    tables: dict[Kind, dict[str, list[Any]]] = {}
    for kind, fields in FIELDS.items():
        columns: dict[str, list[Any]] = {}
        for field in fields:
            base = field.number * 1_000_003
            columns[field.name] = {
                FieldType.STRING: [f"{field.name}-a", None, "ü/1"],
                FieldType.INT64: [base, None, -base],
                FieldType.DOUBLE: [base / 8, None, 0.0],
                FieldType.BOOL: [True, None, False],
            }[field.type]
        tables[kind] = columns
    return tables


def test_every_field_of_every_kind_survives() -> None:
    tables = golden_tables()
    (message,) = encode_window(HEADER, 7, tables)
    batch = decode(message)
    assert batch.header == HEADER
    assert batch.seq == 7
    assert batch.rows == dict.fromkeys(FIELDS, 3)
    assert batch.columns == tables


def test_golden_file_of_version_1_is_understood_for_ever() -> None:
    batch = decode(GOLDEN.read_bytes())
    assert batch.header == HEADER
    tables = golden_tables()
    for kind, columns in batch.columns.items():
        for name, values in columns.items():
            assert values == tables[kind][name], (kind, name)
    assert {kind: len(columns) for kind, columns in batch.columns.items()} == {
        Kind.TOPIC: 49,
        Kind.SUBSCRIPTION: 72,
        Kind.LIMITER: 25,
        Kind.EVENT: 7,
    }


def test_window_without_rows_is_one_message() -> None:
    (message,) = encode_window(HEADER, 0, {Kind.TOPIC: {"topic": []}})
    batch = decode(message)
    assert batch.rows == {}
    assert batch.columns == {}


def test_constant_zero_and_null_columns_take_no_room() -> None:
    rows = 5_000
    lean = {"topic": ["t"] * rows, "acked": [0] * rows, "limit_topic_messages": [None] * rows}
    (message,) = encode_window(HEADER, 0, {Kind.SUBSCRIPTION: lean})
    assert len(message) < 150
    decoded = decode(message).columns[Kind.SUBSCRIPTION]
    assert decoded == {"topic": ["t"] * rows, "acked": [0] * rows}


def test_large_window_is_split_and_every_message_is_small_enough() -> None:
    rows = 60_000
    columns = {
        "topic": [f"persistent://a/b/topic-{i // 3}" for i in range(rows)],
        "subscription": [f"s{i % 3}" for i in range(rows)],
        "acked": [i * 1_000_000_007 for i in range(rows)],
        "state": [CELL_NAMES[i % len(CELL_NAMES)] for i in range(rows)],
    }
    topics = {"topic": [f"t{i}" for i in range(10)], "msgs_in": list(range(10))}
    messages = encode_window(HEADER, 100, {Kind.SUBSCRIPTION: columns, Kind.TOPIC: topics})
    assert len(messages) >= 2
    assert max(map(len, messages)) <= MESSAGE_BYTES_MAX
    batches = [decode(message) for message in messages]
    assert [batch.seq for batch in batches] == list(range(100, 100 + len(batches)))
    for name, values in columns.items():
        together = [
            v
            for b in batches
            if Kind.SUBSCRIPTION in b.columns
            for v in b.columns[Kind.SUBSCRIPTION][name]
        ]
        assert together == values
    assert sum(b.rows.get(Kind.TOPIC, 0) for b in batches) == 10


def test_one_row_larger_than_a_message_is_refused() -> None:
    columns = {"time_ns": [1], "inputs": ["x" * (MESSAGE_BYTES_MAX + 1)]}
    with pytest.raises(InputError, match="one event row takes"):
        encode_window(HEADER, 0, {Kind.EVENT: columns})


def test_unknown_and_ragged_columns_are_refused() -> None:
    with pytest.raises(InputError, match="no field 'colour'"):
        encode_window(HEADER, 0, {Kind.TOPIC: {"colour": ["red"]}})
    with pytest.raises(InputError, match="differ in length"):
        encode_window(HEADER, 0, {Kind.TOPIC: {"topic": ["a"], "msgs_in": [1, 2]}})


@pytest.mark.parametrize("data", [b"", b"hello, world", b"\xff" * 40, b"\x08\x01"])
def test_foreign_bytes_are_corruption(data: bytes) -> None:
    with pytest.raises(CorruptionError):
        decode(data)


def test_higher_major_version_is_put_aside() -> None:
    (message,) = encode_window(HEADER, 0, {})
    newer = vars(codec)["_SampleBatch"].FromString(message)
    newer.major_version = 3
    with pytest.raises(UnknownVersionError, match="major version 3"):
        decode(newer.SerializeToString())


@pytest.mark.parametrize(("is_inferred", "version"), [(False, 1), (True, 2)])
def test_an_inferred_account_has_a_version_of_its_own(is_inferred: bool, version: int) -> None:
    """A reader of version 1 would take it for measured."""
    header = replace(HEADER, is_inferred=is_inferred)
    (message,) = encode_window(header, 0, {})
    assert vars(codec)["_SampleBatch"].FromString(message).major_version == version
    assert message_properties(header, 0)["headgate.record"] == str(version)
    assert decode(message).header == header


def test_lengths_and_indexes_that_lie_are_corruption() -> None:
    (message,) = encode_window(HEADER, 0, {Kind.TOPIC: {"topic": ["a", "b"], "msgs_in": [1, 2]}})
    for damage in ("rows", "index", "many"):
        batch = vars(codec)["_SampleBatch"].FromString(message)
        if damage == "rows":
            batch.topic.rows = 3
        elif damage == "many":
            batch.topic.rows = 2**32 - 1
        else:
            batch.topic.topic.indexes[0] = 9
        with pytest.raises(CorruptionError):
            decode(batch.SerializeToString())


@given(st.binary(max_size=300))
def test_no_bytes_give_another_error(data: bytes) -> None:
    try:
        decode(data)
    except (CorruptionError, UnknownVersionError):
        return


_INTS = st.none() | st.integers(-(2**63), 2**63 - 1)


@given(
    st.lists(
        st.tuples(st.none() | st.text(max_size=5), _INTS, st.none() | st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_any_values_survive(rows: list[tuple[str | None, int | None, bool | None]]) -> None:
    names, numbers, flags = (list(column) for column in zip(*rows, strict=True))
    tables = {Kind.SUBSCRIPTION: {"topic": names, "acked": numbers, "gone": flags}}
    (message,) = encode_window(HEADER, 0, tables)
    columns = decode(message).columns.get(Kind.SUBSCRIPTION, {})
    for name, values in tables[Kind.SUBSCRIPTION].items():
        assert columns.get(name, [None] * len(rows)) == values


def test_message_properties_are_text() -> None:
    assert codec.message_properties(HEADER, 12) == {
        "headgate.record": "1",
        "source": "src-1",
        "boot": "boot-1",
        "seq": "12",
    }


def test_many_equal_rows_are_split_too() -> None:
    columns = {"event": ["restart"] * (codec.ROWS_MAX + 1)}
    messages = encode_window(HEADER, 3, {Kind.EVENT: columns})
    batches = [decode(message) for message in messages]
    assert [batch.seq for batch in batches] == [3, 4]
    assert sum(batch.rows[Kind.EVENT] for batch in batches) == codec.ROWS_MAX + 1
    assert all(batch.rows[Kind.EVENT] <= codec.ROWS_MAX for batch in batches)


def test_rows_of_all_kinds_together_have_the_bound_of_a_message() -> None:
    """A reader holds all of them at once."""
    half = codec.ROWS_MAX // 2 + 1
    tables = {Kind.EVENT: {"event": ["restart"] * half}, Kind.TOPIC: {"msgs_in": [1] * half}}
    batches = [decode(message) for message in encode_window(HEADER, 3, tables)]
    assert [dict(batch.rows) for batch in batches] == [{Kind.EVENT: half}, {Kind.TOPIC: half}]
    whole = codec._SampleBatch(major_version=1, source="s", window_end_ns=1)
    whole.topic.rows = whole.subscription.rows = half
    with pytest.raises(CorruptionError, match=f"{2 * half} rows in one message"):
        decode(whole.SerializeToString())


def test_encoding_pauses_between_columns() -> None:
    """256 rows of a hundred columns took 3 to 12 ms in one turn."""
    integers = {
        field.name: [1] * 256
        for field in FIELDS[Kind.SUBSCRIPTION]
        if field.type is FieldType.INT64
    }
    pauses = sum(1 for _ in encode_in_steps(HEADER, 1, {Kind.SUBSCRIPTION: integers}))
    assert pauses == len(integers) // COLUMNS_PER_YIELD > 2
