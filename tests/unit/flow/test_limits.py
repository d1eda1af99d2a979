"""Which limit is in force and where it is set."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.base.units import INT64_MAX, NS_PER_S
from headgate.flow.limits import (
    DISPATCH_KEYS,
    PUBLISH_KEYS,
    Dimension,
    EffectiveLimit,
    Level,
    PerSecond,
    RateKeys,
    RateLimit,
    RatePolicy,
    effective_limit,
    is_lower,
    is_tighter,
    tighter,
)


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


@pytest.mark.parametrize(
    ("policy", "limit"),
    [
        (RatePolicy(10, 20), RateLimit(10, 20)),
        (RatePolicy(10, -1), RateLimit(10, None)),
        (RatePolicy(0, 20, 6), RateLimit(None, 20, 6 * NS_PER_S)),
        (RatePolicy(10, 0, -3), RateLimit(10, None)),
        (RatePolicy(-1, 0), None),
    ],
)
def test_normalisation(policy: RatePolicy, limit: RateLimit | None) -> None:
    assert policy.limit() == limit


def test_the_most_specific_policy_wins_as_a_whole() -> None:
    policies = {
        "subscription_policy": RatePolicy(1, 0),
        "topic_policy": RatePolicy(0, 2),
        "namespace_policy": RatePolicy(3, 3),
    }
    expected = [
        (RateLimit(1, None), "subscription policy"),
        (RateLimit(None, 2), "topic policy"),
        (RateLimit(3, 3), "namespace policy acme/ns"),
        (RateLimit(4, None), "broker setting dispatchThrottlingRatePerSubscriptionInMsg"),
    ]
    for limit, source in expected:
        found = effective_limit(
            DISPATCH_KEYS[Level.SUBSCRIPTION], namespace="acme/ns", broker_messages=4, **policies
        )
        assert (found.limit, found.source) == (limit, source)
        if policies:
            first = next(iter(policies))
            # Both rates <= 0 say nothing: the next level applies, as in Pulsar.
            policies[first] = RatePolicy(-1, 0)
            again = effective_limit(
                DISPATCH_KEYS[Level.SUBSCRIPTION],
                namespace="acme/ns",
                broker_messages=4,
                **policies,
            )
            assert again != found
            del policies[first]


@pytest.mark.parametrize(
    ("keys", "messages_key", "bytes_key"),
    [
        (
            DISPATCH_KEYS[Level.SUBSCRIPTION],
            "dispatchThrottlingRatePerSubscriptionInMsg",
            "dispatchThrottlingRatePerSubscriptionInByte",
        ),
        (
            DISPATCH_KEYS[Level.TOPIC],
            "dispatchThrottlingRatePerTopicInMsg",
            "dispatchThrottlingRatePerTopicInByte",
        ),
        (
            DISPATCH_KEYS[Level.BROKER],
            "dispatchThrottlingRateInMsg",
            "dispatchThrottlingRateInByte",
        ),
        (
            PUBLISH_KEYS[Level.TOPIC],
            "maxPublishRatePerTopicInMessages",
            "maxPublishRatePerTopicInBytes",
        ),
        (
            PUBLISH_KEYS[Level.BROKER],
            "brokerPublisherThrottlingMaxMessageRate",
            "brokerPublisherThrottlingMaxByteRate",
        ),
    ],
)
def test_broker_settings_are_named_by_dimension(
    keys: RateKeys, messages_key: str, bytes_key: str
) -> None:
    found = effective_limit(keys, broker_messages=1, broker_bytes=2)
    assert found.limit == RateLimit(1, 2)
    assert found.source == f"broker setting {messages_key} and {bytes_key}"
    assert found.source_of(Dimension.MESSAGES) == f"broker setting {messages_key}"
    assert found.source_of(Dimension.BYTES) == f"broker setting {bytes_key}"
    only = effective_limit(keys, broker_bytes=2)
    assert only.source_of(Dimension.BYTES) == f"broker setting {bytes_key}"
    assert effective_limit(keys) == EffectiveLimit(None, "")


def test_unlimited_ends_the_search() -> None:
    """Rule 1.8: what is set as unlimited has no limit, whatever stands behind it."""
    found = effective_limit(
        DISPATCH_KEYS[Level.TOPIC],
        topic_policy=RatePolicy(unlimited=True),
        namespace_policy=RatePolicy(3, 3),
        broker_messages=4,
    )
    assert (found.limit, found.source) == (None, "topic policy")


def test_a_relative_limit_comes_on_top_of_what_is_published() -> None:
    """Rule 1.7: per dimension, and over the limit's own period."""
    limit = RatePolicy(200, 1_000, 10, relative=True).limit()
    assert limit is not None
    now = limit.over(PerSecond(50.0, 70_000.4))
    assert (now.messages, now.bytes, now.period_ns) == (700, 701_004, 10 * NS_PER_S)
    assert now.base == limit
    assert not now.relative
    one = RateLimit(200, None, relative=True)
    assert one.over(PerSecond(50.0, 70_000.0)).bytes is None
    assert one.over(PerSecond(2.0**70, 0.0)).messages == INT64_MAX


def test_a_plain_limit_is_the_same_over_any_rate() -> None:
    limit = RateLimit(200, None)
    assert limit.over(PerSecond(50.0, 1.0)) is limit


def test_the_broker_settings_are_relative_as_a_whole() -> None:
    found = effective_limit(DISPATCH_KEYS[Level.TOPIC], broker_messages=5, broker_relative=True)
    assert found.limit == RateLimit(5, None, relative=True)


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


def test_the_lower_limit_lets_less_through() -> None:
    """The first dimension in which two differ decides; no limit is the highest of all."""
    ten, hundred = RateLimit(10, None), RateLimit(100, 5)
    assert is_lower(ten, hundred)
    assert not is_lower(hundred, ten)
    assert not is_lower(ten, ten)
    assert is_lower(RateLimit(10, 5), ten)
    assert is_lower(ten, RateLimit(None, 5))
    assert not is_lower(RateLimit(10, None, NS_PER_S), RateLimit(20, None, 2 * NS_PER_S))
