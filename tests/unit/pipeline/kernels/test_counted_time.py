"""Shares of a minute refer to its counted time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headgate.pipeline.kernels.counted_time import COUNTED_INPUT, counted_ns
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.columns import LONG, TableColumn
from headgate.record.fields import Kind
from tests.unit.pipeline.play import S, minutes
from tests.unit.pipeline.story_play import tell

_SCHEMA = arrow_schema(tuple(TableColumn(name, LONG) for name in COUNTED_INPUT))


def counted(rows: list[dict[str, Any]]) -> list[int]:
    """The counted time of each minute."""
    found = [{name: row[name] for name in COUNTED_INPUT} for row in rows]
    return counted_ns(pa.Table.from_pylist(found, schema=_SCHEMA)).tolist()


@pytest.mark.parametrize(
    ("covered_s", "gaps", "counted_s"),
    [(60, 0, 60), (40, 1, 60), (40, 0, 40), (70, 0, 60), (0, 0, 0)],
)
def test_time_of_lost_rows_counts_and_time_of_gaps_does_not(
    covered_s: int, gaps: int, counted_s: int
) -> None:
    minute = {"from_ns": 60 * S, "to_ns": 120 * S, "covered_ns": covered_s * S, "gaps": gaps}
    assert counted([minute]) == [counted_s * S]


def test_a_waiter_all_the_time_has_a_share_of_one_despite_lost_rows() -> None:
    messages = tell(330)
    whole = [row for row in minutes(messages, Kind.LIMITER) if row["waiting_ns"]]
    lossy = [row for row in minutes(messages[:2] + messages[5:], Kind.LIMITER) if row["waiting_ns"]]
    assert any(row["covered_ns"] < ns for row, ns in zip(lossy, counted(lossy), strict=True))
    shares = [
        [row["waiting_ns"] / ns for row, ns in zip(rows, counted(rows), strict=True)]
        for rows in (whole, lossy)
    ]
    assert shares[0] == [0.5] * len(whole)
    assert shares[1] == pytest.approx(shares[0])
