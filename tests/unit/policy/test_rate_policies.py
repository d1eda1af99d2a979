"""Stored rates as the law reads them, and back."""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.flow.limits.precedence import RatePolicy
from headgate.flow.limits.rate_limit import RateLimit
from headgate.metadata.policies import DispatchRate, PublishRate
from headgate.policy.rate_policies import (
    dispatch_policy,
    dispatch_rate,
    publish_policy,
    publish_rate,
)
from tests.unit.policy.rig import UNLIMITED, rate


def test_a_stored_rate_as_the_law_reads_it() -> None:
    assert dispatch_policy(None) is None
    assert dispatch_policy(rate(5, 6, 7)) == RatePolicy(messages=5, bytes=6, period_s=7)


def test_rest_shows_the_dispatch_rate_that_was_set() -> None:
    for stored in (rate(5, 6, 7), rate(period=-3), DispatchRate(unlimited=True)):
        assert dispatch_rate(dispatch_policy(stored)) == stored
    relative = DispatchRate(1, 2, relative_to_publish_rate=True)
    assert dispatch_rate(dispatch_policy(relative)) == relative
    assert dispatch_rate(None) == DispatchRate(rate_period_in_second=1)


def test_a_publish_limit_counts_over_a_second_and_is_plain() -> None:
    policy = publish_policy(PublishRate(5, 6))
    assert policy == RatePolicy(messages=5, bytes=6)
    assert policy.limit() == RateLimit(5, 6, NS_PER_S, relative=False)
    assert publish_policy(None) is None


def test_rest_shows_the_publish_rate_that_was_set() -> None:
    for stored in (PublishRate(5, 6), PublishRate(5), UNLIMITED):
        assert publish_rate(publish_policy(stored)) == stored
    assert publish_rate(None) is None
