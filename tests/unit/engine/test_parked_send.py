"""Where a SEND waits indexes lists of figures."""

from __future__ import annotations

from headgate.engine.parked_send import ParkedAt


def test_the_values_count_from_zero() -> None:
    assert list(ParkedAt) == list(range(len(ParkedAt)))
