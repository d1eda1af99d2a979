"""REST, enforcement and stats get the same answer from one resolver."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.engine.delayed_entries import never_delayed
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import NO_QUOTAS
from headgate.metadata.policies import BacklogQuota, DispatchRate, PublishRate, Retention
from headgate.policy.quota_table import NOT_LIMITED
from headgate.policy.rate_policies import dispatch_policy, dispatch_rate, publish_policy
from tests.unit.engine.harness import FakeEffects, FakeLog
from tests.unit.policy.rig import NAME, SYSTEM, Rig, rate

AMOUNTS = st.integers(-1, 3)
DISPATCH = st.none() | st.builds(rate, AMOUNTS, AMOUNTS)
PUBLISH = st.none() | st.builds(PublishRate, AMOUNTS, AMOUNTS)


def load(rig: Rig, *, is_system: bool = False) -> Topic:
    """The topic on an engine that enforces what the resolver says."""
    resolver = rig.resolver
    engine = Engine(
        FakeEffects(),
        policies=resolver.of_engine(never_delayed),
    )
    return engine.load_topic(SYSTEM if is_system else NAME, FakeLog(1), is_system=is_system)


@given(topic=DISPATCH, namespace=DISPATCH, own=DISPATCH)
def test_the_dispatch_rate_that_rest_shows_is_enforced(
    topic: DispatchRate | None, namespace: DispatchRate | None, own: DispatchRate | None
) -> None:
    rig = Rig()
    make, catalog = rig.make, rig.catalog
    make(catalog.plan_topic_policies(NAME, dispatch_rate=topic, subscription_dispatch_rate=topic))
    make(catalog.plan_subscription_rate(NAME, "s", own))
    make(catalog.plan_namespace_policies(NAME.namespace, dispatch_rate=namespace))
    live = load(rig)
    for subscription in (None, "s"):
        shown = (
            rig.resolver.applied_dispatch_rate(NAME)
            if subscription is None
            else rig.resolver.applied_subscription_rate(NAME, subscription)
        )
        policy = dispatch_policy(shown)
        assert policy is not None
        assert rig.resolver.applied_dispatch_limit(live, subscription) == policy.limit()


@given(topic=PUBLISH, namespace=PUBLISH)
def test_the_publish_rate_that_rest_shows_is_enforced(
    topic: PublishRate | None, namespace: PublishRate | None
) -> None:
    rig = Rig()
    rig.publish_on_topic(topic)
    rig.publish_on_namespace(namespace)
    policy = publish_policy(rig.resolver.applied_publish_rate(NAME))
    enforced = rig.resolver.applied_publish_limit(load(rig))
    assert enforced == (None if policy is None else policy.limit())


@pytest.mark.parametrize("is_checked", [True, False])
def test_stats_show_quotas_also_while_they_are_not_enforced(is_checked: bool) -> None:
    rig = Rig()
    rig.settings.backlogQuotaCheckEnabled = is_checked
    quota = BacklogQuota("producer_exception", limit_size=10)
    quotas = {"destination_storage": quota}
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, backlog_quotas=quotas))
    live, of_name = load(rig), rig.resolver.quotas.of_topic(NAME)
    assert of_name.size is not None
    assert rig.resolver.applied_quotas(NAME)["destination_storage"] == quota
    assert rig.resolver.shown_quotas(live) == of_name
    assert rig.resolver.enforced_quotas(live) == (of_name if is_checked else NO_QUOTAS)


def test_a_system_topic_has_neither_limits_nor_quotas() -> None:
    rig = Rig()
    for name, value in (
        ("dispatchThrottlingRatePerTopicInMsg", "1"),
        ("dispatchThrottlingRatePerSubscriptionInMsg", "1"),
        ("maxPublishRatePerTopicInMessages", "1"),
        ("backlogQuotaDefaultLimitBytes", "1"),
    ):
        rig.settings.set(name, value)
    resolver, live = rig.resolver, load(rig, is_system=True)
    assert resolver.applied_dispatch_rate(SYSTEM) == dispatch_rate(None)
    assert resolver.applied_subscription_rate(SYSTEM, "s") == dispatch_rate(None)
    assert resolver.applied_publish_rate(SYSTEM) is None
    assert resolver.applied_quotas(SYSTEM) == NOT_LIMITED
    assert resolver.applied_dispatch_limit(live, None) is None
    assert resolver.applied_dispatch_limit(live, "s") is None
    assert resolver.applied_publish_limit(live) is None
    assert resolver.shown_quotas(live) == resolver.enforced_quotas(live) == NO_QUOTAS
    assert resolver.applied_retention(SYSTEM) != Retention()
