"""The limits in force: what is set where, how full it is, who waits."""

from __future__ import annotations

import msgspec
import pytest

from headgate.base.ack_set import AckSet
from headgate.engine.engine import Engine
from headgate.engine.engine_policies import EnginePolicies
from headgate.explain.states import WaitingSubscription
from headgate.flow.limits.precedence import RatePolicy
from headgate.observe.states.limits import (
    broker_limit,
    subscription_limit,
    throttled_amounts,
    topic_limit,
)
from headgate.policy.current_limits import CurrentDispatchLimits
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.engine.harness import FakeEffects, FakeLog
from tests.unit.policy.rig import NAME, SYSTEM, Rig

FAST = 1e6
TOPIC = "persistent://public/default/t"


def test_without_limits_there_is_nothing_to_show() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    assert broker_limit(broker.current_dispatch_limits, broker.engine) is None
    assert topic_limit(broker.current_dispatch_limits, topic) is None
    assert subscription_limit(broker.current_dispatch_limits, subscription) is None


def test_a_subscriptions_own_limit() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    subscription = broker.subscription(topic, "s", limit=20)
    broker.client(subscription, FAST)
    broker.run(5.05)
    shown = subscription_limit(broker.current_dispatch_limits, subscription)
    assert shown is not None
    assert (shown.level, shown.subject) == ("subscription", f"{TOPIC} / s")
    assert shown.source == "topic policy"
    assert (shown.waiters, shown.waiters_max) == (1, 1)
    assert shown.waiting_s == pytest.approx(5, abs=0.5)
    (budget,) = shown.budgets
    assert (budget.dimension, budget.limit, budget.period_s) == ("messages", 20, 1.0)
    assert 18 <= budget.in_window <= 20
    assert budget.granted == subscription.messages_sent
    assert (budget.debt, budget.text, budget.source) == (0, "20 msg/s", "topic policy")
    (held,) = shown.longest_waiting
    assert (held.topic, held.subscription) == (TOPIC, "s")
    assert held.waiting_s == pytest.approx(5, abs=0.5)


def test_a_topics_limit_names_who_waits() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    for i in range(7):
        broker.client(broker.subscription(topic, f"s{i}"), FAST)
    broker.limit_topic(topic, 35)
    broker.run(3)
    shown = topic_limit(broker.current_dispatch_limits, topic)
    assert shown is not None
    assert (shown.level, shown.subject) == ("topic", TOPIC)
    assert (shown.waiters, shown.waiters_max) == (7, 7)
    assert len(shown.longest_waiting) == 5
    assert {held.topic for held in shown.longest_waiting} == {TOPIC}
    waits = [held.waiting_s for held in shown.longest_waiting]
    assert waits == sorted(waits, reverse=True)


def test_the_brokers_limit_is_over_all_topics() -> None:
    broker = VirtualBroker()
    broker.limit_broker(10)
    for name in ("a", "b"):
        broker.client(broker.subscription(broker.topic(name, 50)), FAST)
    broker.run(3)
    shown = broker_limit(broker.current_dispatch_limits, broker.engine)
    assert shown is not None
    assert (shown.level, shown.subject) == ("broker", "")
    assert shown.waiters == 2
    assert shown.source.startswith("broker setting ")
    assert {held.topic[-1] for held in shown.longest_waiting} == {"a", "b"}


def test_nobody_waits_for_a_limit_that_is_not_reached() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 10)
    broker.client(broker.subscription(topic), FAST)
    broker.limit_topic(topic, 1_000)
    broker.run(3)
    shown = topic_limit(broker.current_dispatch_limits, topic)
    assert shown is not None
    assert (shown.waiters, shown.waiting_s, shown.longest_waiting) == (0, 0.0, [])
    assert shown.budgets[0].in_window == pytest.approx(10, abs=1)


def test_the_brokers_own_topics_are_exempt() -> None:
    rig = Rig()
    rig.settings.set("dispatchThrottlingRatePerTopicInMsg", "5")
    rig.settings.set("dispatchThrottlingRatePerSubscriptionInMsg", "5")
    engine = Engine(
        FakeEffects(), policies=EnginePolicies(limit_of=rig.resolver.applied_dispatch_limit)
    )
    in_force = CurrentDispatchLimits(rig.resolver.dispatch_limits, engine)
    topic = engine.load_topic(SYSTEM, FakeLog(1), is_system=True)
    subscription = topic.add_subscription("s", AckSet(-1), cursor_id=1)
    assert topic_limit(in_force, topic) is None
    assert subscription_limit(in_force, subscription) is None
    assert topic_limit(in_force, engine.load_topic(NAME, FakeLog(2))) is not None


def test_names_in_json_are_in_camel_case() -> None:
    held = WaitingSubscription(topic="t", subscription="s", waiting_s=1.5)
    assert msgspec.to_builtins(held) == {"topic": "t", "subscription": "s", "waitingS": 1.5}


def test_what_limits_held_back() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    subscription = broker.subscription(topic, "s", limit=20)
    idle = broker.subscription(topic, "idle")
    broker.client(subscription, FAST)
    broker.run(5.05)
    (held,) = throttled_amounts([subscription, idle])
    assert (held.level, held.dimension) == ("subscription", "messages")
    assert held.events == subscription.gate.throttled_events[0][0] >= 4
    assert held.amount == subscription.throttled_dispatch.counts[0][0] > 300
    assert throttled_amounts([idle]) == []


def test_a_limit_that_moves_and_one_that_is_lifted() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    broker.limits.policies[topic.name.full] = RatePolicy(20, relative=True)
    broker.engine.reload_limits(topic)
    broker.run(3)
    shown = topic_limit(broker.current_dispatch_limits, topic)
    assert shown is not None
    (budget,) = shown.budgets
    assert shown.relative
    assert budget.limit == pytest.approx(120, abs=3)
    assert budget.above_publish_rate == 20
    assert budget.text == f"{budget.limit} msg/s (20 above the publish rate)"
    broker.limits.policies[topic.name.full] = RatePolicy(unlimited=True)
    broker.engine.reload_limits(topic)
    shown = topic_limit(broker.current_dispatch_limits, topic)
    assert shown is not None
    assert (shown.unlimited, shown.relative, shown.budgets) == (True, False, [])
    assert shown.source == "topic policy"


def test_a_topics_limit_says_how_often_the_publish_rate_is_in_it() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    broker.limits.policies[topic.name.full] = RatePolicy(20, relative=True)
    for name in ("a", "b"):
        broker.client(broker.subscription(topic, name), FAST)
    broker.subscription(topic, "nobody")
    broker.engine.reload_limits(topic)
    broker.run(3)
    shown = topic_limit(broker.current_dispatch_limits, topic)
    assert shown is not None
    (budget,) = shown.budgets
    assert budget.limit == pytest.approx(220, abs=4)
    assert budget.publish_rate_times == 2
    assert budget.text.endswith("msg/s (20 above 2 x the publish rate)")


def test_batches_that_count_as_one_are_named() -> None:
    broker = VirtualBroker()
    broker.engine.throttle_counts_entries = True
    topic = broker.topic("t", 100)
    broker.limit_topic(topic, 10)
    shown = topic_limit(broker.current_dispatch_limits, topic)
    assert shown is not None
    assert shown.budgets[0].text == "10 msg/s, a batch as one"
