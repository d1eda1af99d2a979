"""Which entries retention releases, and which whole ledgers go."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import MIB, MS_PER_S, S_PER_MINUTE
from headgate.flow.retention import (
    RECHECK_MS,
    OldestLedger,
    next_look_ms,
    releasable_end,
    trimmable_end,
)

MINUTE_MS = S_PER_MINUTE * MS_PER_S


class Entries:
    """Entries with a receive time and a size each; the first ones may be trimmed."""

    def __init__(self, received_ms: list[int], sizes: list[int], first: int = 0) -> None:
        self.first, self.end = first, len(sizes)
        self._received_ms = received_ms
        self._sums = [0, *accumulate(sizes)]

    def ordinal_received_at_or_after(self, received_ms: int) -> int:
        return max(bisect_left(self._received_ms, received_ms), self.first)

    def ordinal_with_bytes_before(self, size_bytes: int, first: int, stop: int) -> int:
        return first + bisect_left(self._sums[first:stop], size_bytes)

    def received_ms(self, ordinal: int) -> int:
        return self._received_ms[ordinal]

    def bytes_before(self, ordinal: int) -> int:
        return self._sums[ordinal]


@pytest.mark.parametrize(
    ("minutes", "megabytes", "end"),
    [
        pytest.param(0, 0, 4, id="nothing is kept"),
        pytest.param(0, -1, 4, id="no time at all"),
        pytest.param(-1, 0, 4, id="no bytes at all"),
        pytest.param(-1, -1, 0, id="everything is kept"),
        pytest.param(2, -1, 2, id="by time, both ends included"),
        pytest.param(-1, 3, 2, id="by size"),
        pytest.param(-1, 9, 0, id="less than the size"),
        pytest.param(9, 9, 0, id="younger and less"),
        pytest.param(2, 4, 2, id="time first"),
        pytest.param(9, 1, 4, id="size first, up to the acknowledged end"),
    ],
)
def test_either_bound_releases_acknowledged_entries(minutes: int, megabytes: int, end: int) -> None:
    entries = Entries([0, 60_000, 120_000, 130_000, 140_000], [MIB] * 5)
    time_ms = minutes * MINUTE_MS if minutes >= 0 else -1
    size_bytes = megabytes * MIB if megabytes >= 0 else -1
    assert releasable_end(entries, 4, time_ms, size_bytes, 180_000) == end
    assert releasable_end(entries, 1, time_ms, size_bytes, 180_000) == min(end, 1)


def test_a_time_bound_of_zero_does_not_depend_on_the_clock() -> None:
    assert releasable_end(Entries([10_000_000], [1]), 1, 0, -1, log_ms=5) == 1


@given(data=st.data(), sizes=st.lists(st.integers(1, 9), max_size=12))
def test_an_entry_is_released_if_it_is_acknowledged_and_over_a_bound(
    data: st.DataObject, sizes: list[int]
) -> None:
    count = len(sizes)
    received = sorted(data.draw(st.lists(st.integers(0, 50), min_size=count, max_size=count)))
    first = data.draw(st.integers(0, count))
    acknowledged = data.draw(st.integers(first, count))
    time_ms, size_bytes = data.draw(st.integers(-1, 60)), data.draw(st.integers(-1, 120))
    log_ms = data.draw(st.integers(0, 60)) + (received[-1] if received else 0)
    entries = Entries(received, sizes, first)

    def is_released(ordinal: int) -> bool:
        too_old = time_ms == 0 or (time_ms > 0 and log_ms - received[ordinal] >= time_ms)
        # The entries after it fill the bound without it.
        over_size = size_bytes == 0 or (size_bytes > 0 and sum(sizes[ordinal + 1 :]) >= size_bytes)
        return ordinal < acknowledged and (too_old or over_size)

    end = releasable_end(entries, acknowledged, time_ms, size_bytes, log_ms)
    assert [is_released(ordinal) for ordinal in range(first, count)] == [
        ordinal < end for ordinal in range(first, count)
    ]


@given(
    lengths=st.lists(st.integers(1, 5), max_size=6), first=st.integers(0, 3), end=st.integers(0, 30)
)
def test_only_whole_ledgers_are_trimmed(lengths: list[int], first: int, end: int) -> None:
    ends = [first + total for total in accumulate(lengths)]
    found = trimmable_end(first, ends, end)
    assert found in (first, *ends)
    assert found == max([first, *(each for each in ends if each <= end)])


NOW_MS = 180_000
CLOSED = OldestLedger(0, 3, None)
OPEN = OldestLedger(0, 5, 400_000)


@pytest.mark.parametrize(
    ("ledger", "acknowledged_end", "bounds", "is_acknowledged", "due_ms"),
    [
        pytest.param(CLOSED, 0, (MINUTE_MS, -1), True, None, id="an acknowledgement"),
        pytest.param(CLOSED, 2, (MINUTE_MS, -1), True, None, id="the ledger's last one"),
        pytest.param(CLOSED, 3, (MINUTE_MS, -1), True, 180_000, id="the time of its last entry"),
        pytest.param(CLOSED, 5, (9 * MINUTE_MS, -1), True, 660_000, id="a longer time"),
        pytest.param(CLOSED, 5, (-1, -1), True, None, id="nothing ever"),
        pytest.param(CLOSED, 5, (-1, MIB), True, NOW_MS + RECHECK_MS, id="what is published"),
        pytest.param(OPEN, 5, (9 * MINUTE_MS, -1), True, 540_000, id="the time of its first entry"),
        pytest.param(OPEN, 5, (9 * MINUTE_MS, MIB), True, NOW_MS + RECHECK_MS, id="time or size"),
        pytest.param(OPEN, 5, (0, 0), False, 400_000, id="the end of the ledger"),
        pytest.param(OPEN, 5, (9 * MINUTE_MS, -1), False, 540_000, id="its end and the time"),
        pytest.param(OPEN, 5, (0, 0), True, NOW_MS + RECHECK_MS, id="a reader"),
        pytest.param(OPEN, 0, (0, 0), True, None, id="an acknowledgement in an open ledger"),
    ],
)
def test_what_releases_the_oldest_ledger_next(
    ledger: OldestLedger,
    acknowledged_end: int,
    bounds: tuple[int, int],
    is_acknowledged: bool,
    due_ms: int | None,
) -> None:
    entries = Entries([0, 60_000, 120_000, 130_000, 140_000], [MIB] * 5)
    found = next_look_ms(
        entries, ledger, acknowledged_end, *bounds, NOW_MS, is_acknowledged=is_acknowledged
    )
    assert found == due_ms
