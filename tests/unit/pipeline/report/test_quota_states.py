"""A quota counts as reached by its acts, even with room at the end of the minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.pipeline.report.quota_states import (
    IS_REACHED,
    REACHED_COLUMNS,
    reached_minutes,
    reached_quota,
    states_at_end,
    with_reached,
)
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, quota_row, write

CALM: dict[str, Any] = dict.fromkeys(REACHED_COLUMNS) | {"breach_quota": None}


@pytest.mark.parametrize(
    ("minute", "quota"),
    [
        ({"seconds_to_breach": 0.0, "breach_quota": "time"}, "time"),
        ({"held_seconds": 37.0, "seconds_to_breach": 20.0, "breach_quota": "size"}, ""),
        ({"eviction_size_acts": 2}, "size"),
        ({"eviction_time_acts": 1, "size_use_max": 0.9}, "time"),
        ({"size_use_max": 1.0, "seconds_to_breach": 5.0, "breach_quota": "size"}, "size"),
    ],
)
def test_reached(minute: dict[str, Any], quota: str) -> None:
    row = CALM | minute
    assert reached_minutes(pa.Table.from_pylist([row])).tolist() == [True]
    assert reached_quota(row) == quota


@pytest.mark.parametrize(
    "minute",
    [{}, {"seconds_to_breach": 30.0}, {"held_seconds": 0.01}, {"size_use_max": 0.99}],
)
def test_not_reached(minute: dict[str, Any]) -> None:
    # A hold of a moment is also there while a quota evicts.
    batch = pa.RecordBatch.from_pylist(
        [CALM | {"size_use_max": None, "held_seconds": 0.0} | minute],
    )
    (found,) = with_reached([batch])
    assert found.column(IS_REACHED).to_pylist() == [0]


def test_quota_states_at_the_end(tmp_path: Path) -> None:
    rows = [quota_row(p, NS + "holds", held_seconds=37.0 * (p == 2)) for p in range(4)]
    rows += [quota_row(3, NS + "later", seconds_to_breach=900.0), quota_row(3, NS + "sooner")]
    write(tmp_path, "quota_usage", rows)
    scan = TableScan(str(tmp_path), "quota_usage")
    found = states_at_end(scan, Span(T0, T0 + 4 * MINUTE_NS))
    assert [key[1] for key in found.reached] == [NS + "holds"]
    assert [key[1] for key in found.approached] == [NS + "sooner", NS + "later"]
    assert not states_at_end(scan, Span(T0 + 3 * MINUTE_NS, T0 + 4 * MINUTE_NS)).reached
