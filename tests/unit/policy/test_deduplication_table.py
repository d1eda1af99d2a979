"""Whether a topic has message deduplication."""

from __future__ import annotations

from tests.unit.policy.rig import NAME, PARTITIONED, SYSTEM, Rig


def test_the_most_specific_policy_counts() -> None:
    rig = Rig()

    def found() -> bool:
        return rig.resolver.applied_deduplication(NAME)

    assert not found()
    rig.settings.set("brokerDeduplicationEnabled", "true")
    assert found()
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, deduplication=False))
    assert not found()
    rig.make(rig.catalog.plan_topic_policies(NAME, deduplication=True))
    assert found()
    rig.make(rig.catalog.plan_topic_policies(NAME, deduplication=None))
    assert not found()
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, deduplication=None))
    assert found()


def test_a_partition_has_what_its_topic_has() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, deduplication=True))
    assert rig.resolver.applied_deduplication(PARTITIONED.partition_name(1))


def test_the_telemetry_topic_has_none() -> None:
    rig = Rig()
    rig.settings.set("brokerDeduplicationEnabled", "true")
    assert not rig.resolver.applied_deduplication(SYSTEM)
