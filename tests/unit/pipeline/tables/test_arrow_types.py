"""Sorted batches are cut only where the subject changes."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.tables.arrow_types import arrow_schema, changes, conform, whole_subjects
from headgate.pipeline.tables.columns import ColumnType, TableColumn


@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 2)), max_size=40),
    st.integers(1, 7),
    st.integers(1, 9),
)
def test_no_subject_is_cut(rows: list[tuple[str | None, int]], size: int, chunk: int) -> None:
    rows.sort(key=str)
    table = pa.table(
        {
            "k": pa.array([r[0] for r in rows], pa.string()),
            "n": pa.array([r[1] for r in rows], pa.int64()),
        }
    )
    tables = list(whole_subjects(table.to_batches(max_chunksize=size), ("k", "n"), chunk))
    keys = [list(zip(t["k"].to_pylist(), t["n"].to_pylist(), strict=True)) for t in tables]
    assert [key for part in keys for key in part] == rows
    for earlier, later in itertools.pairwise(keys):
        assert earlier[-1] != later[0]


def test_null_differs_from_a_value_and_not_from_null() -> None:
    table = pa.table({"k": pa.array([None, None, "", "x", "x"], pa.string())})
    assert changes(table, ("k",)).tolist() == [True, False, True, True, False]


def test_absent_columns_are_null() -> None:
    schema = arrow_schema((TableColumn("a", ColumnType.LONG), TableColumn("b", ColumnType.STRING)))
    table = conform({"a": pa.array([1, 2])}, schema, 2)
    assert table.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": None}]
