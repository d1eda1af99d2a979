"""Grants over HTTP, and why something is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.admin.permissions import GRANT_BYTES, NEW_GRANTS_MAX
from headgate.admin.streaming import STEP_BYTES
from headgate.base.identity import SCOPE_KEY, Identity
from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.rows import TenantRow
from headgate.policy.access_law import AccessLaw
from headgate.policy.settings import Settings
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

N = "/admin/v2/namespaces/public/default"
T = "/admin/v2/persistent/public/default/t"
TOPIC = "persistent://public/default/t"


def test_grants_on_a_namespace(api: Ask) -> None:
    assert api("GET", f"{N}/permissions").json() == {}
    assert api("POST", f"{N}/permissions/a%2Fb", ["consume", "produce"]).status == 204
    assert api("POST", f"{N}/permissions/sink", ["sinks", "functions", "sources"]).status == 204
    assert api("GET", f"{N}/permissions").json() == {
        "a/b": ["produce", "consume"], "sink": ["functions", "sources", "sinks"],
    }  # fmt: skip
    assert api("DELETE", f"{N}/permissions/a%2Fb").status == 204
    assert api("DELETE", f"{N}/permissions/never").status == 204
    assert list(api("GET", f"{N}/permissions").json()) == ["sink"]


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (["packages"], 412, "Headgate has no packages"),
        (["write"], 400, "write"),
        ("produce", 400, "Cannot deserialize"),
        (None, 400, "A list of actions is needed"),
    ],
)
def test_other_actions_are_refused(api: Ask, body: Any, status: int, text: str) -> None:
    for path in (f"{N}/permissions/r", f"{T}/permissions/r"):
        answer = api("POST", path, body)
        assert answer.status == status
        assert text in answer.reason
    assert api("GET", f"{N}/permissions").json() == {}


def test_grants_on_a_topic_are_shown_with_those_on_its_namespace(api: Ask) -> None:
    missing = api("POST", f"{T}/permissions/r", ["produce"])
    assert (missing.status, missing.reason) == (404, f"Topic {TOPIC} not found")
    api("PUT", f"{T}/partitions", 2)
    assert api("POST", f"{T}/permissions/r", ["produce"]).status == 204
    assert api("POST", f"{T}-partition-1/permissions/one", ["consume"]).status == 204
    assert api("POST", f"{N}/permissions/r", ["consume"]).status == 204
    assert api("GET", f"{T}/permissions").json() == {"r": ["produce", "consume"]}
    assert api("GET", f"{T}-partition-1/permissions").json() == {
        "one": ["consume"], "r": ["produce", "consume"],
    }  # fmt: skip
    assert api("DELETE", f"{T}/permissions/r").status == 204
    answer = api("DELETE", f"{T}/permissions/r")
    assert (answer.status, answer.reason) == (412, "Permissions are not set at the topic level")
    assert api("GET", "/admin/v2/persistent/public/no/t/permissions").status == 404


@pytest.mark.parametrize("path", [f"{N}/permissions", f"{T}/permissions"])
def test_the_grants_of_very_many_roles_come_in_pieces(
    broker: FakeFacade, api: Ask, path: str
) -> None:
    """They were one step of the loop: 15 ms for 4 MB, and of 20 administrators 0.3 s together."""
    catalog, name = broker.catalog, NamespaceName("public", "default")
    roles = [f"{'r' * 400}{number:03}" for number in range(1_000)]
    for role in roles:
        change = catalog.plan_namespace_grant(name, role, frozenset({"consume", "produce"}))
        broker.store.commit(change.writes)
        catalog.apply(change)
    before = broker.gave_way
    assert api("GET", path).json() == {role: ["produce", "consume"] for role in roles}
    assert broker.gave_way - before >= 400_000 // STEP_BYTES
    assert broker.reserved_bytes == 0


def test_grants_on_subscriptions(api: Ask) -> None:
    path = f"{N}/permissions/subscription"
    assert api("GET", path).json() == {}
    assert api("POST", f"{path}/s", ["b", "a"]).status == 204
    assert api("POST", f"{path}/s", None).status == 400
    assert api("GET", path).json() == {"s": ["a", "b"]}
    assert api("DELETE", f"{N}/permissions/s/a").status == 204
    assert api("GET", path).json() == {"s": ["b"]}
    assert api("DELETE", f"{N}/permissions/other/a").reason == "couldn't find subscription"


def test_the_mode_of_subscriptions(api: Ask) -> None:
    path = f"{N}/subscriptionAuthMode"
    assert api("GET", path).json() == "None"
    assert api("POST", path, "Prefix").status == 204
    assert api("GET", path).json() == "Prefix"
    answer = api("POST", path, "Suffix")
    assert (answer.status, answer.reason.endswith("None and Prefix are allowed")) == (400, True)


def test_the_policies_of_a_namespace_show_its_grants_and_a_new_one_takes_them(
    api: Ask, broker: FakeFacade
) -> None:
    policies = {
        "auth_policies": {
            "namespace_auth": {"r": ["produce", "consume"], "none": []},
            "destination_auth": {"persistent://public/ns/t": {"q": ["consume"]}},
            "subscription_auth_roles": {"s": ["q"]},
        },
        "subscription_auth_mode": "Prefix",
    }
    ns = "/admin/v2/namespaces/public/ns"
    assert api("PUT", ns, policies).status == 204
    shown = api("GET", ns).json()
    assert shown["auth_policies"] == {
        "namespace_auth": {"r": ["produce", "consume"]},
        "destination_auth": {"persistent://public/ns/t": {"q": ["consume"]}},
        "subscription_auth_roles": {"s": ["q"]},
    }
    assert shown["subscription_auth_mode"] == "Prefix"
    assert (broker.reserved_most, broker.reserved_bytes) == (2 * GRANT_BYTES, 0)
    assert api("DELETE", ns).status == 204
    assert api("PUT", ns).status == 204
    assert api("GET", f"{ns}/permissions/subscription").json() == {}


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        ({"destination_auth": {TOPIC: {"r": ["produce"]}}}, "is not a persistent topic of"),
        ({"destination_auth": {"a/b": {"r": ["produce"]}}}, "Invalid topic name"),
        ({"namespace_auth": {"r": ["packages"]}}, "Headgate has no packages"),
        ({"namespace_auth": {"": ["produce"]}}, "is not valid"),
        ({"subscription_auth_roles": {"a\nb": ["r"]}}, "Invalid subscription name"),
    ],
)
def test_bad_grants_create_no_namespace(api: Ask, policies: Any, text: str) -> None:
    answer = api("PUT", "/admin/v2/namespaces/public/ns", {"auth_policies": policies})
    assert answer.status == 412
    assert text in answer.reason
    assert api("GET", "/admin/v2/namespaces/public/ns").status == 404


def test_the_grants_of_a_new_namespace_are_bounded_all_together(api: Ask) -> None:
    """They are one change: 60,000 subscriptions in a body of 0.9 MB held the loop for 0.4 s."""
    ns, third = "/admin/v2/namespaces/public/ns", NEW_GRANTS_MAX // 3
    asked = {
        "namespace_auth": {f"r{number}": ["produce"] for number in range(third)},
        "subscription_auth_roles": {f"s{number}": ["r"] for number in range(third)},
    }
    assert api("PUT", ns, {"auth_policies": asked}).status == 204
    assert api("DELETE", ns).status == 204
    asked["destination_auth"] = {"persistent://public/ns/t": asked["namespace_auth"]}  # type: ignore[assignment]
    answer = api("PUT", ns, {"auth_policies": asked})
    assert (answer.status, f"{NEW_GRANTS_MAX} are allowed" in answer.reason) == (412, True)
    assert api("GET", ns).status == 404


@pytest.fixture
def acme(broker: FakeFacade) -> FakeFacade:
    """A broker with authorization, and a tenant of an administrator."""
    settings = Settings(authorizationEnabled=True, superUserRoles="root")
    tenant = TenantRow(admin_roles=("admin",), allowed_clusters=("standalone",))
    broker.catalog.apply(broker.catalog.plan_create_tenant("acme", tenant))
    broker.authorizer = AccessLaw(broker.catalog, settings)
    return broker


CHECK = "/admin/v2/headgate/permissions"


def test_the_reason_of_a_decision(acme: FakeFacade, api: Ask) -> None:
    ask = f"{CHECK}?role=x&operation=topic.produce&resource="
    as_admin = {SCOPE_KEY: Identity("admin")}
    answer = api("GET", f"{ask}persistent://acme/ns/t", None, as_admin)
    assert answer.json() == {
        "allowed": False,
        "reason": "role x has no produce on topic persistent://acme/ns/t or namespace acme/ns",
    }
    assert api("GET", f"{ask}persistent://public/default/t", None, as_admin).status == 401
    assert api("GET", f"{CHECK}?role=x&operation=tenant.list", None, as_admin).status == 401
    as_root = {SCOPE_KEY: Identity("root")}
    found = api("GET", f"{CHECK}?role=root&proxy=x&operation=tenant.list", None, as_root).json()
    assert found["reason"].startswith("its proxy may not: only super users may do that")


@pytest.mark.parametrize(
    "resource", ["acme/ns/t", "persistent://acme/ns", "persistent://acme/ns/a://public/b"]
)
def test_a_resource_is_asked_about_by_its_full_name(
    acme: FakeFacade, api: Ask, resource: str
) -> None:
    path = f"{CHECK}?role=x&operation=topic.produce&resource={resource}"
    assert api("GET", path, None, {SCOPE_KEY: Identity("admin")}).status == 412


OWN = f"{CHECK}/own"


def test_a_role_asks_what_it_may_do_itself(acme: FakeFacade, api: Ask) -> None:
    path = (
        f"{OWN}?resource=persistent://acme/ns/t&subscription=s"
        "&operations=topic.unload,%20subscription.skip,no.such,topic.unload,tenant.list"
    )
    as_admin = {SCOPE_KEY: Identity("admin")}
    assert api("GET", path, None, as_admin).json() == {
        "role": "admin", "allowed": ["topic.unload", "subscription.skip"],
    }  # fmt: skip
    assert api("PUT", "/admin/v2/namespaces/acme/ns", None, as_admin).status == 204
    catalog = acme.catalog
    topic = parse_topic("persistent://acme/ns/t")
    catalog.apply(catalog.plan_namespace_grant(topic.namespace, "app", frozenset({"consume"})))
    as_app = {SCOPE_KEY: Identity("app")}
    assert api("GET", path, None, as_app).json()["allowed"] == ["subscription.skip"]
    catalog.apply(catalog.plan_subscription_grant(topic.namespace, "s", ["other"]))
    assert api("GET", path, None, as_app).json()["allowed"] == []
    assert api("GET", OWN, None, as_app).json() == {"role": "app", "allowed": []}
    assert api("GET", f"{OWN}?resource=acme/ns/t", None, as_app).status == 412
    behind = {SCOPE_KEY: Identity("root", "app")}
    assert api("GET", path, None, behind).json() == {"role": "app", "allowed": []}


def test_without_authentication_nobody_asks_and_may_do_all(api: Ask) -> None:
    assert api("GET", f"{OWN}?operations=tenant.list").json() == {
        "role": "", "allowed": ["tenant.list"],
    }  # fmt: skip


def test_expiring_on_all_subscriptions_needs_a_right_on_each(acme: FakeFacade, api: Ask) -> None:
    as_root, as_reader = ({SCOPE_KEY: Identity(role)} for role in ("root", "reader"))
    assert api("PUT", T, None, as_root).status == 204
    for name in ("mine", "theirs"):
        assert api("PUT", f"{T}/subscription/{name}", None, as_root).status == 204
    catalog = acme.catalog
    namespace = parse_topic(TOPIC).namespace
    catalog.apply(catalog.plan_namespace_grant(namespace, "reader", frozenset({"consume"})))
    path = f"{T}/all_subscription/expireMessages/0"
    assert api("POST", path, None, as_reader).status == 204
    catalog.apply(catalog.plan_subscription_grant(namespace, "theirs", ["other"]))
    assert api("POST", path, None, as_reader).status == 401
    assert api("POST", f"{T}/subscription/theirs/skip_all", None, as_reader).status == 401
    assert api("POST", f"{T}/subscription/mine/skip_all", None, as_reader).status == 204
    assert api("POST", path, None, as_root).status == 204


def test_the_reason_why_a_broker_is_not_ready_is_for_super_users(
    acme: FakeFacade, api: Ask
) -> None:
    acme.unready = "the file /data/metadata.db is gone"
    ready = "/admin/v2/brokers/ready"
    assert api("GET", ready).reason == "Broker is not ready"
    assert api("GET", ready, None, {SCOPE_KEY: Identity("root")}).reason == acme.unready
