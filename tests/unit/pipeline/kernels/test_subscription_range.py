"""The range of one subscription is judged as in a query over all."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from headgate.pipeline.kernels.subscription_range import judge_subscription_range
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.judged import judge_ranges
from tests.unit.pipeline.play import SITUATIONS, T0, S, Situation, minutes, play
from tests.unit.pipeline.row_by_row import proven_rate_per_s


@cache
def played_minutes() -> list[dict[str, Any]]:
    """Minutes of every situation over almost five minutes."""
    return minutes(play(290))


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.topic.rsplit("/", 1)[1])
@pytest.mark.parametrize("since_s", [0, 130])
def test_one_subscription_is_judged_as_in_a_whole_range(situation: Situation, since_s: int) -> None:
    mine = [
        row
        for row in played_minutes()
        if (row["topic"], row["subscription"]) == (situation.topic, situation.subscription)
    ]
    until_ns = T0 + 200 * S
    before_end = [row for row in mine if row["from_ns"] < until_ns]
    inside = [row for row in before_end if row["to_ns"] > T0 + since_s * S]
    assert 0 < len(inside) < len(mine)
    table = pa.Table.from_pylist(mine, schema=table_arrow_schema(INTERVALS))
    found = judge_subscription_range(table, T0 + since_s * S, until_ns)
    (expected,) = judge_ranges(inside, proven_rate_per_s(before_end))
    assert found == expected


def test_a_range_without_minutes() -> None:
    table = pa.Table.from_pylist(played_minutes()[:2], schema=table_arrow_schema(INTERVALS))
    assert judge_subscription_range(table, T0 - 200 * S, T0 - 100 * S) is None
