"""The properties of a tenant's namespaces and topics have a bound together."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName
from headgate.base.text_memory import properties_bytes
from headgate.metadata import property_totals
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import TenantRow
from tests.unit.metadata.catalog_rig import NS, PT, Broker, T, refused

ONE = {"k": "v"}
SIZE = properties_bytes(ONE)


@pytest.fixture(autouse=True)
def _room_for_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(property_totals, "PROPERTIES_OF_TENANT_BYTES_MAX", 3 * SIZE)


def of_tenant(broker: Broker, tenant: str = "public") -> int:
    return broker.catalog._state._properties.of_tenant(tenant)


def fill(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_namespace_properties(NS, ONE))
    broker.do(catalog.plan_create_topic(T, now_ms=1, properties=ONE))
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1, properties=ONE))
    assert of_tenant(broker) == 3 * SIZE


def test_beyond_it_no_more_are_taken(broker: Broker) -> None:
    fill(broker)
    catalog, new = broker.catalog, NamespaceName("public", "new")
    for plan in (
        lambda: catalog.plan_namespace_properties(NS, {"l": ""}),
        lambda: catalog.plan_topic_properties(T, {"k": "longer"}),
        lambda: catalog.plan_topic_properties(PT.partition_name(1), ONE),
        lambda: catalog.plan_create_namespace(new, properties=ONE),
    ):
        with pytest.raises(RefusalError, match="of tenant public would take") as caught:
            plan()
        assert refused(caught)[0] == 412
    assert catalog.in_flight_count == 0
    broker.do(catalog.plan_topic_properties(T, {"k": "w"}))
    broker.do(catalog.plan_create_namespace(new))
    tenant = TenantRow(allowed_clusters=("standalone",), admin_roles=())
    broker.do(catalog.plan_create_tenant("other", tenant))
    broker.do(catalog.plan_create_namespace(NamespaceName("other", "ns"), properties=ONE))
    assert (of_tenant(broker), of_tenant(broker, "other")) == (3 * SIZE, SIZE)


def test_what_is_deleted_is_given_back_and_a_restart_finds_the_rest(broker: Broker) -> None:
    fill(broker)
    assert broker.catalog.bounded_bytes == 3 * SIZE
    broker.do(broker.catalog.plan_topic_properties(T, removed=["k"]))
    assert of_tenant(broker) == 2 * SIZE
    broker.do(broker.catalog.plan_delete_topic(T))
    broker.do(broker.catalog.plan_delete_topic(PT))
    assert of_tenant(broker) == SIZE
    assert of_tenant(broker.restarted()) == SIZE


def test_changes_in_flight_count_and_those_that_fail_do_not(broker: Broker) -> None:
    catalog = broker.catalog
    for number in range(3):
        catalog.plan_create_namespace(NamespaceName("public", f"n{number}"), properties=ONE)
    with pytest.raises(RefusalError, match="bytes of memory"):
        catalog.plan_namespace_properties(NS, ONE)
    catalog.abandon_all()
    assert of_tenant(broker) == 0
    fill(broker)


def test_more_than_that_of_an_earlier_release_stays(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker)
    monkeypatch.setattr(property_totals, "PROPERTIES_OF_TENANT_BYTES_MAX", SIZE)
    again = broker.restarted()
    again.do(again.catalog.plan_topic_properties(T, removed=["k"]))
    with pytest.raises(RefusalError, match="bytes of memory"):
        again.catalog.plan_topic_properties(T, ONE)
