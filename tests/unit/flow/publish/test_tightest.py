"""What a static and an adaptive publish limit allow together."""

from __future__ import annotations

from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.flow.publish.tightest import is_tighter, tighter


def test_the_tighter_of_two_limits() -> None:
    """Rule 3.3: in each dimension by itself."""
    five = RateLimit(messages=5, bytes=None)
    assert tighter(None, None) is None
    assert tighter(five, None) == tighter(None, five) == five
    assert tighter(RateLimit(5, 100), RateLimit(None, 70)) == RateLimit(5, 70)
    assert is_tighter(five, None, Dimension.MESSAGES)
    assert is_tighter(five, RateLimit(6, None), Dimension.MESSAGES)
    assert not is_tighter(five, five, Dimension.MESSAGES)
    assert not is_tighter(five, RateLimit(6, 70), Dimension.BYTES)
