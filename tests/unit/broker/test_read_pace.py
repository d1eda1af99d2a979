"""How much of a backlog comes at once, beside how much is published."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.broker.read_pace import (
    QUIET_NS,
    REST_S,
    SLICE_ENTRIES,
    SLICE_ENTRIES_MAX,
    TIMES_WRITTEN,
    Slice,
    next_slice,
)


def test_a_few_publishes_meet_small_slices_with_rests() -> None:
    assert next_slice(0, 0, 1) == Slice(SLICE_ENTRIES, 256 * 1024, REST_S)
    assert next_slice(3, QUIET_NS - 1, 1).entries_max == SLICE_ENTRIES + 3 * TIMES_WRITTEN


def test_nobody_publishes_and_nothing_rests() -> None:
    assert next_slice(0, QUIET_NS, 1) == Slice(SLICE_ENTRIES_MAX, 2 * 1024 * 1024, 0.0)


@given(st.integers(0, 120_000), st.integers(1, 16))
def test_every_reader_gains_on_what_is_published(publish_per_s: int, readers: int) -> None:
    """Up to what the largest slices can carry."""
    written = int(publish_per_s * REST_S)
    entries_max = next_slice(written, 0, readers).entries_max
    read_per_s = entries_max / REST_S / readers
    assert read_per_s > publish_per_s or entries_max == SLICE_ENTRIES_MAX


@given(st.integers(0, 10**9), st.integers(0, 10 * NS_PER_S), st.integers(1, 16))
def test_a_slice_is_bounded(written: int, quiet_ns: int, readers: int) -> None:
    found = next_slice(written, quiet_ns, readers)
    assert SLICE_ENTRIES <= found.entries_max <= SLICE_ENTRIES_MAX
