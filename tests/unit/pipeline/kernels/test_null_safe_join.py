"""Rows with nulls in their keys find each other, as rows without do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels.null_safe_join import joined_rows

AT = datetime(2025, 11, 21, tzinfo=UTC)
KEY = ("text", "number", "time", "flag")
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.int32()),
        ("time", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("value", pa.int64()),
    ]
)
KEYS = st.tuples(
    st.sampled_from([None, "", "a"]),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, AT]),
    st.sampled_from([None, False]),
)


def table(rows: dict[int, Any], name: str) -> pa.Table:
    dicts = [dict(zip(KEY, key, strict=True)) | {"value": value} for value, key in rows.items()]
    columns = pa.Table.from_pylist(dicts, schema=SCHEMA)
    return columns.rename_columns([*KEY, name])


@given(st.lists(KEYS, max_size=12), st.lists(KEYS, max_size=12, unique=True))
def test_a_null_equals_a_null_and_no_value(left: list[Any], right: list[Any]) -> None:
    found = joined_rows(
        table(dict(enumerate(left)), "mine"), table(dict(enumerate(right)), "theirs"), KEY
    )
    assert found.column_names == [*KEY, "mine", "theirs"]
    assert found.column("mine").to_pylist() == list(range(len(left)))
    by_key = {key: value for value, key in enumerate(right)}
    assert found.column("theirs").to_pylist() == [by_key.get(key) for key in left]
    assert list(zip(*(found.column(name).to_pylist() for name in KEY), strict=True)) == left
