"""Counters that Java clients read."""

from __future__ import annotations

from headgate.base.units import INT64_MAX


def safe_sum(count: int, *increments: int) -> int:
    """A counter that begins anew before it is more than a Java ``long`` holds (PIP-406)."""
    for increment in increments:
        count = increment if INT64_MAX - count < increment else count + increment
    return count
