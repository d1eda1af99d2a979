"""Which dispatch limit is in force, and where it is set."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.engine.engine import Engine
from headgate.flow.limits.precedence import EffectiveLimit, RatePolicy
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.policies import DispatchRate
from headgate.policy.dispatch_limits import LimitsInForce, LimitTable, policy_of, rate_of
from headgate.policy.settings import Settings
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.engine.harness import FakeEffects, FakeLog

NAME = parse_topic("persistent://public/default/orders")
PARTITIONED = parse_topic("persistent://public/default/parted")


class Rig:
    """A catalog whose changes are durable at once, and the table over it."""

    def __init__(self) -> None:
        self.catalog = Catalog("c", {})
        self.settings = Settings()
        self.table = LimitTable(self.catalog, self.settings)
        self.make(self.catalog.plan_first_boot())
        self.make(self.catalog.plan_create_topic(NAME, now_ms=0))
        self.make(self.catalog.plan_create_partitioned(PARTITIONED, 2, now_ms=0))

    def make(self, change: Change | None) -> None:
        assert change is not None
        self.catalog.apply(change)


def rate(messages: int = -1, size: int = -1, period: int = 1) -> DispatchRate:
    return DispatchRate(
        dispatch_throttling_rate_in_msg=messages,
        dispatch_throttling_rate_in_byte=size,
        rate_period_in_second=period,
    )


def told(effective: EffectiveLimit) -> tuple[int | None, int | None, str]:
    """Messages and bytes of a limit, and where it is set."""
    limit = effective.limit
    if limit is None:
        return None, None, effective.source
    return limit.messages, limit.bytes, effective.source


def test_nothing_is_limited_at_first() -> None:
    table = Rig().table
    for effective in (table.of_broker(), table.of_topic(NAME), table.of_subscription(NAME, "s")):
        assert effective.limit is None


def test_the_nearest_setting_of_a_topic_counts() -> None:
    rig = Rig()
    rig.settings.set("dispatchThrottlingRatePerTopicInMsg", "100")
    messages, size, set_at = told(rig.table.of_topic(NAME))
    assert (messages, size) == (100, None)
    assert "dispatchThrottlingRatePerTopicInMsg" in set_at
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, dispatch_rate=rate(50)))
    assert told(rig.table.of_topic(NAME))[0] == 50
    assert "public/default" in told(rig.table.of_topic(NAME))[2]
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=rate(size=7_000)))
    messages, size, set_at = told(rig.table.of_topic(NAME))
    assert size == 7_000
    assert "topic" in set_at
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=None))
    assert told(rig.table.of_topic(NAME))[0] == 50
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, dispatch_rate=None))
    assert told(rig.table.of_topic(NAME))[0] == 100


def test_the_nearest_setting_of_a_subscription_counts() -> None:
    rig = Rig()
    catalog, table = rig.catalog, rig.table
    rig.settings.set("dispatchThrottlingRatePerSubscriptionInByte", "9000")
    assert told(table.of_subscription(NAME, "s"))[:2] == (None, 9_000)
    rig.make(catalog.plan_namespace_policies(NAME.namespace, subscription_dispatch_rate=rate(50)))
    assert told(table.of_subscription(NAME, "s"))[0] == 50
    rig.make(catalog.plan_topic_policies(NAME, subscription_dispatch_rate=rate(40)))
    assert told(table.of_subscription(NAME, "s"))[0] == 40
    rig.make(catalog.plan_subscription_rate(NAME, "s", rate(30)))
    assert told(table.of_subscription(NAME, "s"))[0] == 30
    assert told(table.of_subscription(NAME, "other"))[0] == 40
    rig.make(catalog.plan_subscription_rate(NAME, "s", None))
    assert told(table.of_subscription(NAME, "s"))[0] == 40


def test_levels_do_not_mix() -> None:
    rig = Rig()
    rig.settings.set("dispatchThrottlingRateInMsg", "5")
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=rate(10)))
    assert told(rig.table.of_broker())[0] == 5
    assert told(rig.table.of_topic(NAME))[0] == 10
    assert rig.table.of_subscription(NAME, "s").limit is None


def test_a_partition_has_the_limits_of_its_topic() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, dispatch_rate=rate(10)))
    rig.make(rig.catalog.plan_subscription_rate(PARTITIONED, "s", rate(3)))
    partition = PARTITIONED.partition_name(1)
    assert told(rig.table.of_topic(partition))[0] == 10
    assert told(rig.table.of_subscription(partition, "s"))[0] == 3


def test_a_stored_rate_as_the_law_reads_it() -> None:
    assert policy_of(None) is None
    assert policy_of(rate(5, 6, 7)) == RatePolicy(messages=5, bytes=6, period_s=7)


@pytest.mark.parametrize("value", ["0", "-1"])
def test_zero_and_less_are_no_limit(value: str) -> None:
    rig = Rig()
    rig.settings.set("dispatchThrottlingRateInMsg", value)
    assert rig.table.of_broker().limit is None


def test_limits_by_level_and_none_on_a_topic_of_the_system() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic, limit=5)
    broker.limit_broker(9)
    own = broker.in_force.on(subscription)
    assert [limit.limit and limit.limit.messages for limit in own] == [5, None, 9]
    topic.is_system = True
    assert all(limit.limit is None for limit in broker.in_force.on(subscription))


def test_what_rest_shows_is_what_was_set() -> None:
    for stored in (rate(5, 6, 7), rate(period=-3), DispatchRate(unlimited=True)):
        assert rate_of(policy_of(stored)) == stored
    relative = DispatchRate(1, 2, relative_to_publish_rate=True)
    assert rate_of(policy_of(relative)) == relative
    assert rate_of(None) == DispatchRate(rate_period_in_second=1)


def test_a_relative_limit_amounts_to_more_while_something_is_published() -> None:
    rig = Rig()
    rig.make(
        rig.catalog.plan_topic_policies(
            NAME, dispatch_rate=DispatchRate(200, relative_to_publish_rate=True)
        )
    )
    engine = Engine(FakeEffects(), limits_of=lambda *_: rig.table.of_topic(NAME).limit)
    log = FakeLog(1)
    topic = engine.load_topic(NAME, log)
    in_force = LimitsInForce(rig.table, engine)
    assert told(in_force.of_topic(topic))[0] == 200
    assert topic.publish_rate is not None
    topic.publish_rate.per_second = (1_000.0, 5_000.0, 10.0)
    topic.gate.set_limit(engine.relative.of_topic(topic), 0)
    effective = in_force.of_topic(topic)
    assert told(effective) == (1_200, None, "topic policy")
    assert effective.limit is not None
    assert effective.limit.base == rig.table.of_topic(NAME).limit
