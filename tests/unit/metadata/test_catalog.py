"""The domain model: what may be created, changed and deleted, and who sees it when."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError, InputError, StorageError
from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import (
    BacklogQuota,
    QuotaKind,
    Retention,
)
from headgate.metadata.rows import SchemaRow, TenantRow
from tests.unit.metadata.catalog_rig import NS, PT, Broker, refused


def test_a_data_directory_belongs_to_one_cluster(broker: Broker) -> None:
    with pytest.raises(InputError, match="belongs to cluster 'standalone'"):
        Catalog("other", broker.store.load())


def test_a_second_identical_create_is_refused_while_the_first_is_in_flight(
    catalog: Catalog,
) -> None:
    tenant = TenantRow(allowed_clusters=("standalone",))
    change = catalog.plan_create_tenant("acme", tenant)
    assert catalog.tenant("acme") is None
    with pytest.raises(RefusalError) as caught:
        catalog.plan_create_tenant("acme", tenant)
    assert refused(caught) == (409, "Tenant already exist")
    catalog.apply(change)
    assert catalog.tenant("acme") == tenant


def test_a_failed_commit_takes_what_was_planned_upon_it_along(broker: Broker) -> None:
    catalog = broker.catalog
    tenant = catalog.plan_create_tenant("acme", TenantRow(allowed_clusters=("standalone",)))
    catalog.plan_create_namespace(NamespaceName("acme", "ns"))
    broker.store.fail_next(StorageError("full", retryable=True))
    with pytest.raises(StorageError):
        broker.store.commit(tenant.writes)
    catalog.abandon_all()
    assert catalog.tenants() == ["public", "pulsar"]
    with pytest.raises(RefusalError, match="Tenant does not exist"):
        catalog.plan_create_namespace(NamespaceName("acme", "ns"))
    broker.do(catalog.plan_create_tenant("acme", TenantRow(allowed_clusters=("standalone",))))


def test_topics_are_found_by_name_number_and_namespace(broker: Broker) -> None:
    catalog = broker.catalog
    for name in ("b", "a"):
        broker.do(catalog.plan_create_topic(parse_topic(name), now_ms=1))
    assert catalog.topics(NS) == ["persistent://public/default/a", "persistent://public/default/b"]
    assert catalog.topics(NamespaceName("public", "none")) == []
    numbers = catalog.topic_numbers()
    found = {row.name for n in numbers if (row := catalog.topic_by_number(n)) is not None}
    assert found == set(catalog.topics(NS))
    assert broker.restarted().catalog.topic_numbers() == numbers
    broker.do(catalog.plan_delete_topic(parse_topic("a")))
    (left,) = catalog.topic_numbers()
    (gone,) = numbers - {left}
    assert catalog.topic_by_number(left) == catalog.topic(parse_topic("b").full)
    assert catalog.topic_by_number(gone) is None


MIB = 1 << 20
SIZE: QuotaKind = "destination_storage"
AGE: QuotaKind = "message_age"
LARGE = BacklogQuota("producer_exception", MIB)
OLD = BacklogQuota("producer_exception", -1, 60)
NO_RETENTION = Retention()


def test_dynamic_settings(broker: Broker) -> None:
    broker.do(broker.catalog.plan_setting("b", "2"))
    broker.do(broker.catalog.plan_setting("a", "1"))
    assert list(broker.restarted().catalog.settings().items()) == [("a", "1"), ("b", "2")]
    broker.do(broker.catalog.plan_setting("a", None))
    assert broker.restarted().catalog.settings() == {"b": "2"}


def test_dynamic_settings_in_flight(broker: Broker) -> None:
    broker.do(broker.catalog.plan_setting("b", "2"))
    broker.do(broker.catalog.plan_setting("c", "3"))
    broker.catalog.plan_setting("a", "1")
    broker.catalog.plan_setting("b", "4")
    broker.catalog.plan_setting("c", None)
    assert broker.catalog.planned_settings() == {"a": "1", "b": "4"}
    assert broker.catalog.settings() == {"b": "2", "c": "3"}
    broker.catalog.abandon_all()
    assert broker.catalog.planned_settings() == {"b": "2", "c": "3"}


SCHEMA = SchemaRow(type=4, data=b"{}", properties={"k": "v"})


def test_partitions_share_a_schema(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    broker.do(catalog.plan_schema(PT.partition_name(1), SCHEMA, None))
    assert catalog.schema(PT) == catalog.schema(PT.partition_name(0)) == SCHEMA
    broker.do(catalog.plan_delete_topic(PT.partition_name(1)))
    assert catalog.schema(PT) == SCHEMA
    broker.do(catalog.plan_delete_topic(PT))
    assert catalog.schema(PT) is None


def test_lists_are_read_in_pages(broker: Broker) -> None:
    catalog, namespace = broker.catalog, parse_topic("persistent://public/default/x").namespace
    for number in range(5):
        broker.do(catalog.plan_create_namespace(NamespaceName("public", f"n{number}")))
        topic = parse_topic(f"persistent://public/default/p{number}")
        broker.do(catalog.plan_create_partitioned(topic, 2, now_ms=0))
    namespaces = catalog.namespaces("public")
    assert catalog.namespaces_after("public", "", 3) == namespaces[:3]
    assert catalog.namespaces_after("public", namespaces[2], 100) == namespaces[3:]
    partitioned = catalog.partitioned_topics(namespace)
    assert len(partitioned) == 5
    assert catalog.partitioned_after(namespace, "", 4) == partitioned[:4]
    assert catalog.partitioned_after(namespace, partitioned[3], 4) == partitioned[4:]
    assert catalog.partitioned_after(namespace, partitioned[4], 4) == []
    assert catalog.topics_after(namespace, "", 100) == catalog.topics(namespace)


def test_two_topics_with_one_number_are_refused() -> None:
    """They would have each other's messages."""
    names = ("persistent://t/n/x", "persistent://t/n/y")
    rows = {
        ("topic", name): f'{{"name":"{name}","number":7,"created_ms":1}}'.encode() for name in names
    }
    with pytest.raises(CorruptionError, match="n/x and persistent://t/n/y of the metadata have"):
        Catalog("standalone", rows)
