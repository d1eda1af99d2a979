"""The time axis: a bounded number of points, and no lost amount."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.report.grid import (
    POINTS_MAX,
    Grid,
    account_span,
    instants,
    numbers,
    time_text,
)
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span

DAY_NS = 1_440 * MINUTE_NS


@given(
    st.integers(0, 10 * DAY_NS),
    st.integers(1, 400 * DAY_NS),
    st.integers(1, POINTS_MAX),
)
def test_a_grid_covers_its_range_in_whole_minutes(since: int, length: int, points: int) -> None:
    grid = Grid.over(since, since + length, points)
    assert 1 <= grid.count <= points
    assert grid.start_ns <= since
    assert since + length <= grid.end_ns
    assert grid.start_ns % MINUTE_NS == grid.step_ns % MINUTE_NS == 0
    # No step too many, and none coarser than it must be.
    assert grid.end_ns - grid.step_ns < since + length
    if grid.step_ns > MINUTE_NS:
        finer = grid.step_ns - MINUTE_NS
        assert -(-(since + length - grid.start_ns) // finer) > points


def test_a_day_has_its_minutes_and_two_days_pairs() -> None:
    assert Grid.over(0, DAY_NS) == Grid(0, MINUTE_NS, 1_440, Span(0, DAY_NS))
    assert Grid.over(0, DAY_NS + 1) == Grid(0, 2 * MINUTE_NS, 721, Span(0, DAY_NS + 1))


def test_the_first_step_and_the_last_are_known_in_part() -> None:
    grid = Grid.over(MINUTE_NS + 5, 3 * MINUTE_NS + 7)
    assert grid.edges_ns.tolist() == [
        MINUTE_NS + 5,
        2 * MINUTE_NS,
        3 * MINUTE_NS,
        3 * MINUTE_NS + 7,
    ]
    within = grid.within(Span(2 * MINUTE_NS + 1, None))
    assert (within.known_from_ns, within.known_to_ns) == (2 * MINUTE_NS + 1, 3 * MINUTE_NS + 7)
    assert grid.within(Span(0, 2 * MINUTE_NS)).known == Span(MINUTE_NS + 5, 2 * MINUTE_NS)
    outside = grid.within(Span(0, 1))
    assert outside.known_from_ns == outside.known_to_ns == MINUTE_NS + 5
    whole = Grid(0, MINUTE_NS, 2)
    assert whole.within(Span()).edges_ns.tolist() == [0, MINUTE_NS, 2 * MINUTE_NS]


def test_accounts_have_a_beginning_and_an_end() -> None:
    rows = pa.table({"from_ns": [5, 2], "to_ns": [9, 4]})
    assert account_span(rows) == Span(2, 9)
    assert account_span(rows.slice(0, 0)) == Span()


def test_values_are_assigned_to_steps() -> None:
    grid = Grid(0, 2 * MINUTE_NS, 3)
    places = grid.step_indexes(np.array([0, 1, 2, 99, -5]) * MINUTE_NS)
    assert places.tolist() == [0, 0, 1, 2, 0]
    places, values = places[:3], np.array([1.0, np.nan, 4.0])
    assert grid.total(places, values).tolist() == [1, 4, 0]
    np.testing.assert_equal(grid.largest(places, values), [1, 4, np.nan])
    np.testing.assert_equal(grid.mean(places, values, np.ones(3)), [1, 4, np.nan])


def test_means_are_weighted_and_leave_the_unknown_out() -> None:
    grid = Grid(0, MINUTE_NS, 1)
    places = np.zeros(3, dtype=np.int64)
    mean = grid.mean(places, np.array([0.0, 1.0, np.nan]), np.array([3.0, 1.0, 9.0]))
    assert mean.tolist() == [0.25]


def test_columns_as_numbers() -> None:
    np.testing.assert_equal(numbers(pa.array([1, None])), [1, np.nan])
    when = datetime(2026, 11, 21, 10, tzinfo=UTC)
    column = pa.chunked_array([pa.array([when], pa.timestamp("us", "UTC"))])
    assert instants(column).tolist() == [1_795_255_200 * 10**9]
    assert instants(pa.array([5])).tolist() == [5]
    assert time_text(1_795_255_200 * 10**9) == "2026-11-21 10:00:00"
    assert time_text(1_795_255_200 * 10**9 + 7_900_000) == "2026-11-21 10:00:00.007"


@pytest.mark.parametrize("points", [1, 7, POINTS_MAX])
def test_no_amount_is_lost(points: int) -> None:
    grid = Grid.over(0, 3 * DAY_NS, points)
    times = np.arange(0, 3 * DAY_NS, MINUTE_NS)
    assert grid.total(grid.step_indexes(times), np.ones(times.size)).sum() == times.size
