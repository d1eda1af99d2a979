"""What the limits that are set amount to on live topics."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.engine.engine import Engine
from headgate.engine.engine_policies import EnginePolicies
from headgate.engine.topic import Topic
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.metadata.policies import DispatchRate, PublishRate
from headgate.policy.current_limits import CurrentDispatchLimits, CurrentPublishLimits
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.engine.harness import FakeEffects, FakeLog
from tests.unit.policy.rig import NAME, SYSTEM, UNLIMITED, Rig, amounts


def test_limits_by_level() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic, limit=5)
    broker.limit_broker(9)
    own = broker.current_dispatch_limits.limits_of(subscription)
    assert [limit.limit and limit.limit.messages for limit in own] == [5, None, 9]


def test_a_system_topic_has_no_limits() -> None:
    rig = Rig()
    for name in (
        "dispatchThrottlingRateInMsg",
        "dispatchThrottlingRatePerTopicInMsg",
        "dispatchThrottlingRatePerSubscriptionInMsg",
    ):
        rig.settings.set(name, "9")
    engine = Engine(
        FakeEffects(), policies=EnginePolicies(limit_of=rig.resolver.applied_dispatch_limit)
    )
    current = CurrentDispatchLimits(rig.resolver.dispatch_limits, engine)
    for name, limits in ((NAME, [9, 9, 9]), (SYSTEM, [None] * 3)):
        topic = engine.load_topic(name, FakeLog(1), is_system=name is SYSTEM)
        subscription = topic.add_subscription("s", AckSet(-1), cursor_id=1)
        found = current.limits_of(subscription)
        assert [amounts(limit)[0] for limit in found] == limits


def test_a_relative_limit_amounts_to_more_while_something_is_published() -> None:
    rig = Rig()
    rig.make(
        rig.catalog.plan_topic_policies(
            NAME, dispatch_rate=DispatchRate(200, relative_to_publish_rate=True)
        )
    )
    engine = Engine(
        FakeEffects(), policies=EnginePolicies(limit_of=rig.resolver.applied_dispatch_limit)
    )
    log = FakeLog(1)
    topic = engine.load_topic(NAME, log)
    current = CurrentDispatchLimits(rig.resolver.dispatch_limits, engine)
    assert amounts(current.of_topic(topic))[0] == 200
    assert topic.publish_rate is not None
    topic.publish_rate.per_second = (1_000.0, 5_000.0, 10.0)
    topic.gate.set_limit(engine.relative.of_topic(topic), 0)
    effective = current.of_topic(topic)
    assert amounts(effective) == (1_200, None, "topic policy")
    assert effective.limit is not None
    assert effective.limit.base == rig.resolver.dispatch_limits.of_topic(NAME).limit


def live(rig: Rig, adaptive: RateLimit | None = None) -> Topic:
    """The topic with what is set, and what the controller allows, in force."""
    engine = Engine(
        FakeEffects(), policies=EnginePolicies(publish_limit_of=rig.resolver.applied_publish_limit)
    )
    topic = engine.load_topic(NAME, FakeLog(1))
    topic.publishing.adaptive_limit = adaptive
    engine.admission.put_in_force(topic)
    return topic


@pytest.mark.parametrize(
    ("static", "adaptive", "limit", "sources"),
    [
        (None, None, None, ("", "")),
        (PublishRate(50, 5_000), None, (50, 5_000), ("topic policy", "topic policy")),
        (None, (70, None), (70, None), (ADAPTIVE_SOURCE, "")),
        (PublishRate(50), (70, 9_000), (50, 9_000), ("topic policy", ADAPTIVE_SOURCE)),
        (PublishRate(50, 5_000), (40, None), (40, 5_000), (ADAPTIVE_SOURCE, "topic policy")),
        (PublishRate(50, 5_000), (40, 4_000), (40, 4_000), (ADAPTIVE_SOURCE, ADAPTIVE_SOURCE)),
        (PublishRate(50), (50, None), (50, None), ("topic policy", "")),
        (UNLIMITED, (40, None), (40, None), (ADAPTIVE_SOURCE, "")),
    ],
)
def test_in_each_dimension_the_tighter_holds_and_says_where_it_comes_from(
    static: PublishRate | None,
    adaptive: tuple[int | None, int | None] | None,
    limit: tuple[int | None, int | None] | None,
    sources: tuple[str, str],
) -> None:
    """What is told is what is enforced."""
    rig = Rig()
    if static is not None:
        rig.publish_on_topic(static)
    topic = live(rig, None if adaptive is None else RateLimit(*adaptive))
    found = CurrentPublishLimits(rig.resolver.publish_limits).of_topic(topic)
    assert found.limit == (None if limit is None else RateLimit(*limit))
    if limit is not None:
        amounts = zip(Dimension, limit, sources, strict=True)
        assert [found.source_of(d) for d, amount, _ in amounts if amount is not None] == [
            source for source in sources if source
        ]
        assert found.source == " and ".join(dict.fromkeys(filter(None, sources)))
    enforced = {} if topic.publishing.gate is None else topic.publishing.gate.budgets
    assert {budget.dimension: budget.limit for budget in enforced} == {
        d: amount for d, amount in zip(Dimension, limit or (), strict=False) if amount is not None
    }


def test_the_brokers_limit_and_none_on_a_topic_of_the_system() -> None:
    rig = Rig()
    rig.publish_on_topic(PublishRate(50))
    rig.settings.set("brokerPublisherThrottlingMaxMessageRate", "30")
    current, topic = CurrentPublishLimits(rig.resolver.publish_limits), live(rig)
    assert [each.limit for each in current.limits_of(topic)] == [
        RateLimit(50, None),
        RateLimit(30, None),
    ]
    topic.is_system = True
    assert [each.limit for each in current.limits_of(topic)] == [None, None]
