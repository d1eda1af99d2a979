"""Rates up to each minute equal those of ``headgate.flow.account.demonstrated``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT
from headgate.flow.account.demonstrated import Interval, demonstrated_ack_per_s
from headgate.pipeline.kernels.demonstrated_rates import (
    HOUR,
    KEYS,
    MINUTE,
    MINUTE_RATES,
    OVERALL,
    RATE,
    RUNNING,
    demonstrated_rates,
    hourly_rates,
    running_rates,
)
from headgate.pipeline.tables.arrow_types import arrow_schema, table_arrow_schema
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES, RATES
from headgate.pipeline.tables.touched_minutes import TouchedMinutes

Rates = Mapping[tuple[int, int], int]
"""By hour and minute."""


def table(rates: Mapping[str, Rates]) -> pa.Table:
    """Minutes of some subscriptions that demonstrate a rate, sorted."""
    rows = [
        {
            "topic": "t",
            "subscription": name,
            HOUR.name: hour,
            MINUTE.name: minute,
            RATE.name: float(rate),
        }
        for name in sorted(rates)
        for (hour, minute), rate in sorted(rates[name].items())
    ]
    return pa.Table.from_pylist(rows, arrow_schema(MINUTE_RATES))


def by_law(rates: Iterable[int]) -> float | None:
    """The same over stretches of a second of which each demonstrates its rate."""
    return demonstrated_ack_per_s(
        Interval(NS_PER_S, [0] * CELL_COUNT, rate, 5 * NS_PER_S) for rate in rates
    )


SOME = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(
        st.tuples(st.integers(0, 9), st.integers(0, 59)), st.integers(0, 300), min_size=1
    ),
    min_size=1,
)


@given(SOME)
def test_a_row_has_the_rates_of_an_hour(rates: dict[str, Rates]) -> None:
    found = hourly_rates(table(rates))
    assert found.schema == table_arrow_schema(DEMONSTRATED_RATES)
    told = {
        (row["subscription"], row["hour"], minute): rate
        for row in found.to_pylist()
        for minute, rate in enumerate(row[RATES.name])
        if rate is not None
    }
    assert told == {(name, *at): rate for name, of in rates.items() for at, rate in of.items()}


@given(SOME, st.integers(0, 9), st.integers(0, 59), st.integers(1, 60), st.integers(0, 5))
def test_each_minute_has_the_rate_of_the_law_up_to_it(
    rates: dict[str, Rates], hour: int, first: int, count: int, back: int
) -> None:
    minutes = range(first, min(60, first + count))
    touched = TouchedMinutes({hour: minutes, 20: range(60)})
    found = running_rates(hourly_rates(table(rates)), touched, back)
    assert found.schema == arrow_schema(RUNNING)
    told = {row["subscription"]: row[RATES.name] for row in found.to_pylist()}
    for name, of in rates.items():
        expected = [
            by_law(
                rate
                for (at_hour, at_minute), rate in of.items()
                if hour - back <= at_hour and (at_hour, at_minute) <= (hour, minute)
            )
            for minute in minutes
        ]
        assert told.get(name, [None] * 60)[minutes.start : minutes.stop] == expected


@given(SOME)
def test_a_range_has_the_rate_of_the_law_over_all(rates: dict[str, Rates]) -> None:
    rows = table(rates).select([column.name for column in OVERALL])
    found = demonstrated_rates(rows)
    assert found.schema == arrow_schema(OVERALL)
    assert {row["subscription"]: row[RATE.name] for row in found.to_pylist()} == {
        name: by_law(of.values()) for name, of in rates.items()
    }


def test_without_a_demonstrating_minute_there_is_no_row() -> None:
    nothing: Sequence[str] = [column.name for column in KEYS]
    assert hourly_rates(table({})).num_rows == 0
    assert running_rates(hourly_rates(table({})), TouchedMinutes.whole([1]), 24).num_rows == 0
    assert demonstrated_rates(table({}).select([*nothing, RATE.name])).num_rows == 0
