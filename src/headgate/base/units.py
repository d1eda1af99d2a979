"""Named numbers: units of time and size, and the bounds of Java integers."""

from __future__ import annotations

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
US_PER_MS = 1_000
MS_PER_S = 1_000
S_PER_MINUTE = 60
S_PER_HOUR = 3_600
S_PER_DAY = 86_400
MS_PER_MINUTE = S_PER_MINUTE * MS_PER_S
NS_PER_MINUTE = S_PER_MINUTE * NS_PER_S
NS_PER_HOUR = 60 * NS_PER_MINUTE

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
STAT_BLOCK_BYTES = 512
"""The unit of ``st_blocks``, whatever the file system."""

PORT_MAX = 65_535

INT32_MAX = (1 << 31) - 1
"""The largest Java int: many of Pulsar's settings, rates and permits are."""

INT64_MAX = (1 << 63) - 1
"""Pulsar's ids, rates and counters are Java longs; this is the largest."""

DOUBLE_EXACT_MAX = 1 << 53
"""Whole numbers up to this are exact in a 64-bit float."""

UINT64_MASK = (1 << 64) - 1


def safe_sum(count: int, *increments: int) -> int:
    """Add to a counter that restarts before it exceeds a Java ``long`` (PIP-406)."""
    for increment in increments:
        count = increment if INT64_MAX - count < increment else count + increment
    return count
