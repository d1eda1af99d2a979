"""The rows that differ between two sets, whatever files they are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.source.row_changes import row_changes

SCHEMA = pa.schema([("topic", pa.string()), ("minute", pa.int64()), ("count", pa.float64())])
KEY = ("topic", "minute")
Row = tuple[str | None, int, float | None]


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def changed(before: Sequence[Row], now: Sequence[Row]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = row_changes(
        table(before), table(now), KEY, SCHEMA.names
    ).to_pylist()
    return found


def test_each_kind_of_change() -> None:
    before: list[Row] = [("a", 1, 5.0), ("b", 1, 7.0), (None, 1, 1.0), ("d", 1, None)]
    now: list[Row] = [("d", 1, None), ("c", 1, 9.0), ("a", 1, 6.0), (None, 1, 1.0)]
    assert [(row["topic"], row["count"], row["change"]) for row in changed(before, now)] == [
        ("a", 6.0, "corrected"),
        ("b", 7.0, "removed"),
        ("c", 9.0, "new"),
    ]


def test_null_and_nan_are_values_like_others() -> None:
    nan = float("nan")
    assert changed([("a", 1, nan)], [("a", 1, nan)]) == []
    assert [row["change"] for row in changed([("a", 1, None)], [("a", 1, 0.0)])] == ["corrected"]


def test_only_the_columns_that_are_named_but_any_change_counts() -> None:
    found = row_changes(table([("a", 1, 1.0)]), table([("a", 1, 2.0)]), KEY, ["topic"])
    assert found.to_pylist() == [{"topic": "a", "change": "corrected"}]
    assert row_changes(table([]), table([]), KEY, ["topic"]).column_names == ["topic", "change"]


_ROWS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3)),
    st.one_of(st.none(), st.integers(0, 2).map(float)),
)


@given(_ROWS, _ROWS)
def test_before_and_its_changes_make_now(
    before: dict[tuple[str | None, int], float | None],
    now: dict[tuple[str | None, int], float | None],
) -> None:
    state = dict(before)
    for row in changed([(*k, v) for k, v in before.items()], [(*k, v) for k, v in now.items()]):
        key = (row["topic"], row["minute"])
        match row["change"]:
            case "removed":
                assert state.pop(key) == row["count"]
            case "new":
                assert key not in state
                state[key] = row["count"]
            case _:
                assert state[key] != row["count"]
                state[key] = row["count"]
    assert state == now
