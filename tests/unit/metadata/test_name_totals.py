"""The names in a tenant's grants and policies have a bound together."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName
from headgate.metadata import name_totals
from headgate.metadata.errors import RefusalError
from headgate.metadata.grants import NamespaceGrants, SubscriptionGrants, TopicGrants
from headgate.metadata.name_totals import NAME_BYTES, ROW_BYTES
from headgate.metadata.policies import DispatchRate
from headgate.metadata.rows import TenantRow
from tests.unit.metadata.catalog_rig import NS, Broker, T, refused

CONSUME = frozenset({"consume"})
RATE = DispatchRate(dispatch_throttling_rate_in_msg=1)
WIDE = "\N{GRINNING FACE}" * 512
BOUND = 16_000


@pytest.fixture(autouse=True)
def _small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_totals, "NAMES_OF_TENANT_BYTES_MAX", BOUND)


def of_tenant(broker: Broker, tenant: str = "public") -> int:
    return broker.catalog._state._names.of_tenant(tenant)


def test_short_roles_count_what_they_take_and_have_a_bound(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    roles = [f"{number}" for number in range(30)]
    broker.do(catalog.plan_subscription_grant(NS, "s0", roles))
    assert of_tenant(broker) == ROW_BYTES + len(f"{NS}/s0") + 30 * NAME_BYTES + 50
    broker.do(catalog.plan_subscription_grant(NS, "s1", roles))
    room = BOUND - of_tenant(broker)
    assert room < ROW_BYTES + 30 * NAME_BYTES
    other = NamespaceName("public", "other")
    many = dict.fromkeys(roles, ("consume",))
    for plan in (
        lambda: catalog.plan_subscription_grant(NS, "s2", roles),
        lambda: catalog.plan_subscription_rate(T, "s" * room, RATE),
        lambda: catalog.plan_topic_grant(T, WIDE, CONSUME),
        lambda: catalog.plan_namespace_grant(NS, WIDE, CONSUME),
        lambda: catalog.plan_create_namespace(other, grants=NamespaceGrants(roles=many)),
        lambda: catalog.plan_create_namespace(other, topic_grants={T: TopicGrants(roles=many)}),
        lambda: catalog.plan_create_namespace(
            other, subscription_grants={"s": SubscriptionGrants(roles=tuple(roles))}
        ),
    ):
        with pytest.raises(RefusalError, match="of tenant public would take") as caught:
            plan()
        assert refused(caught)[0] == 412
    assert catalog.in_flight_count == 0
    broker.do(catalog.plan_topic_grant(T, "r", CONSUME))
    broker.do(catalog.plan_subscription_rate(T, "s", RATE))
    tenant = TenantRow(allowed_clusters=("standalone",), admin_roles=())
    broker.do(catalog.plan_create_tenant("lodger", tenant))
    broker.do(catalog.plan_create_namespace(NamespaceName("lodger", "ns"), grants=NamespaceGrants(
        roles=many)))  # fmt: skip
    assert of_tenant(broker, "lodger") > 30 * NAME_BYTES


def test_what_is_revoked_or_deleted_is_given_back_and_a_restart_finds_the_rest(
    broker: Broker,
) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    broker.do(catalog.plan_topic_grant(T, "r", CONSUME))
    broker.do(catalog.plan_namespace_grant(NS, "r", CONSUME))
    broker.do(catalog.plan_subscription_grant(NS, "s/with/slashes", ["r"]))
    broker.do(catalog.plan_subscription_rate(T, "s", RATE))
    present = of_tenant(broker)
    assert present > 3 * ROW_BYTES
    assert of_tenant(broker.restarted()) == present
    broker.do(catalog.plan_subscription_rate(T, "s", None))
    broker.do(catalog.plan_subscription_grant(NS, "s/with/slashes", []))
    broker.do(catalog.plan_topic_revoke(T, "r"))
    broker.do(catalog.plan_namespace_grant(NS, "r", frozenset()))
    assert of_tenant(broker) == of_tenant(broker.restarted()) == 0


def test_a_role_that_is_not_ascii_counts_its_widest_form(broker: Broker) -> None:
    broker.do(broker.catalog.plan_namespace_grant(NS, "r" * 99 + "\N{GRINNING FACE}", CONSUME))
    assert of_tenant(broker) == ROW_BYTES + len(str(NS)) + NAME_BYTES + 800
