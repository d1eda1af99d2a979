"""Which rules for SENDs are in force on a topic."""

from __future__ import annotations

from headgate.engine.send_rules import SendRules
from tests.unit.policy.rig import NAME, PARTITIONED, SYSTEM, Rig


def test_rules_come_from_the_setting_the_namespace_and_the_topic() -> None:
    rig = Rig()
    table = rig.resolver.send_rules
    assert table.of_topic(NAME) is None
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, encryption_required=True))
    assert table.of_topic(NAME) == SendRules(encrypted=True)
    rig.make(rig.catalog.plan_topic_policies(NAME, max_message_size=100))
    assert table.of_topic(NAME) == SendRules(encrypted=True, message_bytes_max=100)
    rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, encryption_required=False))
    assert table.of_topic(NAME) == SendRules(message_bytes_max=100)
    rig.make(rig.catalog.plan_topic_policies(NAME, max_message_size=0))
    assert table.of_topic(NAME) is None
    rig.settings.set("encryptionRequireOnProducer", "true")
    assert table.of_topic(NAME) == SendRules(encrypted=True)
    assert table.of_topic(SYSTEM) is None


def test_a_partition_has_the_rules_of_its_topic() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, max_message_size=3))
    found = rig.resolver.send_rules.of_topic(PARTITIONED.partition_name(1))
    assert found == SendRules(message_bytes_max=3)
