"""Buckets of a minute: what falls in which, and what is shown when."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_MS
from headgate.engine.write_histograms import (
    LATENCY_BOUNDS_NS,
    NO_WRITES,
    PERIOD_NS,
    SIZE_BOUNDS_BYTES,
    RecentWrites,
    WriteHistograms,
    count_latency,
    count_sizes,
)


def sizes_counted(*sizes: int) -> list[int]:
    counts = [0] * (len(SIZE_BOUNDS_BYTES) + 1)
    count_sizes(counts, list(sizes))
    return counts


def test_a_bound_belongs_to_its_bucket() -> None:
    assert sizes_counted(128) == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert sizes_counted(129) == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert sizes_counted(1_048_576, 1_048_577, 102_400) == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    counts = [0] * (len(LATENCY_BOUNDS_NS) + 1)
    for took_ns in (0, NS_PER_MS // 2, NS_PER_MS // 2 + 1, 1_000 * NS_PER_MS, 1_001 * NS_PER_MS):
        count_latency(counts, took_ns, 3)
    assert counts == [6, 3, 0, 0, 0, 0, 0, 0, 3, 3]


@given(st.lists(st.integers(1, 2 << 20) | st.sampled_from(SIZE_BOUNDS_BYTES), min_size=1))
def test_counting_many_at_once_is_counting_each(sizes: list[int]) -> None:
    expected = [0] * (len(SIZE_BOUNDS_BYTES) + 1)
    for size in sizes:
        expected[bisect_left(SIZE_BOUNDS_BYTES, size)] += 1
    assert sizes_counted(*sizes) == expected


def test_what_is_shown_is_the_last_whole_period() -> None:
    begin_ns = 7 * PERIOD_NS
    writes = RecentWrites(begin_ns)
    writes.current(begin_ns).sizes[0] += 5
    writes.current(begin_ns + PERIOD_NS - 1).sizes[0] += 1
    assert writes.last(begin_ns + PERIOD_NS - 1) is NO_WRITES
    assert writes.last(begin_ns + PERIOD_NS).entries == 6
    writes.current(begin_ns + PERIOD_NS + 1).sizes[2] += 2
    assert writes.last(begin_ns + 2 * PERIOD_NS - 1).entries == 6
    assert writes.last(begin_ns + 2 * PERIOD_NS).sizes[2] == 2


def test_after_a_period_without_writes_nothing_is_shown() -> None:
    writes = RecentWrites(0)
    writes.current(0).sizes[0] += 5
    assert writes.last(2 * PERIOD_NS).entries == 0
    writes.current(2 * PERIOD_NS).sizes[0] += 1
    assert writes.last(5 * PERIOD_NS).entries == 0
    assert NO_WRITES.entries == 0


def test_sums_are_shown_in_microseconds() -> None:
    figures = WriteHistograms()
    figures.latency_ns, figures.storage_ns = 1_234_567, 999
    assert (figures.latency_us, figures.storage_us) == (1_234, 0)
