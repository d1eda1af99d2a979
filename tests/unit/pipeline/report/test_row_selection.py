"""Rows with the largest amounts, and rows of a key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headgate.pipeline.report.row_selection import largest, matching

ROWS = pa.table(
    {
        "key": ["a", None, "a", "b", None, "a"],
        "part": [1, 1, 1, None, 1, 2],
        "amount": [1.0, 2.0, None, 4.0, 5.0, 6.0],
    }
)


def test_the_largest_above_zero_in_order() -> None:
    rows = pa.table({"name": ["a", "b", "c", "d"]})
    found = largest(rows, np.array([1.0, 3.0, 0.0, 2.0]), 3)
    assert [row["name"] for row in found] == ["b", "d", "a"]
    assert largest(rows, np.zeros(4), 3) == []


def test_null_matches_null() -> None:
    assert matching(ROWS, ("key", "part"), {"key": None, "part": 1}).num_rows == 2
    assert matching(ROWS, ("key", "part"), {"key": "b", "part": None}).num_rows == 1
