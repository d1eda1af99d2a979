"""Which policies and settings a request gave another value."""

from __future__ import annotations

import msgspec

from headgate.admin.value_changes import value_changes
from headgate.base.audit_entry import ValueChange
from headgate.metadata.bundles import split_bundles
from headgate.metadata.catalog import Change, RowChange
from headgate.metadata.policies import BacklogQuota, DispatchRate, NamespacePolicies, TopicPolicies
from headgate.metadata.rows import Kind, NamespaceRow, Row, SettingRow, TenantRow

RATE = DispatchRate(100)


def changed(kind: Kind, before: Row | None, after: Row | None) -> tuple[ValueChange, ...]:
    return value_changes([Change((RowChange(kind, "x", before, after),))])


def test_a_policy_of_a_topic_has_its_values_before_and_after() -> None:
    kind = Kind.TOPIC_POLICIES
    first, other = TopicPolicies(dispatch_rate=RATE), TopicPolicies(dispatch_rate=DispatchRate(7))
    assert changed(kind, None, first) == (ValueChange("dispatch_rate", "", None, RATE),)
    assert changed(kind, first, other) == (ValueChange("dispatch_rate", "", RATE, DispatchRate(7)),)
    assert changed(kind, first, None) == (ValueChange("dispatch_rate", "", RATE, None),)
    assert changed(kind, first, first) == ()


def test_a_policy_with_keys_has_those_that_changed() -> None:
    size, time = BacklogQuota("producer_exception", 1), BacklogQuota("producer_exception", -1, 5)
    found = changed(
        Kind.TOPIC_POLICIES,
        TopicPolicies(
            backlog_quotas={"destination_storage": size, "message_age": time},
            dispatch_rate_by_subscription={"s": RATE},
        ),
        TopicPolicies(backlog_quotas={"message_age": time}),
    )
    assert found == (
        ValueChange("backlog_quotas", "destination_storage", size, None),
        ValueChange("dispatch_rate_by_subscription", "s", RATE, None),
    )


def test_policies_of_a_namespace() -> None:
    before = NamespaceRow(bundles=split_bundles(1), clusters=("c",))
    after = msgspec.structs.replace(before, policies=NamespacePolicies(dispatch_rate=RATE))
    assert changed(Kind.NAMESPACE, before, after) == (ValueChange("dispatch_rate", "", None, RATE),)
    assert changed(Kind.NAMESPACE, None, after) == ()  # it was created so


def test_a_setting_that_may_be_a_secret_is_left_out() -> None:
    def setting(before: str | None, after: str | None) -> tuple[ValueChange, ...]:
        rows = [None if text is None else SettingRow(text) for text in (before, after)]
        return changed(Kind.SETTING, *rows)

    assert setting(None, "100") == (ValueChange("x", "", None, "100"),)
    assert setting("0.5", "-1") == (ValueChange("x", "", "0.5", "-1"),)
    assert setting("true", None) == (ValueChange("x", "", "true", None),)
    assert setting(None, "s3cret") == ()
    assert setting("s3cret", "5") == ()
    assert setting("5", "5") == ()


def test_other_rows_have_none() -> None:
    assert changed(Kind.TENANT, None, TenantRow()) == ()
