"""The band of a forecast, and when its edges reach a limit."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.level_series import FAMILIES, family
from headgate.pipeline.kernels.array_types import Doubles
from headgate.pipeline.kernels.breach import (
    HORIZONS_MINUTES,
    LAGS_MINUTES,
    WINDOW_MINUTES,
    Breach,
    approaches,
    band,
    breach,
)

DAY_S = 86_400.0


def times_of(windows: int = 1) -> Doubles:
    """A sample at the end of each minute."""
    return np.tile(60.0 * np.arange(1.0 - WINDOW_MINUTES, 1.0), (windows, 1))


def line(level: float, pace: float, points: int = WINDOW_MINUTES) -> Doubles:
    """A window of the last ``points`` minutes of a line that is at ``level`` now."""
    values = level + pace * times_of()
    values[:, : WINDOW_MINUTES - points] = np.nan
    return values


def breach_of(values: Doubles, limit: float, pace_max: float = inf) -> tuple[float, float, float]:
    """Earliest, likely, latest of one window."""
    found = breach(band(times_of(), values, pace_max=pace_max), np.array([limit]))
    return float(found.earliest_s[0]), float(found.likely_s[0]), float(found.latest_s[0])


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e6), st.floats(1.0, 80_000.0), st.integers(10, 60))
def test_on_a_line_the_likely_time_is_exact(
    level: float, pace: float, left_s: float, points: int
) -> None:
    limit = level + pace * left_s
    earliest, likely, latest = breach_of(line(level, pace, points), limit)
    # As exact as levels of that size can be.
    blur_s = 1e-9 * (abs(level) + abs(limit)) / pace + 1e-6 * left_s
    assert likely == pytest.approx(left_s, abs=blur_s)
    assert earliest - blur_s <= likely <= latest + blur_s
    # The band is the doubt about the pace alone: 40 % after an hour and a half.
    assert earliest >= left_s / 1.4 - blur_s
    if left_s < 3_600:
        assert earliest == pytest.approx(left_s, rel=0.3)


def test_a_level_at_its_limit_breaches_now_and_a_falling_one_never() -> None:
    assert breach_of(line(10.0, 1.0), 10.0) == (0.0, 0.0, 0.0)
    assert breach_of(line(10.0, -0.001), 11.0) == (inf, inf, inf)
    assert breach_of(line(10.0, 0.0), 11.0) == (inf, inf, inf)
    # More than a day away.
    assert breach_of(line(0.0, 1.0), 3 * DAY_S) == (inf, inf, inf)


def test_an_age_grows_no_faster_than_time() -> None:
    rng = np.random.default_rng(1)
    values = line(1_800.0, 0.9) + rng.normal(0, 300, (1, WINDOW_MINUTES))
    values[0, -1] = 1_800.0
    earliest, likely, latest = breach_of(values, 3_600.0, pace_max=1.0)
    assert earliest == pytest.approx(1_800.0)
    assert earliest <= likely <= latest
    assert breach_of(values, 3_600.0)[0] < 1_800.0
    # A message that nobody takes: no possible way is quicker than the likely one.
    earliest, likely, latest = breach_of(line(1_800.0, 1.0), 3_600.0, pace_max=1.0)
    assert earliest == likely == pytest.approx(1_800.0)
    assert latest > likely


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=20)
@given(data=st.data())
def test_edges_are_ordered_and_closer_limits_are_breached_sooner(
    name: str, data: st.DataObject
) -> None:
    series = family(name, 4, data.draw(st.integers(0, 1_000)))
    now = data.draw(st.integers(WINDOW_MINUTES, series.shape[1]))
    values = series[:, now - WINDOW_MINUTES : now].copy()
    holes = data.draw(st.sets(st.integers(0, WINDOW_MINUTES - 2), max_size=20))
    values[:, sorted(holes)] = np.nan
    way = band(times_of(len(values)), values)
    assert (way.lower <= way.middle + 1e-12).all()
    assert (way.middle <= way.upper + 1e-12).all()
    now_level = values[:, -1]
    for edge in (way.lower, way.middle, way.upper):
        np.testing.assert_allclose(edge[:, 0], now_level)
    near, far = (breach(way, now_level + room) for room in (0.05, 0.3))
    for found in (near, far):
        assert (found.earliest_s <= found.likely_s + 1e-6).all()
        assert (found.likely_s <= found.latest_s + 1e-6).all()
    assert (near.earliest_s <= far.earliest_s).all()
    assert (near.likely_s <= far.likely_s).all()
    assert (near.latest_s <= far.latest_s).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_units_do_not_matter(name: str) -> None:
    values = family(name, 8, 3)[:, :WINDOW_MINUTES]
    once = breach(band(times_of(8), values), np.ones(8))
    thousand = breach(band(times_of(8), 1_024.0 * values), np.full(8, 1_024.0))
    np.testing.assert_allclose(thousand.earliest_s, once.earliest_s, rtol=1e-9)
    np.testing.assert_allclose(thousand.likely_s, once.likely_s, rtol=1e-9)
    np.testing.assert_allclose(thousand.latest_s, once.latest_s, rtol=1e-9)


def test_more_noise_widens_the_band() -> None:
    noise = np.random.default_rng(2).normal(0, 1, (1, WINDOW_MINUTES))
    noise[0, -1] = 0.0
    widths = []
    for amount in (0.0, 10.0, 100.0, 1_000.0):
        way = band(times_of(), line(0.0, 1.0) + amount * noise)
        widths.append(float((way.upper - way.lower)[0, HORIZONS_MINUTES.index(30)]))
    assert widths == sorted(widths)
    assert widths[-1] > 2 * widths[0]


def test_a_changed_pace_widens_the_band() -> None:
    """Four times the pace in the last twenty minutes: the band holds both paces, and beyond."""
    times_s = times_of()
    values = np.where(times_s < -1_200, times_s, -1_200 + 4 * (times_s + 1_200))
    way = band(times_s, values)
    at = HORIZONS_MINUTES.index(60)
    level, hour_s = values[0, -1], 3_600.0
    assert way.lower[0, at] <= level + 1.0 * hour_s
    assert way.upper[0, at] > level + 4.0 * hour_s


@pytest.mark.parametrize("spacing", [2, 5, 7])
def test_samples_minutes_apart_still_make_a_band(spacing: int) -> None:
    values = line(100.0, 1.0)
    values += 30 * np.random.default_rng(3).normal(0, 1, values.shape)
    values[0, [i for i in range(WINDOW_MINUTES - 1) if (WINDOW_MINUTES - 1 - i) % spacing]] = np.nan
    way = band(times_of(), values)
    # Lags that no two samples are apart by tell nothing; of seven minutes none is known.
    has_lag = any(lag % spacing == 0 for lag in LAGS_MINUTES)
    assert np.isnan(way.upper).any() == (not has_lag)
    assert not np.isnan(way.middle).any()


def test_likely_or_close_breaches_are_approached() -> None:
    found = Breach(
        earliest_s=np.array([100.0, 100.0, 100.0, 3_601.0, inf]),
        likely_s=np.array([200.0, inf, inf, inf, inf]),
        latest_s=np.array([inf, inf, inf, inf, inf]),
    )
    use = np.array([0.1, 0.5, 0.49, 0.9, 0.99])
    assert approaches(found, use).tolist() == [True, True, False, False, False]
