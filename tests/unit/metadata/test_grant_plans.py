"""Changes of grants."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.errors import RefusalError
from headgate.metadata.grants import (
    ROLES_MAX,
    Action,
    NamespaceGrants,
    SubscriptionGrants,
    TopicGrants,
)
from headgate.metadata.rebuilt_rows import rebuild_rows
from headgate.metadata.rows import Kind, TenantRow
from tests.unit.metadata.catalog_rig import NS, PT, Broker, T, refused

NOWHERE = NamespaceName("public", "nowhere")
BOTH: frozenset[Action] = frozenset({"produce", "consume"})
PRODUCE: frozenset[Action] = frozenset({"produce"})
NOTHING: frozenset[Action] = frozenset()


def test_grants_on_a_namespace_are_replaced_by_role_and_survive_a_restart(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_namespace_grant(NS, "a", BOTH))
    broker.do(catalog.plan_namespace_grant(NS, "b", PRODUCE))
    broker.do(catalog.plan_namespace_grant(NS, "a", PRODUCE))
    expected = NamespaceGrants(roles={"a": ("produce",), "b": ("produce",)})
    assert catalog.namespace_grants(NS) == expected
    assert broker.restarted().catalog.namespace_grants(NS) == expected
    for role in ("a", "b", "never granted"):
        change = broker.do(catalog.plan_namespace_grant(NS, role, NOTHING))
    assert change.rows[0].after is None
    assert catalog.namespace_grants(NS) == NamespaceGrants()


def test_the_mode_of_subscriptions_is_kept_beside_the_roles(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_namespace_grant(NS, "a", BOTH))
    broker.do(catalog.plan_subscription_auth_mode(NS, "Prefix"))
    broker.do(catalog.plan_namespace_grant(NS, "a", NOTHING))
    assert catalog.namespace_grants(NS) == NamespaceGrants(subscription_auth_mode="Prefix")
    broker.do(catalog.plan_subscription_auth_mode(NS, "None"))
    assert (Kind.NAMESPACE_GRANTS.value, str(NS)) not in broker.store.load()


def test_a_grant_needs_a_namespace_and_a_name_that_a_role_may_have(broker: Broker) -> None:
    catalog = broker.catalog
    plans = (
        lambda: catalog.plan_namespace_grant(NOWHERE, "a", BOTH),
        lambda: catalog.plan_subscription_auth_mode(NOWHERE, "Prefix"),
        lambda: catalog.plan_subscription_grant(NOWHERE, "s", ["a"]),
        lambda: catalog.plan_topic_grant(parse_topic("public/nowhere/t"), "a", BOTH),
    )
    for plan in plans:
        with pytest.raises(RefusalError) as caught:
            plan()
        assert refused(caught) == (404, "Namespace not found")
    for bad in ("", "a\nb", "x" * 513):
        with pytest.raises(RefusalError, match="is not valid") as caught:
            catalog.plan_namespace_grant(NS, bad, BOTH)
        assert caught.value.status == 412
    assert catalog.in_flight_count == 0


def test_a_row_has_a_bounded_number_of_roles(broker: Broker) -> None:
    catalog = broker.catalog
    roles = [f"r{number}" for number in range(ROLES_MAX)]
    broker.do(catalog.plan_subscription_grant(NS, "s", roles))
    with pytest.raises(RefusalError, match="1000 are allowed"):
        catalog.plan_subscription_grant(NS, "s", [*roles, "one more"])


def test_a_namespace_has_a_bounded_number_of_rows(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.metadata.grant_plans.ROWS_MAX", 1)
    catalog = broker.catalog
    catalog.allow_grants_without_topics(True)
    broker.do(catalog.plan_subscription_grant(NS, "s", ["a"]))
    broker.do(catalog.plan_subscription_grant(NS, "s", ["b"]))
    broker.do(catalog.plan_topic_grant(T, "a", BOTH))
    broker.do(catalog.plan_topic_grant(T, "b", BOTH))
    with pytest.raises(RefusalError, match="grants on 1 subscriptions") as caught:
        catalog.plan_subscription_grant(NS, "t", ["a"])
    assert caught.value.status == 412
    with pytest.raises(RefusalError, match="grants on 1 topics"):
        catalog.plan_topic_grant(PT, "a", BOTH)
    broker.do(catalog.plan_subscription_grant(NS, "s", []))
    broker.do(catalog.plan_subscription_grant(NS, "t", ["a"]))


def test_grants_on_a_topic_go_with_it_unless_they_are_kept(broker: Broker) -> None:
    catalog = broker.catalog
    with pytest.raises(RefusalError) as caught:
        catalog.plan_topic_grant(T, "a", BOTH)
    assert refused(caught) == (404, f"Topic {T} not found")
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    broker.do(catalog.plan_topic_grant(T, "a", BOTH))
    assert catalog.topic_grants_after(NS, "", 9) == [T.full]
    broker.do(catalog.plan_delete_topic(T, keeps_grants=True))
    assert catalog.topic_grants(T.full) == TopicGrants(roles={"a": ("produce", "consume")})
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    broker.do(catalog.plan_delete_topic(T))
    assert catalog.topic_grants(T.full) == TopicGrants()
    catalog.allow_grants_without_topics(True)
    broker.do(catalog.plan_topic_grant(T, "a", BOTH))
    assert catalog.topic_grants(T.full).roles


def test_a_partitioned_topic_takes_the_grants_of_its_partitions_along(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    for topic in (PT, PT.partition_name(1)):
        broker.do(catalog.plan_topic_grant(topic, "a", PRODUCE))
    broker.do(catalog.plan_delete_topic(PT))
    assert catalog.topic_grants_after(NS, "", 9) == []


def test_only_what_is_granted_on_a_topic_can_be_revoked_there(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    broker.do(catalog.plan_namespace_grant(NS, "a", BOTH))
    with pytest.raises(RefusalError) as caught:
        catalog.plan_topic_revoke(T, "a")
    assert refused(caught) == (412, "Permissions are not set at the topic level")
    broker.do(catalog.plan_topic_grant(T, "a", PRODUCE))
    broker.do(catalog.plan_topic_revoke(T, "a"))
    assert catalog.topic_grants(T.full).roles == {}


def test_subscriptions_are_for_all_until_some_roles_are_named(broker: Broker) -> None:
    catalog = broker.catalog
    name = "s/with a slash"
    assert catalog.subscription_grants(NS, name) is None
    broker.do(catalog.plan_subscription_grant(NS, name, ["b", "a", "b"]))
    assert catalog.subscription_grants(NS, name) == SubscriptionGrants(roles=("a", "b"))
    assert broker.restarted().catalog.subscription_grants_after(NS, "", 9) == [name]
    broker.do(catalog.plan_subscription_revoke(NS, name, "a"))
    broker.do(catalog.plan_subscription_revoke(NS, name, "b"))
    assert catalog.subscription_grants(NS, name) is None
    with pytest.raises(RefusalError) as caught:
        catalog.plan_subscription_revoke(NS, name, "b")
    assert refused(caught) == (412, "couldn't find subscription")


def test_a_namespace_is_created_and_deleted_with_its_grants(broker: Broker) -> None:
    catalog = broker.catalog
    name = NamespaceName("acme", "ns")
    tenant = TenantRow(allowed_clusters=("standalone",))
    broker.do(catalog.plan_create_tenant("acme", tenant))
    topic = parse_topic("acme/ns/t")
    before = broker.store.load()
    broker.do(
        catalog.plan_create_namespace(
            name,
            grants=NamespaceGrants(roles={"a": ("produce",)}),
            topic_grants={topic: TopicGrants(roles={"b": ("consume",)})},
            subscription_grants={"s": SubscriptionGrants(roles=("c",))},
        )
    )
    assert catalog.namespace_grants(name).roles == {"a": ("produce",)}
    assert catalog.topic_grants(topic.full).roles == {"b": ("consume",)}
    assert catalog.subscription_grants(name, "s") == SubscriptionGrants(roles=("c",))
    broker.do(catalog.plan_delete_namespace(name))
    assert {key for key, _ in broker.store.load()} == {key for key, _ in before}
    with pytest.raises(RefusalError, match="is not valid"):
        catalog.plan_create_namespace(name, grants=NamespaceGrants(roles={"": ("produce",)}))


def test_metadata_that_is_rebuilt_from_its_copy_has_the_grants(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_namespace_grant(NS, "a", BOTH))
    broker.do(catalog.plan_subscription_grant(NS, "s", ["a"]))
    rebuilt = rebuild_rows(broker.store.load(), [], cluster="standalone", now_ms=1)
    store = type(broker.store)()
    copied = Broker(store)
    copied.catalog = type(catalog)("standalone", rebuilt.rows)
    assert copied.catalog.namespace_grants(NS) == catalog.namespace_grants(NS)
    assert copied.catalog.subscription_grants(NS, "s") == catalog.subscription_grants(NS, "s")
