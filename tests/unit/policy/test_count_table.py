"""Which limits on numbers are in force on a topic."""

from __future__ import annotations

import pytest

from headgate.metadata.policies import COUNT_NAMES, TOPIC_COUNT_NAMES, CountField
from headgate.policy.settings import SETTINGS
from tests.unit.policy.rig import NAME, PARTITIONED, SYSTEM, Rig


@pytest.mark.parametrize("field", TOPIC_COUNT_NAMES)
def test_the_most_specific_number_counts_and_0_is_one(field: CountField) -> None:
    rig = Rig()

    def found() -> int:
        return rig.resolver.applied_count(NAME, field)

    assert found() == SETTINGS[COUNT_NAMES[field]].default
    rig.settings.set(COUNT_NAMES[field], "9")
    assert found() == 9
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, **{field: 7}))
    assert found() == 7
    rig.make(rig.catalog.plan_topic_policies(NAME, **{field: 0}))
    assert found() == 0, "no limit, although wider levels have one"
    rig.make(rig.catalog.plan_topic_policies(NAME, **{field: None}))
    assert found() == 7
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, **{field: None}))
    assert found() == 9


def test_a_partition_has_the_limits_of_its_topic_and_a_system_topic_none() -> None:
    rig = Rig()
    rig.settings.set("maxProducersPerTopic", "1")
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, max_producers_per_topic=3))
    partition = PARTITIONED.partition_name(1)
    assert rig.resolver.applied_count(partition, "max_producers_per_topic") == 3
    assert rig.resolver.applied_count(SYSTEM, "max_producers_per_topic") == 0


@pytest.mark.parametrize(
    ("policy", "setting", "found"),
    [(7, 9, 7), (9, 7, 7), (0, 7, 7), (7, 0, 7), (7, -1, 7), (0, 0, 0)],
)
def test_policies_do_not_raise_the_setting_if_they_may_not(
    policy: int, setting: int, found: int
) -> None:
    rig = Rig()
    rig.settings.set("maxSubscriptionsPerTopic", str(setting))
    rig.settings.set("maxTopicsPerNamespace", str(setting))
    rig.make(rig.catalog.plan_topic_policies(NAME, max_subscriptions_per_topic=policy))
    counts = rig.resolver.counts
    assert counts.of_topic(NAME, "max_subscriptions_per_topic") == policy
    assert counts.topics_of_namespace(policy) == policy
    rig.settings.set("headgatePoliciesRaiseCounts", "false")
    assert counts.of_topic(NAME, "max_subscriptions_per_topic") == found
    assert counts.topics_of_namespace(policy) == found
    assert counts.topics_of_namespace(None) == setting
