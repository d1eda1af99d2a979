"""Slopes of pairs, compared with every pair written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headgate.pipeline.kernels.array_types import Doubles
from headgate.pipeline.kernels.theil_sen import quantiles, slope_quantiles

SHARES = (0.1, 0.5, 0.9)


def slopes_of(times: Doubles, values: Doubles) -> list[float]:
    """The slopes of all pairs of points, one by one."""
    points = [(t, v) for t, v in zip(times, values, strict=True) if not np.isnan(v)]
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2)]


@pytest.mark.parametrize("windows", [1, 255, 256, 257, 600])
def test_the_quantiles_are_those_of_all_pairs(windows: int) -> None:
    rng = np.random.default_rng(windows)
    times = np.cumsum(rng.uniform(1, 100, (windows, 13)), axis=1)
    values = np.where(rng.random((windows, 13)) < 0.3, np.nan, rng.normal(0, 5, (windows, 13)))
    found = slope_quantiles(times, values, SHARES)
    for row in range(windows):
        slopes = slopes_of(times[row], values[row])
        expected = np.quantile(slopes, SHARES) if slopes else [np.nan] * 3
        np.testing.assert_allclose(found[row], expected, rtol=1e-12)


def test_sixty_points_have_1770_pairs() -> None:
    rng = np.random.default_rng(7)
    times, values = np.arange(60.0)[None], rng.normal(0, 1, (1, 60))
    slopes = slopes_of(times[0], values[0])
    assert len(slopes) == 1_770
    assert slope_quantiles(times, values, (0.5,))[0, 0] == pytest.approx(np.median(slopes))


@pytest.mark.parametrize("points", [0, 1, 2])
def test_fewer_than_two_points_have_no_slope(points: int) -> None:
    values = np.full((1, 5), np.nan)
    values[0, :points] = range(points)
    found = slope_quantiles(np.arange(5.0)[None], values, SHARES)
    assert np.isnan(found).all() == (points < 2)
    narrow = slope_quantiles(np.zeros((1, points)), np.zeros((1, points))[:, :1], SHARES)
    assert np.isnan(narrow).all()


def test_a_quarter_of_wild_points_moves_no_slope() -> None:
    values = 3.0 * np.arange(60.0)[None]
    values[0, ::4] = 1e12
    assert slope_quantiles(np.arange(60.0)[None], values, (0.5,))[0, 0] == pytest.approx(3.0)


_SERIES = arrays(np.float64, (3, 12), elements=st.floats(-1e6, 1e6, width=32))


@given(_SERIES, st.floats(0.01, 100), st.floats(-1e6, 1e6))
def test_units_and_offsets_do_not_matter(values: Doubles, scale: float, offset: float) -> None:
    times = np.tile(np.arange(12.0), (3, 1))
    found = slope_quantiles(times, values, SHARES)
    moved = slope_quantiles(times / scale, values * scale + offset, SHARES)
    np.testing.assert_allclose(moved, found * scale**2, rtol=1e-6, atol=1e-5 * scale)
    downwards = slope_quantiles(times, -values, SHARES)
    np.testing.assert_allclose(downwards[:, ::-1], -found, rtol=1e-9, atol=1e-9)
    assert (np.diff(found, axis=1) >= 0).all()


@given(
    st.floats(-1e6, 1e6), st.floats(-1e3, 1e3), st.sets(st.integers(0, 59), min_size=2, max_size=60)
)
def test_a_line_has_its_slope_with_missing_points(
    start: float, slope: float, there: set[int]
) -> None:
    times = np.arange(60.0)[None]
    values = np.full((1, 60), np.nan)
    values[0, sorted(there)] = start + slope * times[0, sorted(there)]
    found = slope_quantiles(times, values, SHARES)
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6)


def test_quantiles_ignore_nan() -> None:
    rows = np.array([[3.0, np.nan, 1.0], [np.nan] * 3, [5.0, np.nan, np.nan]])
    np.testing.assert_array_equal(
        quantiles(rows, (0.0, 0.5, 1.0)), [[1.0, 2.0, 3.0], [np.nan] * 3, [5.0] * 3]
    )
