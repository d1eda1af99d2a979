"""Rates over windows of hours equal those of ``headgate.flow.account.demonstrated``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT
from headgate.flow.account.demonstrated import Interval, demonstrated_ack_per_s
from headgate.pipeline.kernels.demonstrated_rates import (
    DEMONSTRATED_SCHEMA,
    HOUR,
    KEYS,
    RATE,
    RATES,
    demonstrated_rates,
)
from headgate.pipeline.tables.arrow_types import arrow_schema

WINDOWS = ((0, 2), (1, 3), (3, 3), (8, 9), (0, 9))
FIRSTS, LASTS = [first for first, _ in WINDOWS], [last for _, last in WINDOWS]


def table(rates: Mapping[str, Sequence[tuple[int, int]]]) -> pa.Table:
    """Rates by hour of some subscriptions, sorted."""
    rows = [
        {"topic": "t", "subscription": name, HOUR.name: hour, RATE.name: float(rate)}
        for name in sorted(rates)
        for hour, rate in sorted(rates[name], key=lambda pair: pair[0])
    ]
    return pa.Table.from_pylist(rows, arrow_schema((*KEYS, HOUR, RATE)))


def by_law(rates: Sequence[tuple[int, int]], window: tuple[int, int]) -> float | None:
    """The same over stretches of a second of which each proves its rate."""
    return demonstrated_ack_per_s(
        Interval(NS_PER_S, [0] * CELL_COUNT, rate, 5 * NS_PER_S)
        for hour, rate in rates
        if window[0] <= hour <= window[1]
    )


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 300)), min_size=1, max_size=60),
        min_size=1,
    )
)
def test_each_window_has_the_rate_of_the_law(rates: dict[str, Any]) -> None:
    found = demonstrated_rates(table(rates), FIRSTS, LASTS)
    assert found.schema == DEMONSTRATED_SCHEMA
    assert {row["subscription"]: row[RATES] for row in found.to_pylist()} == {
        name: [by_law(of, window) for window in WINDOWS] for name, of in rates.items()
    }


def test_without_a_demonstrating_minute_there_is_no_row() -> None:
    assert demonstrated_rates(table({}), FIRSTS, LASTS).num_rows == 0
