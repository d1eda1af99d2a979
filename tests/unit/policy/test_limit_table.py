"""Which rate limit is set on each level, and where."""

from __future__ import annotations

import pytest

from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.metadata.policies import DispatchRate, PublishRate
from tests.unit.policy.rig import NAME, PARTITIONED, UNLIMITED, Rig, amounts, rate


def found(rig: Rig) -> tuple[RateLimit | None, str]:
    """The topic's publish limit, and where it is set."""
    effective = rig.resolver.publish_limits.of_topic(NAME)
    return effective.limit, effective.source


# -- dispatch limits -----------------------------------------------------------------------------


def test_nothing_is_limited_at_first() -> None:
    table = Rig().resolver.dispatch_limits
    for effective in (table.of_broker(), table.of_topic(NAME), table.of_subscription(NAME, "s")):
        assert effective.limit is None


def test_the_most_specific_policy_of_a_topic_counts() -> None:
    rig = Rig()
    rig.settings.set("dispatchThrottlingRatePerTopicInMsg", "100")
    messages, size, set_at = amounts(rig.resolver.dispatch_limits.of_topic(NAME))
    assert (messages, size) == (100, None)
    assert "dispatchThrottlingRatePerTopicInMsg" in set_at
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, dispatch_rate=rate(50)))
    assert amounts(rig.resolver.dispatch_limits.of_topic(NAME))[0] == 50
    assert "public/default" in amounts(rig.resolver.dispatch_limits.of_topic(NAME))[2]
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=rate(size=7_000)))
    messages, size, set_at = amounts(rig.resolver.dispatch_limits.of_topic(NAME))
    assert size == 7_000
    assert "topic" in set_at
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=None))
    assert amounts(rig.resolver.dispatch_limits.of_topic(NAME))[0] == 50
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, dispatch_rate=None))
    assert amounts(rig.resolver.dispatch_limits.of_topic(NAME))[0] == 100


def test_the_most_specific_policy_of_a_subscription_counts() -> None:
    rig = Rig()
    catalog, table = rig.catalog, rig.resolver.dispatch_limits
    rig.settings.set("dispatchThrottlingRatePerSubscriptionInByte", "9000")
    assert amounts(table.of_subscription(NAME, "s"))[:2] == (None, 9_000)
    rig.make(catalog.plan_namespace_policies(NAME.namespace, subscription_dispatch_rate=rate(50)))
    assert amounts(table.of_subscription(NAME, "s"))[0] == 50
    rig.make(catalog.plan_topic_policies(NAME, subscription_dispatch_rate=rate(40)))
    assert amounts(table.of_subscription(NAME, "s"))[0] == 40
    rig.make(catalog.plan_subscription_rate(NAME, "s", rate(30)))
    assert amounts(table.of_subscription(NAME, "s"))[0] == 30
    assert amounts(table.of_subscription(NAME, "other"))[0] == 40
    rig.make(catalog.plan_subscription_rate(NAME, "s", None))
    assert amounts(table.of_subscription(NAME, "s"))[0] == 40


def test_levels_do_not_mix() -> None:
    rig = Rig()
    rig.settings.set("dispatchThrottlingRateInMsg", "5")
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=rate(10)))
    assert amounts(rig.resolver.dispatch_limits.of_broker())[0] == 5
    assert amounts(rig.resolver.dispatch_limits.of_topic(NAME))[0] == 10
    assert rig.resolver.dispatch_limits.of_subscription(NAME, "s").limit is None


def test_a_partition_has_the_limits_of_its_topic() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, dispatch_rate=rate(10)))
    rig.make(rig.catalog.plan_subscription_rate(PARTITIONED, "s", rate(3)))
    partition = PARTITIONED.partition_name(1)
    assert amounts(rig.resolver.dispatch_limits.of_topic(partition))[0] == 10
    assert amounts(rig.resolver.dispatch_limits.of_subscription(partition, "s"))[0] == 3


@pytest.mark.parametrize("value", ["0", "-1"])
def test_zero_and_less_are_no_limit(value: str) -> None:
    rig = Rig()
    rig.settings.set("dispatchThrottlingRateInMsg", value)
    assert rig.resolver.dispatch_limits.of_broker().limit is None


# -- publish limits ------------------------------------------------------------------------------


def test_no_publish_limit_is_set_at_first() -> None:
    table = Rig().resolver.publish_limits
    assert table.of_broker() == table.of_topic(NAME) == EffectiveLimit(None, "")


def test_the_most_specific_publish_policy_counts() -> None:
    """Law 1.8, with the names of publish limits."""
    rig = Rig()
    rig.settings.set("maxPublishRatePerTopicInMessages", "100")
    broker = (RateLimit(100, None), "broker setting maxPublishRatePerTopicInMessages")
    assert found(rig) == broker
    rig.publish_on_namespace(PublishRate(50, 5_000))
    namespace = (RateLimit(50, 5_000), "namespace policy public/default")
    assert found(rig) == namespace
    rig.publish_on_topic(PublishRate(-1, 7_000))
    assert found(rig) == (RateLimit(None, 7_000), "topic policy")
    rig.publish_on_topic(PublishRate(0, -1))
    assert found(rig) == namespace
    rig.publish_on_topic(None)
    assert found(rig) == namespace
    rig.publish_on_namespace(None)
    assert found(rig) == broker


@pytest.mark.parametrize("level", ["topic", "namespace"])
def test_unlimited_ends_the_search(level: str) -> None:
    rig = Rig()
    rig.settings.set("maxPublishRatePerTopicInBytes", "100")
    rig.publish_on_namespace(PublishRate(50))
    getattr(rig, f"publish_on_{level}")(UNLIMITED)
    limit, source = found(rig)
    assert limit is None
    assert source.startswith(f"{level} policy")


def test_both_settings_of_the_broker_are_named() -> None:
    rig = Rig()
    for name, value in (
        ("maxPublishRatePerTopicInMessages", "10"),
        ("maxPublishRatePerTopicInBytes", "20"),
        ("brokerPublisherThrottlingMaxMessageRate", "30"),
        ("brokerPublisherThrottlingMaxByteRate", "40"),
    ):
        rig.settings.set(name, value)
    topic, broker = (
        rig.resolver.publish_limits.of_topic(NAME),
        rig.resolver.publish_limits.of_broker(),
    )
    assert (topic.limit, broker.limit) == (RateLimit(10, 20), RateLimit(30, 40))
    assert topic.source == (
        "broker setting maxPublishRatePerTopicInMessages and maxPublishRatePerTopicInBytes"
    )
    assert topic.source_of(Dimension.BYTES) == "broker setting maxPublishRatePerTopicInBytes"
    assert broker.source_of(Dimension.MESSAGES) == (
        "broker setting brokerPublisherThrottlingMaxMessageRate"
    )
    assert broker.source_of(Dimension.BYTES) == (
        "broker setting brokerPublisherThrottlingMaxByteRate"
    )


@pytest.mark.parametrize("value", ["0", "-1"])
def test_zero_and_less_are_no_publish_limit(value: str) -> None:
    rig = Rig()
    for name in ("brokerPublisherThrottlingMaxMessageRate", "maxPublishRatePerTopicInMessages"):
        rig.settings.set(name, value)
    assert rig.resolver.publish_limits.of_broker().limit is None
    assert rig.resolver.publish_limits.of_topic(NAME).limit is None


def test_dispatch_rates_say_nothing_about_publishing() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=DispatchRate(5)))
    rig.settings.set("dispatchThrottlingRatePerTopicInMsg", "5")
    assert found(rig) == (None, "")


def test_a_partition_has_the_publish_limit_of_its_topic() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, publish_rate=PublishRate(10)))
    assert rig.resolver.publish_limits.of_topic(PARTITIONED.partition_name(1)).limit == RateLimit(
        10, None
    )
