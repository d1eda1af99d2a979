"""Which retention is in force on a topic."""

from __future__ import annotations

from headgate.metadata.policies import Retention
from tests.unit.policy.rig import NAME, PARTITIONED, SYSTEM, Rig


def test_the_most_specific_policy_counts_as_a_whole() -> None:
    rig = Rig()
    rig.settings.set("defaultRetentionTimeInMinutes", "5")
    rig.settings.set("defaultRetentionSizeInMB", "6")

    def found() -> Retention:
        return rig.resolver.retentions.of_topic(NAME)

    assert found() == rig.resolver.retentions.of_broker() == Retention(5, 6)
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, retention=Retention(7, -1)))
    assert found() == Retention(7, -1)
    rig.make(rig.catalog.plan_topic_policies(NAME, retention=Retention(0, 0)))
    assert found() == Retention(0, 0)
    rig.make(rig.catalog.plan_topic_policies(NAME, retention=None))
    assert found() == Retention(7, -1)


def test_a_partition_has_the_retention_of_its_topic() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, retention=Retention(3, 4)))
    partition = PARTITIONED.partition_name(1)
    assert rig.resolver.retentions.of_topic(partition) == Retention(3, 4)


def test_the_telemetry_topic_has_its_own_settings() -> None:
    rig = Rig()
    assert rig.resolver.applied_retention(SYSTEM) == Retention(4_320, 1_024)
    assert rig.resolver.applied_retention(NAME) == Retention(0, 0)
