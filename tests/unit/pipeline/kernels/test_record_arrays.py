"""Columns of a message as arrays; implausible values are refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import CorruptionError
from headgate.pipeline.kernels.record_arrays import (
    AHEAD_NS_MAX,
    CUMULATIVE_MAX,
    EARLIEST_NS,
    TIME_NS_MAX,
    message_arrays,
)
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.record import codec
from headgate.record.codec import BatchHeader, decode, decode_packed, encode_window
from headgate.record.fields import FIELDS, FieldType, Kind, Nature
from tests.unit.pipeline.play import T0, S

MESSAGE: Any = vars(codec)["_SampleBatch"]


def header(end_ns: int = T0, start_ns: int = T0 - 10 * S) -> BatchHeader:
    return BatchHeader("b1", "c", "b", "boot", start_ns, end_ns)


def topics(**columns: list[Any]) -> bytes:
    """One message with topic rows."""
    (message,) = encode_window(header(), 0, {Kind.TOPIC: columns})
    return message


def refused(message: bytes, published_ns: int | None = T0) -> str:
    with pytest.raises(CorruptionError) as caught:
        message_arrays(decode_packed(message), published_ns)
    return str(caught.value)


def _values(kind: Kind) -> st.SearchStrategy[dict[str, list[Any]]]:
    """Some columns of some rows, as a broker may have them."""
    by_type = {
        FieldType.STRING: st.none() | st.text(max_size=5),
        FieldType.INT64: st.none() | st.integers(0, CUMULATIVE_MAX - 1),
        FieldType.DOUBLE: st.none() | st.floats(allow_nan=False, allow_infinity=False),
        FieldType.BOOL: st.none() | st.booleans(),
    }

    def columns(count: int) -> st.SearchStrategy[dict[str, list[Any]]]:
        fields = {
            field.name: st.lists(by_type[field.type], min_size=count, max_size=count)
            for field in FIELDS[kind]
        }
        return st.fixed_dictionaries({}, optional=fields)

    return st.integers(1, 20).flatmap(columns)


@given(st.sampled_from(list(Kind)), st.data())
def test_arrays_equal_the_lists_of_the_codec(kind: Kind, data: st.DataObject) -> None:
    (message,) = encode_window(header(), 7, {kind: data.draw(_values(kind))})
    expected = decode(message)
    found = message_arrays(decode_packed(message), T0)
    assert (found.header, found.seq, found.rows) == (expected.header, 7, expected.rows)
    arrays = {
        kind: {name: array.to_pylist() for name, array in columns.items()}
        for kind, columns in found.columns.items()
    }
    assert arrays == expected.columns


@pytest.mark.parametrize(
    ("end_ns", "published_ns", "is_taken"),
    [
        (T0, T0, True),
        (T0, None, True),
        (T0 + AHEAD_NS_MAX, T0, True),
        (T0 + AHEAD_NS_MAX + 1, T0, False),
        (T0, T0 + 400 * 24 * HOUR_NS, True),
        (EARLIEST_NS, EARLIEST_NS, False),
        (EARLIEST_NS, None, False),
        (EARLIEST_NS + 1, None, True),
        (TIME_NS_MAX - 1, TIME_NS_MAX, True),
        (TIME_NS_MAX, TIME_NS_MAX, False),
    ],
)
def test_a_window_must_end_in_a_plausible_time(
    end_ns: int, published_ns: int | None, is_taken: bool
) -> None:
    (message,) = encode_window(header(end_ns), 0, {})
    if is_taken:
        assert message_arrays(decode_packed(message), published_ns).header.window_end_ns == end_ns
    else:
        assert "window_end_ns is" in refused(message, published_ns)


def test_implausible_starts_and_sequence_numbers_are_refused() -> None:
    (message,) = encode_window(header(start_ns=-1), 0, {})
    assert "window_start_ns is -1" in refused(message)
    (message,) = encode_window(header(), 1 << 63, {})
    assert f"seq is {1 << 63}" in refused(message)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("covered_from_ns", -1),
        ("covered_to_ns", TIME_NS_MAX),
        ("msgs_in", -1),
        ("msgs_in", CUMULATIVE_MAX),
        ("natural_rate_bytes_per_s", float("nan")),
        ("publish_limit_bytes_per_s", float("-inf")),
    ],
)
def test_values_that_would_break_a_later_step_are_refused(name: str, value: float) -> None:
    message = topics(topic=["a", "b"], **{name: [1, value]})
    assert f"topic.{name} is {value}" in refused(message)


def test_levels_may_be_anything() -> None:
    message = topics(topic=["a", "b"], oldest_age_ns=[-(1 << 63), (1 << 63) - 1])
    column = message_arrays(decode_packed(message), T0).columns[Kind.TOPIC]["oldest_age_ns"]
    assert column.to_pylist() == [-(1 << 63), (1 << 63) - 1]


def test_sums_of_all_cells_fit() -> None:
    cells = [f for f in FIELDS[Kind.SUBSCRIPTION] if f.nature is Nature.CUMULATIVE]
    states = [field for field in cells if field.name.startswith("state_")]
    assert len(states) * CUMULATIVE_MAX < 1 << 63


def test_a_small_message_cannot_exhaust_memory() -> None:
    """A column of equal values takes no bytes a row, and a text is spelled out in each."""
    batch = MESSAGE.FromString(topics(topic=["x" * 1_000, "y"]))
    batch.topic.rows = codec.ROWS_MAX
    batch.topic.topic.indexes[:] = [1]
    assert "takes 131072000 bytes in 131072 rows" in refused(batch.SerializeToString())
    batch.topic.rows += 1
    with pytest.raises(CorruptionError, match="131073 rows in one message"):
        decode_packed(batch.SerializeToString())


@pytest.mark.parametrize("name", ["source", "cluster", "broker", "boot_id"])
def test_each_row_has_the_texts_of_the_header(name: str) -> None:
    """A message of 40 KB would take 5 GB, more than an array of texts can have."""
    batch = MESSAGE.FromString(topics(topic=["a", "b"]))
    setattr(batch, name, "x" * 2_048)
    message_arrays(decode_packed(batch.SerializeToString()), T0)
    batch.topic.rows = codec.ROWS_MAX
    batch.topic.topic.indexes[:] = [1]
    assert f"{name} takes 2048 bytes in 131073 rows" in refused(batch.SerializeToString())
    batch.topic.rows = 1
    setattr(batch, name, "x" * 2_049)
    assert f"{name} takes 2049 bytes in 2 rows" in refused(batch.SerializeToString())


def test_a_string_index_out_of_range_is_refused() -> None:
    batch = MESSAGE.FromString(topics(topic=["a", "b"]))
    batch.topic.topic.indexes[1] = 3
    assert "a string index is out of range" in refused(batch.SerializeToString())


def test_the_null_mask_may_be_longer_or_shorter_than_the_rows() -> None:
    batch = MESSAGE.FromString(topics(topic=list("abcdefghij"), msgs_in=list(range(10))))
    for nulls, expected in ((b"\x01", [0]), (b"\x02\x02\xff", [1, 9])):
        batch.topic.msgs_in.nulls = nulls
        arrays = message_arrays(decode_packed(batch.SerializeToString()), T0)
        values = arrays.columns[Kind.TOPIC]["msgs_in"].to_pylist()
        assert [place for place, value in enumerate(values) if value is None] == expected
