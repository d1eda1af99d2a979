"""Changes of tenants and namespaces."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import (
    BacklogQuota,
    DispatchRate,
    NamespacePolicies,
    QuotaKind,
    Retention,
)
from headgate.metadata.rows import TenantRow
from tests.unit.metadata.catalog_rig import Broker, refused


def test_first_boot_makes_what_every_broker_has(catalog: Catalog) -> None:
    assert catalog.clusters() == ["standalone"]
    assert catalog.tenants() == ["public", "pulsar"]
    assert catalog.namespaces("public") == ["public/default"]
    assert catalog.plan_first_boot() is None


def test_system_namespaces_are_made_once(broker: Broker) -> None:
    system = [NamespaceName("headgate", "telemetry"), NamespaceName("headgate", "other")]
    change = broker.catalog.plan_first_boot(system_namespaces=system)
    assert change is not None
    broker.do(change)
    assert broker.catalog.namespaces("headgate") == ["headgate/other", "headgate/telemetry"]
    assert broker.restarted().catalog.plan_first_boot(system_namespaces=system) is None


@pytest.mark.parametrize(
    ("clusters", "text"),
    [((), "Clusters cannot be empty or blank"), ((" ",), "Clusters cannot be empty or blank"),
     (("nope",), "Clusters do not exist")],
)  # fmt: skip
def test_a_tenant_needs_clusters_that_exist(
    catalog: Catalog, clusters: tuple[str, ...], text: str
) -> None:
    for plan in (catalog.plan_create_tenant, catalog.plan_update_tenant):
        with pytest.raises(RefusalError) as caught:
            plan("public", TenantRow(allowed_clusters=clusters))
        assert refused(caught) == (412, text)


def test_tenants_are_updated_and_deleted(broker: Broker) -> None:
    row = TenantRow(admin_roles=("me",), allowed_clusters=("standalone",))
    with pytest.raises(RefusalError, match="Tenant acme not found"):
        broker.catalog.plan_update_tenant("acme", row)
    broker.do(broker.catalog.plan_update_tenant("pulsar", row))
    assert broker.restarted().catalog.tenant("pulsar") == row
    with pytest.raises(RefusalError, match="Tenant doesn't exist"):
        broker.catalog.plan_delete_tenant("acme")
    with pytest.raises(RefusalError, match="still has active namespaces"):
        broker.catalog.plan_delete_tenant("public")
    broker.do(broker.catalog.plan_delete_namespace(NamespaceName("pulsar", "system")))
    broker.do(broker.catalog.plan_delete_tenant("pulsar"))
    assert broker.restarted().catalog.tenants() == ["public"]


def test_namespaces_are_created_with_policies_and_deleted_when_empty(broker: Broker) -> None:
    name = NamespaceName("public", "other")
    rate = DispatchRate(5)
    broker.do(
        broker.catalog.plan_create_namespace(name, policies=NamespacePolicies(dispatch_rate=rate))
    )
    with pytest.raises(RefusalError, match="Namespace already exists"):
        broker.catalog.plan_create_namespace(name)
    assert broker.restarted().catalog.namespace_policies(name).dispatch_rate == rate
    topic = parse_topic("persistent://public/other/t")
    creation = broker.catalog.plan_create_topic(topic, now_ms=1)
    with pytest.raises(RefusalError) as caught:
        broker.catalog.plan_delete_namespace(name)
    assert refused(caught) == (409, "Cannot delete non empty namespace")
    broker.do(creation)
    broker.do(broker.catalog.plan_delete_topic(topic))
    broker.do(broker.catalog.plan_delete_namespace(name))
    assert broker.catalog.namespace(name) is None
    with pytest.raises(RefusalError, match="Namespace not found"):
        broker.catalog.plan_create_topic(topic, now_ms=1)


def test_a_tenant_has_no_more_namespaces_than_the_setting_says(catalog: Catalog) -> None:
    """Pulsar's text; what is planned counts, too."""
    limit = 2
    catalog.limit_namespaces(lambda: limit)
    catalog.plan_create_namespace(NamespaceName("public", "second"))
    with pytest.raises(RefusalError) as caught:
        catalog.plan_create_namespace(NamespaceName("public", "third"))
    assert refused(caught) == (412, "Exceed the maximum number of namespace in tenant :public")
    limit = -1
    catalog.plan_create_namespace(NamespaceName("public", "third"))


MIB = 1 << 20


SIZE: QuotaKind = "destination_storage"


LARGE = BacklogQuota("producer_exception", MIB)


def test_a_new_namespaces_quotas_must_fit_its_retention(catalog: Catalog) -> None:
    name = NamespaceName("public", "new")
    policies = NamespacePolicies(retention=Retention(-1, 1), backlog_quotas={SIZE: LARGE})
    with pytest.raises(RefusalError, match="Backlog Quota exceeds") as caught:
        catalog.plan_create_namespace(name, policies=policies)
    assert caught.value.status == 412
    catalog.plan_create_namespace(name, policies=NamespacePolicies(backlog_quotas={SIZE: LARGE}))
