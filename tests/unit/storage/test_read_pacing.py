"""How much of a backlog comes at once, beside publishes and without."""

from __future__ import annotations

import pytest

from headgate.storage.read_pacing import ALONE, BURST, BURST_NS, QUIET_NS, STREAM, Slice, next_slice


@pytest.mark.parametrize(
    ("quiet_ns", "busy_ns", "expected"),
    [
        (0, 0, BURST),
        (QUIET_NS - 1, BURST_NS - 1, BURST),
        (0, BURST_NS, STREAM),
        (QUIET_NS, 0, ALONE),
        (QUIET_NS, BURST_NS, ALONE),
    ],
)
def test_the_longer_and_the_more_alone_the_quicker(
    quiet_ns: int, busy_ns: int, expected: Slice
) -> None:
    assert next_slice(quiet_ns, busy_ns) == expected


def test_only_a_burst_rests() -> None:
    assert BURST.pause_s > 0 == STREAM.pause_s == ALONE.pause_s
    assert BURST.entries_max < STREAM.entries_max < ALONE.entries_max
