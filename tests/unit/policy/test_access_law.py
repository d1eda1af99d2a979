"""Who may do what, and why."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from headgate.base.identity import NOBODY, Identity
from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.grants import Action
from headgate.metadata.rows import TenantRow
from headgate.policy.access_law import AccessLaw, Decision
from headgate.policy.settings import Settings

NS = NamespaceName("acme", "ns")
TOPIC = parse_topic("acme/ns/orders")
OTHER = parse_topic("acme/ns/other")
PARTS = parse_topic("acme/ns/parts")


class Rig:
    """A catalog with a tenant and a namespace, and the law over it."""

    def __init__(self, *, proxies: Iterable[str] = (), **settings: str) -> None:
        self.settings = Settings(authorizationEnabled=True, superUserRoles="root, deputy")
        for name, text in settings.items():
            self.settings.set(name, text)
        self.catalog = catalog = Catalog("c", {})
        first = catalog.plan_first_boot()
        assert first is not None
        catalog.apply(first)
        tenant = TenantRow(admin_roles=("admin",), allowed_clusters=("c",))
        catalog.apply(catalog.plan_create_tenant("acme", tenant))
        catalog.apply(catalog.plan_create_namespace(NS))
        for topic in (TOPIC, OTHER):
            catalog.apply(catalog.plan_create_topic(topic, now_ms=1))
        catalog.apply(catalog.plan_create_partitioned(PARTS, 2, now_ms=1))
        self.law = AccessLaw(catalog, self.settings, list(proxies))

    def grant(self, role: str, *actions: Action, topic: str = "") -> None:
        granted = frozenset(actions)
        if topic:
            change = self.catalog.plan_topic_grant(parse_topic(topic), role, granted)
        else:
            change = self.catalog.plan_namespace_grant(NS, role, granted)
        self.catalog.apply(change)

    def decide(
        self, role: str, operation: str, resource: str = "", subscription: str = ""
    ) -> Decision:
        return self.law.decide(Identity(role), operation, resource, subscription)

    def allows(self, role: str, operation: str, resource: str = "", subscription: str = "") -> bool:
        return self.decide(role, operation, resource, subscription).allowed


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_super_users_may_do_everything_that_has_a_rule(rig: Rig) -> None:
    for operation in ("tenant.create", "topic.produce", "metrics.read", "explain.broker"):
        assert rig.allows("root", operation, TOPIC.full)
        assert rig.allows("deputy", operation, TOPIC.full)
    assert rig.decide("root", "tenant.list").reason == "role root is a super user (superUserRoles)"
    assert rig.decide("root", "no.such").reason == "no rule allows no.such"
    assert not rig.allows("root", "no.such")


def test_a_client_without_a_role_may_only_ask_whether_the_broker_is_ready(rig: Rig) -> None:
    assert rig.law.decide(NOBODY, "broker.ready", "").allowed
    for operation in ("connection.open", "topic.produce", "cluster.read", "tenant.list"):
        assert rig.law.decide(NOBODY, operation, TOPIC.full).reason == "it has no role"


def test_administrators_may_do_everything_in_their_tenant_and_nothing_beside(rig: Rig) -> None:
    for operation in ("topic.produce", "topic.policy.write", "subscription.skip", "explain.read"):
        assert rig.allows("admin", operation, TOPIC.full)
        assert not rig.allows("admin", operation, "persistent://public/default/t")
    assert rig.allows("admin", "namespace.create", "acme/new")
    assert not rig.allows("admin", "namespace.create", "public/new")
    assert not rig.allows("admin", "tenant.update", "acme")
    assert not rig.allows("admin", "settings.write")
    assert rig.decide("admin", "topic.delete", TOPIC.full).reason == (
        "role admin administers tenant acme"
    )
    assert rig.decide("x", "topic.delete", TOPIC.full).reason == (
        "role x is neither a super user nor administers tenant acme"
    )


def test_a_grant_on_a_namespace_is_for_all_its_topics(rig: Rig) -> None:
    rig.grant("p", "produce")
    rig.grant("c", "consume")
    for topic in (TOPIC, OTHER, PARTS.partition_name(1)):
        assert rig.allows("p", "topic.produce", topic.full)
        assert not rig.allows("p", "topic.consume", topic.full, "s")
        assert rig.allows("c", "topic.consume", topic.full, "s")
        assert not rig.allows("c", "topic.produce", topic.full)
        for role in ("p", "c"):
            assert rig.allows(role, "topic.lookup", topic.full)
    assert rig.allows("p", "namespace.topics", "acme/ns")
    assert not rig.allows("p", "namespace.topics", "acme/other")
    assert not rig.allows("p", "topic.policy.read", TOPIC.full)
    assert rig.decide("p", "topic.produce", TOPIC.full).reason == (
        "produce of role p is granted on namespace acme/ns"
    )
    assert rig.decide("p", "topic.consume", TOPIC.full, "s").reason == (
        f"role p has no consume on topic {TOPIC} or namespace acme/ns"
    )
    assert rig.decide("x", "namespace.topics", "acme/ns").reason == (
        "role x has no produce or consume on namespace acme/ns"
    )


def test_a_grant_on_a_topic_is_for_it_alone(rig: Rig) -> None:
    rig.grant("p", "produce", topic=TOPIC.full)
    assert rig.allows("p", "topic.produce", TOPIC.full)
    assert rig.allows("p", "topic.stats", TOPIC.full)
    assert not rig.allows("p", "topic.produce", OTHER.full)
    assert not rig.allows("p", "namespace.topics", "acme/ns")
    assert rig.decide("p", "topic.produce", TOPIC.full).reason == (
        f"produce of role p is granted on topic {TOPIC}"
    )


def test_partitions_have_the_grants_of_their_topic_and_the_topic_not_theirs(rig: Rig) -> None:
    rig.grant("p", "produce", topic=PARTS.full)
    rig.grant("one", "produce", topic=PARTS.partition_name(1).full)
    assert rig.allows("p", "topic.produce", PARTS.full)
    assert rig.allows("p", "topic.produce", PARTS.partition_name(0).full)
    assert not rig.allows("one", "topic.produce", PARTS.full)
    assert not rig.allows("one", "topic.produce", PARTS.partition_name(0).full)
    assert rig.allows("one", "topic.produce", PARTS.partition_name(1).full)
    # Named like a partition, and none: the topic is not partitioned.
    rig.grant("q", "produce", topic=TOPIC.full)
    assert not rig.allows("q", "topic.produce", f"{TOPIC}-partition-0")


def test_only_the_named_roles_may_use_a_subscription(rig: Rig) -> None:
    rig.grant("a", "consume")
    rig.grant("b", "consume")
    rig.catalog.apply(rig.catalog.plan_subscription_grant(NS, "s", ["a", "without consume"]))
    assert rig.allows("a", "topic.consume", TOPIC.full, "s")
    assert not rig.allows("b", "subscription.skip", TOPIC.full, "s")
    assert rig.allows("b", "topic.consume", TOPIC.full, "another")
    assert not rig.allows("without consume", "topic.consume", TOPIC.full, "s")
    assert rig.allows("admin", "topic.consume", TOPIC.full, "s")
    assert "not among the roles that may use subscription s" in (
        rig.decide("b", "topic.consume", TOPIC.full, "s").reason
    )


def test_in_prefix_mode_a_subscription_begins_with_the_role(rig: Rig) -> None:
    rig.grant("a", "consume")
    rig.catalog.apply(rig.catalog.plan_subscription_auth_mode(NS, "Prefix"))
    assert rig.allows("a", "topic.consume", TOPIC.full, "a-mine")
    assert not rig.allows("a", "topic.consume", TOPIC.full, "b-mine")
    assert rig.allows("a", "topic.messages", TOPIC.full)
    assert "must begin with the role" in (
        rig.decide("a", "topic.consume", TOPIC.full, "mine").reason
    )


def test_wildcards_count_only_if_they_are_switched_on() -> None:
    for is_on in (False, True):
        rig = Rig(authorizationAllowWildcardsMatching=str(is_on).lower())
        rig.grant("team-*", "produce")
        rig.grant("*-reader", "consume", topic=TOPIC.full)
        rig.grant("a*b", "produce")
        assert rig.allows("team-x", "topic.produce", TOPIC.full) is is_on
        assert rig.allows("x-reader", "topic.consume", TOPIC.full, "s") is is_on
        assert not rig.allows("x-reader", "topic.produce", TOPIC.full)
        assert not rig.allows("axb", "topic.produce", TOPIC.full)
        assert not rig.allows("my-team-x", "topic.produce", TOPIC.full)


def test_a_client_behind_a_proxy_needs_the_permission_itself_and_its_proxy_too() -> None:
    rig = Rig(proxies=["proxy", "root"])
    rig.grant("p", "produce")
    rig.grant("proxy", "produce")

    def decide(proxy: str, role: str) -> Decision:
        return rig.law.decide(Identity(proxy, role), "topic.produce", TOPIC.full)

    assert decide("proxy", "p").allowed
    assert not decide("proxy", "nothing granted").allowed
    assert decide("unknown", "p").reason.startswith("its proxy may not: role unknown has no")
    # The power of a proxy that is a super user never decides for its client.
    assert decide("root", "p").allowed
    assert not decide("root", "nothing granted").allowed
    assert rig.decide("root", "topic.produce", TOPIC.full).reason == (
        "proxy root does not name its client"
    )


def test_metrics_are_for_super_users_and_the_roles_that_are_named() -> None:
    rig = Rig(headgateMetricsRoles="prometheus")
    assert rig.allows("prometheus", "metrics.read")
    assert not rig.allows("admin", "metrics.read")
    assert not rig.law.decide(NOBODY, "metrics.read", "").allowed
    everybody = Rig(headgateMetricsRoles="*")
    assert everybody.law.decide(NOBODY, "metrics.read", "").allowed


@pytest.mark.parametrize(
    "resource",
    ["", "acme", "acme/ns", "orders", "persistent://acme/ns/a://mine/b", "persistent://acme/ns/"],
)
def test_what_is_no_topic_is_refused_to_roles_with_grants(rig: Rig, resource: str) -> None:
    rig.grant("p", "produce")
    assert not rig.allows("p", "topic.produce", resource)


def test_a_tenant_that_does_not_exist_is_refused_like_one_that_does(rig: Rig) -> None:
    known = rig.decide("x", "topic.stats", "persistent://acme/ns/t").reason
    unknown = rig.decide("x", "topic.stats", "persistent://none/ns/t").reason
    assert known.replace("acme", "none") == unknown
