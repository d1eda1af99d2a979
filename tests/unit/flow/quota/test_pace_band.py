"""The band around a breach follows from how much the pace has changed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.flow.quota.backlog_quota import BREACH_S_MAX, Approach
from headgate.flow.quota.pace_band import DOUBT_SHARE, Band, PaceBand


def observed(speeds: list[float]) -> PaceBand:
    """A band after minutes at these speeds, a second each."""
    band, level = PaceBand(0, 0), 0.0
    for minute, speed in enumerate(speeds, 1):
        level += 60 * speed
        band.observe(level, minute * NS_PER_MINUTE)
    return band


def test_a_steady_level_has_no_band() -> None:
    found = observed([2.0] * 30).around(100, 2.0)
    assert found == (pytest.approx(50), pytest.approx(50))


def test_it_spans_the_paces_and_a_part_of_the_doubt() -> None:
    """After one minute both paces are its speed, and it differs from them by nothing."""
    assert observed([4.0]).around(100, 1.0) == (25.0, 100.0)
    # Of two minutes the mean is 3, from which the second differs by 1 and the first did by nothing:
    # the doubt is the mean of both.
    fastest, slowest = 3.0 + DOUBT_SHARE / 2, 1.0 - DOUBT_SHARE / 2
    assert observed([4.0, 2.0]).around(100, 1.0) == (
        pytest.approx(100 / fastest), pytest.approx(100 / slowest)
    )  # fmt: skip


def test_a_level_that_also_fell_may_never_reach_the_limit() -> None:
    found = observed([3.0, -4.0, 3.0, -4.0]).around(100, 3.0)
    assert found is not None
    assert found.earliest_s < 100 / 3
    assert found.latest_s is None


def test_the_first_minute_says_nothing() -> None:
    band = PaceBand(0, 0)
    for second in range(1, 60):
        band.observe(second, second * NS_PER_S)
    assert band.around(100, 1.0) is None
    band.observe(60, 60 * NS_PER_S)
    assert band.around(100, 1.0) == (100.0, 100.0)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=80), st.floats(0.01, 100))
def test_the_present_pace_is_within(speeds: list[float], speed: float) -> None:
    found = observed(speeds).around(1_000, speed)
    assert found is not None
    assert 0 < found.earliest_s <= 1_000 / speed
    assert found.latest_s is None or found.latest_s >= 1_000 / speed


def test_producers_that_come_and_go_break_the_quota_within_the_band() -> None:
    """Producers are on for some minutes and off for some: the hardest case, in which an hour cannot
    know the next pace. The band holds in two of three cases."""
    draw = random.Random(1)
    held = told = 0
    for _ in range(40):
        levels, is_on = [0.0], True
        while levels[-1] < 1_000:
            for _ in range(int(draw.expovariate(1 / 6)) + 1):
                levels.append(max(levels[-1] + (20 if is_on else -4) * draw.uniform(0.5, 1.5), 0))
            is_on = not is_on
        breach = next(i for i, level in enumerate(levels) if level >= 1_000)
        approach = Approach(0, 0)
        for minute in range(1, breach):
            approach.observe(levels[minute], minute * NS_PER_MINUTE)
            band = approach.band_to(1_000, levels[minute])
            if levels[minute] > 200 and band is not None:
                told += 1
                held += _holds(band, (breach - minute) * 60)
    assert told > 300
    assert held / told > 0.65


def _holds(band: Band, seconds: float) -> bool:
    return band.earliest_s - 60 <= seconds <= (band.latest_s or BREACH_S_MAX) + 60


def test_an_approach_tells_a_band_only_while_it_approaches() -> None:
    approach = Approach(0, 0)
    for second in range(1, 200):
        approach.observe(10 * second, second * NS_PER_S)
    assert approach.band_to(2_990, 1_990) == (pytest.approx(100), pytest.approx(100))
    # An age grows by a second each second at most.
    assert approach.band_to(2_990, 1_990, 5) == (200, 200)
    assert approach.band_to(1_990, 1_990) is None
    assert approach.band_to(1_990 + 11 * BREACH_S_MAX, 1_990) is None
    # It stands still; when it goes on, the minutes before still count.
    for second in range(200, 230):
        approach.observe(1_990, second * NS_PER_S)
    assert approach.band_to(2_990, 1_990) is None
    for second in range(230, 234):
        approach.observe(1_990 + 5 * (second - 229), second * NS_PER_S)
    assert approach.band_to(3_010, 2_010) == (pytest.approx(100), pytest.approx(200))
    # A level that falls to half, as after an eviction, begins anew.
    approach.observe(100, 235 * NS_PER_S)
    for second in range(236, 246):
        approach.observe(100 + 10 * (second - 235), second * NS_PER_S)
    assert approach.band_to(1_000, 200) is None
