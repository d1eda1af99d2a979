"""Rate limits: what is refused, their rates, and limits relative to the publish rate."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.base.units import INT64_MAX, NS_PER_S
from headgate.flow.limits.precedence import RatePolicy
from headgate.flow.limits.rate_limit import Dimension, PerSecond, RateLimit, is_lower


@pytest.mark.parametrize(
    ("messages", "size_bytes", "period_ns"),
    [(0, None, 1), (None, -1, 1), (INT64_MAX + 1, None, 1), (None, None, 1), (1, 1, 0)],
)
def test_what_is_no_limit_is_refused(
    messages: int | None, size_bytes: int | None, period_ns: int
) -> None:
    with pytest.raises(InputError):
        RateLimit(messages, size_bytes, period_ns)


def test_a_limit_by_dimension_and_second() -> None:
    limit = RateLimit(30, None, 60 * NS_PER_S)
    assert limit.amount(Dimension.MESSAGES) == 30
    assert limit.amount(Dimension.BYTES) is None
    assert limit.per_second(Dimension.MESSAGES) == 0.5
    assert limit.per_second(Dimension.BYTES) is None


def test_a_relative_limit_comes_on_top_of_what_is_published() -> None:
    """Rule 1.7: per dimension, and over the limit's own period."""
    limit = RatePolicy(200, 1_000, 10, relative=True).limit()
    assert limit is not None
    now = limit.above(PerSecond(50.0, 70_000.4))
    assert (now.messages, now.bytes, now.period_ns) == (700, 701_004, 10 * NS_PER_S)
    assert now.base == limit
    assert not now.relative
    one = RateLimit(200, None, relative=True)
    assert one.above(PerSecond(50.0, 70_000.0)).bytes is None
    assert one.above(PerSecond(2.0**70, 0.0)).messages == INT64_MAX


def test_a_plain_limit_is_the_same_over_any_rate() -> None:
    limit = RateLimit(200, None)
    assert limit.above(PerSecond(50.0, 1.0)) is limit


def test_the_lower_limit_lets_less_through() -> None:
    """The first dimension in which two differ decides; no limit is the highest of all."""
    ten, hundred = RateLimit(10, None), RateLimit(100, 5)
    assert is_lower(ten, hundred)
    assert not is_lower(hundred, ten)
    assert not is_lower(ten, ten)
    assert is_lower(RateLimit(10, 5), ten)
    assert is_lower(ten, RateLimit(None, 5))
    assert not is_lower(RateLimit(10, None, NS_PER_S), RateLimit(20, None, 2 * NS_PER_S))
