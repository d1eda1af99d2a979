"""Which policy of delayed delivery is in force on a topic."""

from __future__ import annotations

from headgate.engine.delayed_delivery import DelayedDelivery
from headgate.metadata.policies import DelayedDeliveryPolicy
from tests.unit.policy.rig import NAME, PARTITIONED, Rig

ON, OFF = DelayedDeliveryPolicy(500, True, 7_000), DelayedDeliveryPolicy(1_000, False, 0)


def test_the_most_specific_policy_counts_as_a_whole() -> None:
    rig = Rig()

    def found() -> DelayedDeliveryPolicy:
        return rig.resolver.applied_delayed_delivery_policy(NAME)

    assert found() == DelayedDeliveryPolicy(1_000, True, 0)
    rig.settings.set("delayedDeliveryEnabled", "false")
    rig.settings.set("delayedDeliveryTickTimeMillis", "20")
    rig.settings.set("delayedDeliveryMaxDelayInMillis", "30")
    assert found() == DelayedDeliveryPolicy(20, False, 30)
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, delayed_delivery=ON))
    assert found() == ON
    rig.make(rig.catalog.plan_topic_policies(NAME, delayed_delivery=OFF))
    assert found() == OFF
    rig.make(rig.catalog.plan_topic_policies(NAME, delayed_delivery=None))
    assert found() == ON


def test_a_partition_has_the_policy_of_its_topic() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, delayed_delivery=ON))
    of_topic = rig.resolver.delayed_deliveries.of_topic
    assert of_topic(PARTITIONED.partition_name(1)) == DelayedDelivery(True, 7_000)


def test_a_negative_limit_is_none() -> None:
    rig = Rig()
    policy = DelayedDeliveryPolicy(0, True, -5)
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, delayed_delivery=policy))
    assert rig.resolver.delayed_deliveries.of_topic(NAME) == DelayedDelivery(True, 0)
