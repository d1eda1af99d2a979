"""Units, so that no bare power of ten stands in the code."""

from __future__ import annotations

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
US_PER_MS = 1_000
MS_PER_S = 1_000
S_PER_MINUTE = 60

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

INT64_MAX = (1 << 63) - 1
"""Pulsar's ids, rates and counters are Java longs; this is the largest."""

UINT64_MASK = (1 << 64) - 1
