"""Counters restart before they exceed what a Java long holds."""

from __future__ import annotations

from headgate.base.units import INT64_MAX, safe_sum


def test_a_sum_that_java_cannot_hold_begins_anew() -> None:
    """As the first form of PIP-406 asks: the new amount is all that is left."""
    assert safe_sum(5, 7) == 12
    assert safe_sum(INT64_MAX - 7, 7) == INT64_MAX
    assert safe_sum(INT64_MAX - 6, 7) == 7
    assert safe_sum(INT64_MAX, INT64_MAX) == INT64_MAX
    assert safe_sum(1, 2, 3) == 6
    assert safe_sum(INT64_MAX, 1, 2) == 3
    assert safe_sum(4) == 4
