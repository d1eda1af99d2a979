"""The downsampling of the history: of the points in a bucket of time, only the first is kept.

Buckets are one second long for 10 s, five seconds for a minute, a minute for ten minutes, and five
minutes for an hour. All values in a point are cumulative, so longer buckets lose resolution, never
amounts.
"""

from __future__ import annotations

from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S

THIN_EVERY_POINTS = 16
"""A track thins out its points each time that their number is a multiple of this."""

FEW_POINTS = 8
"""A track that is to keep few points drops every second one when it has more."""

_BUCKETS_NS = (
    (10 * NS_PER_S, 1),
    (NS_PER_MINUTE + 5 * NS_PER_S, 5 * NS_PER_S),
    (10 * NS_PER_MINUTE, NS_PER_MINUTE),
    (NS_PER_HOUR + 5 * NS_PER_MINUTE, 5 * NS_PER_MINUTE),
)
"""(Age up to which it applies, length of a bucket). Each length divides the next, so that the first
point of a long bucket was the first of a shorter one and is still there."""


def bucket_of(age_ns: int, at_ns: int) -> tuple[int, int] | None:
    """The bucket of a point by its age, as its length and number; None for a point that is too old
    to be kept."""
    for until_ns, length_ns in _BUCKETS_NS:
        if age_ns < until_ns:
            return length_ns, at_ns // length_ns
    return None
