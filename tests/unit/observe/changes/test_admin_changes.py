"""Changes that the admin API carried out, as clauses with who made them."""

from __future__ import annotations

import pytest

from headgate.base.audit_entry import AuditEntry, AuditResult, ValueChange
from headgate.base.identity import Identity
from headgate.explain.changes import PlainChange
from headgate.metadata.policies import DispatchRate
from headgate.observe.changes.admin_changes import OF_BROKER, SUBJECT_MAX, AdminChanges, started

TOPIC = "persistent://a/b/t"
AT_NS = 1_800_000_000_123_456_789
OPS = Identity("ops")
RATE = ValueChange("dispatch_rate", "", None, DispatchRate(100))


def noted(
    operation: str,
    resource: str,
    *values: ValueChange,
    subscription: str = "",
    subject: str | None = None,
    identity: Identity = OPS,
) -> list[PlainChange]:
    changes = AdminChanges()
    entry = AuditEntry(
        operation,
        resource,
        AuditResult.ALLOWED,
        identity=identity,
        subscription=subscription,
        values=values,
    )
    changes.changed(entry, AT_NS)
    found = changes.log.since(resource if subject is None else subject, 0)
    assert len(found) == len(changes.log)
    return found


def test_a_policy_of_a_topic() -> None:
    (change,) = noted("topic.policy.write", TOPIC, RATE)
    assert change == PlainChange(
        1_800_000_000_123, "policy", "topic",
        "the dispatch limit of the topic was set to 100 msg/s", "", "ops",
    )  # fmt: skip


def test_a_value_that_no_report_shows_can_be_left_out() -> None:
    ttl = ValueChange("message_ttl_in_seconds", "", 60, 120)
    (change,) = noted("topic.policy.write", TOPIC, ttl)
    assert change.text == "the message TTL of the topic was changed from 60 s to 2 min"
    assert change.clause(with_values=False) == "the message TTL of the topic was changed"
    (change,) = noted("topic.policy.write", TOPIC, ttl._replace(after=None))
    assert change.clause(with_values=False) == "the message TTL of the topic was removed"
    assert "60" in change.clause()
    value = ValueChange("dispatchThrottlingRateInMsg", "", None, "100")
    (change,) = noted("settings.write", value.name, value, subject=OF_BROKER)
    assert change.clause(with_values=False) == "the setting dispatchThrottlingRateInMsg was set"


def test_a_policy_of_a_namespace() -> None:
    (change,) = noted("namespace.policy.write", "a/b", RATE)
    assert change.level == "namespace"
    assert change.text == ("the dispatch limit of each topic of namespace a/b was set to 100 msg/s")


def test_the_limit_of_one_subscription_is_about_that() -> None:
    value = ValueChange("dispatch_rate_by_subscription", "s", DispatchRate(5), None)
    (change,) = noted("topic.policy.write", TOPIC, value, subscription="s")
    assert (change.subscription, change.level) == ("s", "topic")
    assert change.text == "the dispatch limit of subscription s was removed (it was 5 msg/s)"


def test_a_value_that_means_the_same_is_no_change() -> None:
    value = ValueChange("dispatch_rate", "", None, DispatchRate(-1, -1))
    assert noted("topic.policy.write", TOPIC, value) == []


def test_a_setting_that_limits_is_about_all_topics() -> None:
    value = ValueChange("dispatchThrottlingRateInMsg", "", "500", "100")
    (change,) = noted("settings.write", value.name, value, subject=OF_BROKER)
    assert (change.kind, change.level) == ("setting", "broker")
    assert change.text == ("the setting dispatchThrottlingRateInMsg was changed from 500 to 100")
    other = ValueChange("authenticationEnabled", "", "true", "false")
    assert noted("settings.write", other.name, other, subject=OF_BROKER) == []


@pytest.mark.parametrize(
    ("operation", "resource", "text", "kind"),
    [
        ("topic.unload", TOPIC, "the topic was unloaded", "topic"),
        ("namespace.bundles.change", "a/b", "the namespace was unloaded", "topic"),
        ("subscription.skip", TOPIC, "messages of s were skipped", "subscription"),
        ("subscription.reset", TOPIC, "the cursor of s was reset", "subscription"),
    ],
)
def test_what_is_done_to_topics_and_subscriptions(
    operation: str, resource: str, text: str, kind: str
) -> None:
    subscription = "s" if kind == "subscription" else ""
    (change,) = noted(operation, resource, subscription=subscription)
    assert (change.text, change.kind, change.subscription) == (text, kind, subscription)


def test_what_has_nothing_to_do_with_backlogs_is_left_out() -> None:
    assert noted("topic.permissions.write", TOPIC) == []
    assert noted("tenant.update", "a") == []


def test_the_client_behind_a_proxy_is_named() -> None:
    (change,) = noted("topic.unload", TOPIC, identity=Identity("proxy", "ann\x1b"))
    assert change.role == "ann\N{REPLACEMENT CHARACTER}"


def test_a_script_that_changes_one_topic_all_the_time_is_bounded() -> None:
    changes = AdminChanges()
    for _ in range(SUBJECT_MAX + 5):
        changes.changed(AuditEntry("topic.unload", TOPIC, AuditResult.ALLOWED), AT_NS)
    assert len(changes.log) == SUBJECT_MAX


def test_the_start_of_the_broker() -> None:
    assert started(7).clause() == "the broker was started"
