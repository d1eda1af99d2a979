"""The forecast of a full disk: steady growth, peaks_and_troughs, and where there is none."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.flow.disk_forecast import (
    FULL_IN_S_MAX,
    DiskForecast,
    DiskSample,
    Filling,
    disk_forecast,
    is_soon,
    repeated_fall,
)

MB = 1_000_000
SIZE = 200_000 * MB
Level = Callable[[float], float]
"""Bytes in use by the time in seconds."""


def sample(at_s: float, level: float, *, size: int = SIZE) -> DiskSample:
    """A disk of which the logs take three quarters of the bytes in use."""
    used = round(level)
    log = used * 3 // 4
    return DiskSample(round(at_s * NS_PER_S), log // 2, log, used - log, size - used)


def forecasts(level: Level, seconds: int, *, size: int = SIZE) -> list[DiskForecast]:
    """The forecast after each sample, with the samples of an hour."""
    samples: list[DiskSample] = []
    said: list[DiskForecast] = []
    previous = DiskForecast()
    for at_s in range(0, seconds + 1, 10):
        samples = [*samples[-360:], sample(at_s, level(at_s), size=size)]
        previous = disk_forecast(samples, previous)
        said.append(previous)
    return said


def sawtooth(per_s: float, amplitude: float, leak_per_s: float = 0.0) -> Level:
    """Rises by ``per_s`` and falls by its amplitude, and rises by a leak beside that."""
    return lambda at_s: 10_000 * MB + per_s * at_s % amplitude + leak_per_s * at_s


def test_the_example_of_the_module() -> None:
    level = 3_000 * MB
    samples = [
        sample(0, level, size=0),
        sample(600, level + 7_200 * MB, size=level + 7_200 * MB + 144_000 * MB),
    ]
    found = disk_forecast(samples, DiskForecast())
    assert found.filling is Filling.FILLING
    assert found.full_in_s == pytest.approx(12_000)
    assert found.growth is not None
    assert found.growth.total_per_s == pytest.approx(12 * MB)
    assert sum(found.growth.by_content().values()) == pytest.approx(found.growth.total_per_s)
    assert found.growth.by_content() == {
        "retained": pytest.approx(4.5 * MB),
        "unneeded": pytest.approx(4.5 * MB),
        "other": pytest.approx(3 * MB),
    }


def test_it_is_known_after_two_minutes() -> None:
    assert disk_forecast([], DiskForecast()) == DiskForecast()
    said = forecasts(lambda at_s: at_s * MB, 130)
    assert [one.known_in_s for one in said[:3]] == [120, 110, 100]
    assert said[11].filling is Filling.UNKNOWN
    assert said[12].filling is Filling.FILLING


def test_files_that_a_start_writes_are_no_growth() -> None:
    """500 MB in the first 40 s, and little after that: of two minutes it would be 4 MB/s."""
    said = forecasts(lambda at_s: 10_000 * MB + 12.5 * MB * min(at_s, 40) + 1_000 * at_s, 900)
    assert all(one.full_in_s is None for one in said)
    assert {one.filling for one in said[12:13]} == {Filling.UNKNOWN}
    assert {one.filling for one in said[72:]} == {Filling.NOT_FILLING}
    assert [one.known_in_s for one in (said[12], said[63])] == [600, 90]


def test_growth_that_fills_the_disk_at_once_is_told_though_it_is_not_steady() -> None:
    said = forecasts(lambda at_s: 100 * MB + 4 * MB * at_s**2, 200)
    assert said[12].filling is Filling.FILLING
    later = forecasts(lambda at_s: 100 * MB + 0.01 * MB * at_s**2, 200)
    assert later[12].filling is Filling.UNKNOWN


def test_the_instant_stays_while_the_growth_does() -> None:
    said = forecasts(lambda at_s: 20 * MB * at_s, 9_000)
    instants = [one.at_ns / NS_PER_S + one.full_in_s for one in said if one.full_in_s is not None]
    assert len(instants) == len(said) - 12
    assert all(instant == pytest.approx(10_000) for instant in instants)


def test_seconds_count_from_now_and_not_below_zero() -> None:
    last = forecasts(lambda at_s: 20 * MB * at_s, 9_000)[-1]
    assert last.full_in_s_from(last.at_ns + 300 * NS_PER_S) == pytest.approx(700)
    assert last.full_in_s_from(last.at_ns + 3_000 * NS_PER_S) == 0
    assert DiskForecast().full_in_s_from(5) is None
    beyond = forecasts(lambda at_s: 20 * MB * at_s, 11_000)[-1]
    assert (beyond.filling, beyond.full_in_s) == (Filling.FILLING, 0)


@pytest.mark.parametrize("period_s", [30, 65, 400, 900])
def test_a_sawtooth_is_steady_once_it_was_seen_twice(period_s: int) -> None:
    said = forecasts(sawtooth(5 * MB, 5 * MB * period_s), 4 * 3_600)
    after = said[(2 * period_s + 120) // 10 + 1 :]
    assert {one.filling for one in after} <= {Filling.STEADY, Filling.NOT_FILLING}
    assert all(one.full_in_s is None for one in after)
    assert after[-1].amplitude_bytes >= 5 * MB * (period_s - 20)


def test_a_leak_under_a_sawperiod_shows_over_the_hour() -> None:
    said = forecasts(sawtooth(5 * MB, 1_000 * MB, leak_per_s=MB), 4 * 3_600)
    late = said[361:]
    assert all(one.filling is Filling.FILLING for one in late)
    growth = late[-1].growth
    assert growth is not None
    assert 1_200 < growth.span_s <= 2_400
    assert growth.total_per_s == pytest.approx(MB, rel=0.1)


def test_a_single_fall_is_no_sawtooth() -> None:
    """An operator deletes a topic, and the disk fills as fast as before."""
    said = forecasts(lambda at_s: 100 * MB * at_s + (150_000 * MB if at_s < 60 else 0), 1_000)
    assert said[-1].filling is Filling.FILLING
    assert said[-1].full_in_s == pytest.approx(1_000)


def test_growth_that_ends_is_forecast_later_and_then_not_at_all() -> None:
    said = forecasts(lambda at_s: 10 * MB * min(at_s, 3_600), 3_600 + 700)
    growing, half, over = said[360], said[390], said[-1]
    assert growing.full_in_s is not None
    assert half.full_in_s is not None
    assert half.full_in_s == pytest.approx(2 * growing.full_in_s)
    assert (over.filling, over.full_in_s) == (Filling.NOT_FILLING, None)
    shrinking = forecasts(lambda at_s: 9_000 * MB - MB * at_s, 1_200)[-1]
    assert shrinking.filling is Filling.NOT_FILLING


def test_a_forecast_beyond_a_week_is_none() -> None:
    edge_per_s = SIZE / FULL_IN_S_MAX
    slow = forecasts(lambda at_s: 0.9 * edge_per_s * at_s, 1_200)
    assert {one.filling for one in slow[12:]} == {Filling.NOT_FILLING}
    fast = forecasts(lambda at_s: 1.1 * edge_per_s * at_s, 1_200)
    assert {one.filling for one in fast[12:]} == {Filling.FILLING}
    last = disk_forecast([sample(0, 0), sample(600, 0.6 * edge_per_s * 600)], fast[-1])
    assert last.filling is Filling.FILLING  # what was said stays longer


def test_a_sawtooth_at_its_first_height_is_steady_also_after_it_was_reached() -> None:
    """A topic with retention fills up to its bound within the hour."""
    said = forecasts(
        lambda at_s: 5 * MB * at_s % (500 * MB) + min(5 * MB * at_s, 9_000 * MB), 6_000
    )
    assert said[170].filling is Filling.FILLING
    assert {one.filling for one in said[250:]} == {Filling.STEADY}


def test_any_higher_peak_keeps_a_forecast() -> None:
    def at(at_s: float, level: int) -> DiskSample:
        return sample(at_s, level * MB, size=300 * MB)

    peaks_and_troughs = [(100 * at_s, 80 * (at_s % 2) + 20) for at_s in range(36)]
    filling = DiskForecast(Filling.FILLING)
    for peak, anew, kept in (
        (100, Filling.STEADY, Filling.STEADY),
        (105, Filling.STEADY, Filling.FILLING),
        (115, Filling.FILLING, Filling.FILLING),
    ):
        samples = [*(at(at_s, level) for at_s, level in peaks_and_troughs), at(3_600, peak)]
        assert disk_forecast(samples, DiskForecast()).filling is anew
        assert disk_forecast(samples, filling).filling is kept


def test_a_sawtooth_that_ended_did_not_grow() -> None:
    def level(at_s: float) -> float:
        return sawtooth(5 * MB, 500 * MB)(min(at_s, 1_210))

    said = forecasts(level, 2_400)
    assert said[121].filling is Filling.STEADY
    assert said[-1].filling is Filling.NOT_FILLING


def test_a_file_system_that_did_not_answer_for_long() -> None:
    samples = [sample(100 * at, (80 * (at % 2) + 20) * MB) for at in range(10)]
    samples.append(sample(3_600, 150 * MB, size=300 * MB))
    found = disk_forecast(samples, DiskForecast())
    assert found.filling is Filling.FILLING
    assert found.full_in_s == pytest.approx(150 / 50 * 3_500)  # since the highest sample before


@pytest.mark.parametrize(
    ("levels", "fall"),
    [
        ([], 0),
        ([1], 0),
        ([1, 5, 9], 0),
        ([9, 5, 1], 0),  # once
        ([9, 5, 6, 1], 4),
        ([9, 7, 7, 5, 6, 1, 8], 4),  # a fall with a pause is one
        ([9, 5, 9, 1, 9, 3], 6),
        ([9, 6, 7, 2, 9, 6, 7, 3], 6),  # a small sawtooth on a large one
        ([99, 9, 12, 8, 12, 8], 4),  # a sawtooth after a single fall
    ],
)
def test_repeated_falls(levels: list[int], fall: int) -> None:
    assert repeated_fall(levels) == fall


def test_soon_begins_at_four_hours_and_ends_at_five() -> None:
    hours = 3_600.0
    assert not is_soon(None, was_soon=True)
    assert is_soon(4 * hours, was_soon=False)
    assert not is_soon(4.1 * hours, was_soon=False)
    assert is_soon(4.9 * hours, was_soon=True)
    assert not is_soon(5.1 * hours, was_soon=True)


@given(
    per_s=st.integers(1, 500 * MB),
    used=st.integers(0, SIZE // 2),
    minutes=st.integers(2, 90),
)
def test_a_line_is_forecast_exactly(per_s: int, used: int, minutes: int) -> None:
    times = range(0, 60 * minutes + 1, 10)[-361:]
    last = disk_forecast([sample(at_s, used + per_s * at_s) for at_s in times], DiskForecast())
    left_s = max(SIZE - used - per_s * 60 * minutes, 0) / per_s
    if left_s > FULL_IN_S_MAX:
        assert last.filling is Filling.NOT_FILLING
    else:
        assert last.filling is Filling.FILLING
        assert last.full_in_s == pytest.approx(left_s, rel=1e-6, abs=1.0)


@settings(max_examples=20)
@given(seed=st.integers(0, 1_000), period=st.integers(2, 90))
def test_a_period_that_repeats_itself_gets_no_forecast(seed: int, period: int) -> None:
    """Any shape with at least four repetitions within the hour, and one fall in each at least."""
    rng = random.Random(seed)
    shape = [rng.randrange(10_000 * MB) for _ in range(period)]
    if len(set(shape)) == 1:
        return
    said = forecasts(lambda at_s: shape[round(at_s / 10) % period], 2 * 3_600)
    found = said[-1]
    if found.amplitude_bytes * 5 // 4 >= max(shape) - min(shape):
        assert all(one.full_in_s is None for one in said[-360:])


@given(
    levels=st.lists(st.integers(0, SIZE), min_size=13, max_size=60),
    extra=st.integers(0, SIZE),
)
def test_more_room_is_never_full_earlier(levels: list[int], extra: int) -> None:
    samples = [sample(10 * at, level) for at, level in enumerate(levels)]
    roomier = [one._replace(room_bytes=one.room_bytes + extra) for one in samples]
    found = disk_forecast(samples, DiskForecast())
    later = disk_forecast(roomier, DiskForecast())
    assert found.full_in_s is None or found.full_in_s >= 0
    if found.full_in_s is not None and later.full_in_s is not None:
        assert later.full_in_s >= found.full_in_s
    assert later.full_in_s is None or found.full_in_s is not None
