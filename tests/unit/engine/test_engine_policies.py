"""Without policies nothing is limited, dropped or delayed; a policy is put in force at the load."""

from __future__ import annotations

from headgate.engine.delayed_delivery import DEFAULT_DELAYED_DELIVERY
from headgate.engine.engine_policies import EnginePolicies
from headgate.flow.quota.backlog_quota import NO_QUOTAS
from tests.unit.engine.harness import Rig


def test_without_policies_nothing_is_limited() -> None:
    topic = Rig().topic
    policies = EnginePolicies()
    assert policies.limit_of(topic, None) is policies.limit_of(topic, "s") is None
    assert policies.publish_limit_of(topic) is None
    assert policies.quotas_of(topic) is NO_QUOTAS
    assert not policies.deduplicates(topic)
    assert policies.delayed_delivery_of(topic) is DEFAULT_DELAYED_DELIVERY
    assert policies.unacked_limits_of(topic) is policies.send_rules_of(topic) is None
    assert policies.due_time_of(b"entry") == 0


def test_what_is_set_is_in_force_from_the_load_on() -> None:
    rig = Rig(deduplicates=True)
    assert rig.topic.publishing.deduplication is not None
    assert Rig().topic.publishing.deduplication is None
