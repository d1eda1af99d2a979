"""Points of a history, and their packed form."""

from __future__ import annotations

from dataclasses import replace

from headgate.base.units import INT64_MAX, NS_PER_S
from headgate.explain.points import at_ns_of, changed_levels, decode, encode, limits_hash
from headgate.flow.limits.rate_limit import Level, RateLimit
from tests.unit.explain.made_points import point

NO_LIMITS = (None, None, None)


def test_a_packed_point_comes_back() -> None:
    packed = encode(point(3, appended=2**50, limits=2**62, age_s=5))
    assert decode(packed) == point(3, appended=2**50, limits=2**62, age_s=5)
    assert at_ns_of(packed) == point(3).at_ns


def test_a_count_beyond_63_bits_stays_there() -> None:
    """It ended each round in which topics are observed, so the others had no history."""
    packed = encode(point(3, skipped=1 << 70, rewound=1 << 63, acked=7))
    assert decode(packed) == point(3, skipped=INT64_MAX, rewound=INT64_MAX, acked=7)


def test_a_limit_leaves_a_mark_at_its_level() -> None:
    some, more = (RateLimit(messages=at, bytes=None, period_ns=NS_PER_S) for at in (50, 60))
    assert limits_hash(NO_LIMITS) == 0
    marked = [
        replace(point(3), limits=limits_hash(limits))
        for limits in (NO_LIMITS, (None, some, None), (None, some, some), (None, more, None))
    ]
    assert changed_levels(marked[0], marked[0]) == frozenset()
    assert changed_levels(marked[0], marked[1]) == {Level.TOPIC}
    assert changed_levels(marked[1], marked[2]) == {Level.BROKER}
    assert changed_levels(marked[2], marked[3]) == {Level.TOPIC, Level.BROKER}
