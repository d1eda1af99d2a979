"""Rows of two tables are one, minute by minute."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels.episodes import (
    INPUT_COLUMNS,
    JUDGED_COLUMNS,
    MINUTE_FIGURES,
)
from headgate.pipeline.kernels.minute_figures import MIXED_ORDER, VERDICT, with_figures
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS

_SCHEMA = arrow_schema(
    (
        *(column for column in ATTRIBUTION.columns if column.name in JUDGED_COLUMNS),
        *(INTERVALS.column(name) for name in MINUTE_FIGURES),
    )
)
Minute = tuple[int, int]
"""The number of a topic, and of a minute."""


def row(minute: Minute, **columns: Any) -> dict[str, Any]:
    topic, number = minute
    # An account without a cluster or partition is one, too.
    key = {"cluster": "east" if topic % 2 else None, "topic": f"t{topic}", "subscription": "s"}
    return dict.fromkeys(INPUT_COLUMNS) | key | {"minute": number * 60_000_000} | columns


def verdict(minute: Minute) -> dict[str, Any]:
    return row(minute, verdict="NONE", from_ns=minute[1] * MINUTE_NS, acked=minute[0])


def figures(minute: Minute) -> dict[str, Any]:
    return row(minute, skipped=100 * minute[0] + minute[1], evicted_by="size")


def mixed(judged: set[Minute], with_counts: set[Minute]) -> pa.Table:
    """Rows of both, as Spark sorts them."""
    rows = [*map(verdict, judged), *map(figures, with_counts)]
    rows.sort(key=lambda row: [(row[name] is not None, row[name] or 0) for name in MIXED_ORDER])
    return pa.Table.from_pylist(rows, schema=_SCHEMA).select(list(INPUT_COLUMNS))


minutes = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 5)))


@given(judged=minutes, with_counts=minutes)
def test_it_is_a_left_join(judged: set[Minute], with_counts: set[Minute]) -> None:
    found = with_figures(mixed(judged, with_counts))
    assert found.column_names == list(INPUT_COLUMNS)
    expected = {
        minute: verdict(minute)
        | (
            {"skipped": 100 * minute[0] + minute[1], "evicted_by": "size"}
            if minute in with_counts
            else {}
        )
        for minute in judged
    }
    got = {
        (int(each["topic"][1:]), each["from_ns"] // MINUTE_NS): each for each in found.to_pylist()
    }
    assert found.num_rows == len(judged) == len(got)
    for minute, wanted in expected.items():
        for name in (VERDICT, "acked", *MINUTE_FIGURES):
            assert got[minute][name] == wanted[name]


def test_rows_stay_in_their_order() -> None:
    found = with_figures(mixed({(0, 2), (0, 1), (1, 0)}, {(0, 1), (1, 9)}))
    assert found.column("topic").to_pylist() == ["t0", "t0", "t1"]
    assert [ns // MINUTE_NS for ns in found.column("from_ns").to_pylist()] == [1, 2, 0]
    assert found.column("skipped").to_pylist() == [1, None, None]


def test_without_figures_nothing_is_copied() -> None:
    table = mixed({(0, 1), (0, 2)}, set())
    assert with_figures(table) is table
