"""What a static and an adaptive publish limit allow together: the tighter of the two (law 3.3)."""

from __future__ import annotations

from headgate.flow.limits.rate_limit import Dimension, RateLimit


def tighter(one: RateLimit | None, other: RateLimit | None) -> RateLimit | None:
    """What two limits over one second allow together: as they count the same messages, the tighter
    one in each dimension is all that can bind (law 3.3)."""
    if one is None or other is None:
        return one or other
    return RateLimit(
        messages=_least(one.messages, other.messages), bytes=_least(one.bytes, other.bytes)
    )


def is_tighter(limit: RateLimit, other: RateLimit | None, dimension: Dimension) -> bool:
    """Whether of a dimension that is limited ``limit`` is what binds."""
    others = None if other is None else other.amount(dimension)
    amount = limit.amount(dimension)
    return others is None or (amount is not None and amount < others)


def _least(one: int | None, other: int | None) -> int | None:
    return min((amount for amount in (one, other) if amount is not None), default=None)
