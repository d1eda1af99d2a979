"""Columns as arrays: nulls, exact quotients and distinct combinations."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels.column_values import (
    distinct_rows,
    doubles,
    flags_of_chunks,
    hour_rows,
    known,
    nullable,
    optional,
    quotients,
    texts_by_code,
)
from headgate.pipeline.tables.columns import HOUR_NS

TABLE = pa.table({"n": [1, None, 1], "text": ["a", None, "a"], "none": pa.nulls(3, pa.string())})


def test_null_is_nan_or_false_or_none() -> None:
    found = doubles(TABLE, "n")
    assert [found[0], math.isnan(found[1])] == [1.0, True]
    assert optional(found) == nullable(found).to_pylist() == [1.0, None, 1.0]
    assert known(TABLE, "n").tolist() == [True, False, True]
    assert known(TABLE, "none").tolist() == [False] * 3
    flags = flags_of_chunks(pa.chunked_array([[True, None], [False]]))
    assert flags.tolist() == [True, False, False]
    assert texts_by_code(("x", "y"), np.array([1, -1, 0])).to_pylist() == ["y", None, "x"]


def test_rows_of_hours_begin_in_them() -> None:
    table = pa.table({"from_ns": [0, HOUR_NS - 1, HOUR_NS, 2 * HOUR_NS]})
    assert hour_rows(table, {0, 2}).tolist() == [True, True, False, True]
    assert hour_rows(table, ()).tolist() == [False] * 4


def test_distinct_combinations_have_their_values_once() -> None:
    places, rows = distinct_rows(TABLE, ("n", "text", "none"))
    assert [rows[place] for place in places.tolist()] == TABLE.to_pylist()
    assert len(rows) == 2
    assert distinct_rows(TABLE.slice(0, 0), ("n",))[1] == []


def test_very_many_combinations_are_told_apart() -> None:
    """The product of so many different values does not fit into 64 bits."""
    names = [f"c{number}" for number in range(12)]
    table = pa.table({name: np.roll(np.arange(100), place) for place, name in enumerate(names)})
    places, rows = distinct_rows(table, names)
    assert [rows[place] for place in places.tolist()] == table.to_pylist()


@given(st.lists(st.tuples(st.integers(0, 1 << 62), st.integers(1, 1 << 62)), min_size=1))
def test_quotients_are_rounded_as_in_python(pairs: list[tuple[int, int]]) -> None:
    parts, wholes = (np.array(values, dtype=np.int64) for values in zip(*pairs, strict=True))
    assert quotients(parts, wholes).tolist() == [part / whole for part, whole in pairs]
