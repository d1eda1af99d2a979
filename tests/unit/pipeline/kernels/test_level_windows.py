"""Windows of levels: their length, their starts, and missing minutes."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.pipeline.kernels.breach import WINDOW_MINUTES
from headgate.pipeline.kernels.level_windows import (
    TopicMinutes,
    sample_counts,
    trailing_windows,
    window_starts,
)

NS = 1_000_000_000
FIRST = 29_000_000


def minutes_of(
    topics: list[int], minutes: list[int], anew: tuple[int, ...] = (), late_s: int = 0
) -> TopicMinutes:
    """Rows of some topics, taken ``late_s`` before the ends of their minutes."""
    minute = FIRST + np.array(minutes, dtype=np.int64)
    flags = np.isin(np.arange(len(minutes)), anew)
    return TopicMinutes(np.array(topics), minute, (minute + 1) * 60 * NS - late_s * NS, flags)


def test_a_window_is_an_hour_of_its_topic() -> None:
    rows = minutes_of([1] * 70 + [2] * 5, [*range(70), *range(70, 75)])
    levels = np.ones(75)
    starts = window_starts(rows, levels)
    assert starts[:62].tolist() == [0] * WINDOW_MINUTES + [1, 2]
    assert starts[70:].tolist() == [70] * 5
    assert sample_counts(levels, starts)[[0, 59, 69, 70, 74]].tolist() == [1, 60, 60, 1, 5]


def test_missing_minutes_are_nan() -> None:
    rows = minutes_of([1] * 4, [0, 1, 30, 61], late_s=10)
    levels = np.array([1.0, 2.0, np.nan, 4.0])
    starts = window_starts(rows, levels)
    assert starts.tolist() == [0, 0, 0, 2]
    assert sample_counts(levels, starts).tolist() == [1, 2, 0, 1]
    times_s, values = trailing_windows(rows, levels, np.array([1, 3]), starts)
    assert times_s.shape == values.shape == (2, WINDOW_MINUTES)
    assert np.flatnonzero(~np.isnan(values[0])).tolist() == [58, 59]
    assert values[0, -2:].tolist() == [1.0, 2.0]
    assert np.flatnonzero(~np.isnan(values[1])).tolist() == [59]
    assert times_s[0].tolist() == [60.0 * (i - 59) for i in range(WINDOW_MINUTES)]


def test_times_are_those_of_the_rows() -> None:
    rows = TopicMinutes(
        np.array([1, 1]),
        np.array([FIRST, FIRST + 1]),
        np.array([FIRST * 60 * NS + 50 * NS, FIRST * 60 * NS + 70 * NS]),
        np.zeros(2, dtype=np.bool_),
    )
    times_s, _ = trailing_windows(rows, np.ones(2), np.array([1]), np.zeros(2, dtype=np.int64))
    assert times_s[0, -2:].tolist() == [-20.0, 0.0]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([10.0, 5.0, 6.0], [0, 0, 0]),  # by half, not more
        ([10.0, 4.9, 6.0], [0, 1, 1]),
        ([10.0, np.nan, 4.0], [0, 0, 0]),  # not from one sample to the next
        ([10.0, 0.0, 0.0], [0, 1, 1]),
        ([0.0, 0.0, 9.0], [0, 0, 0]),
    ],
)
def test_a_cleared_level_starts_a_new_window(levels: list[float], expected: list[int]) -> None:
    rows = minutes_of([1, 1, 1], [0, 1, 2])
    assert window_starts(rows, np.array(levels)).tolist() == expected


def test_evictions_and_restarts_start_a_new_window() -> None:
    rows = minutes_of([1] * 6, list(range(6)), anew=(2, 4))
    assert window_starts(rows, np.ones(6)).tolist() == [0, 0, 2, 2, 4, 4]


def test_other_incarnations_are_other_topics() -> None:
    rows = minutes_of([1, 1, 2, 2], [0, 1, 2, 3])
    assert window_starts(rows, np.ones(4)).tolist() == [0, 0, 2, 2]


def test_no_rows_have_no_window() -> None:
    rows = minutes_of([], [])
    starts = window_starts(rows, np.zeros(0))
    assert len(starts) == len(sample_counts(np.zeros(0), starts)) == 0
    assert trailing_windows(rows, np.zeros(0), np.zeros(0, np.int64), starts)[1].shape == (
        0,
        WINDOW_MINUTES,
    )
