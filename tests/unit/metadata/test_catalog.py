"""The domain model: what may be created, changed and deleted, and who sees it when."""

from __future__ import annotations

import msgspec
import pytest

from headgate.base.errors import InputError, StorageError
from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.errors import RefusalError
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.policies import (
    BacklogQuota,
    DispatchRate,
    NamespacePolicies,
    QuotaKind,
    Retention,
)
from headgate.metadata.rows import Kind, PartitionedRow, SchemaRow, TenantRow, TopicRow

NS = NamespaceName("public", "default")
T = parse_topic("t")
PT = parse_topic("pt")


class Broker:
    """The least that owns a catalog: commits and applies at once."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.catalog = Catalog("standalone", self.store.load())
        first = self.catalog.plan_first_boot()
        if first is not None:
            self.do(first)

    def do(self, change: Change) -> Change:
        self.store.commit(change.writes)
        self.catalog.apply(change)
        return change

    def restarted(self) -> Broker:
        return Broker(self.store.crash_clone())


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def catalog(broker: Broker) -> Catalog:
    return broker.catalog


def refused(caught: pytest.ExceptionInfo[RefusalError]) -> tuple[int, str]:
    return caught.value.status, caught.value.reason


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


def test_one_policy_is_changed_and_the_others_are_left(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_namespace_policies(NS, retention=Retention(1, 1)))
    broker.do(catalog.plan_namespace_policies(NS, dispatch_rate=DispatchRate(5)))
    broker.do(catalog.plan_namespace_policies(NS, retention=None))
    assert catalog.namespace_policies(NS) == NamespacePolicies(dispatch_rate=DispatchRate(5))
    with pytest.raises(RefusalError, match="time limit"):
        catalog.plan_namespace_policies(NS, retention=Retention(-9, 0))
    assert catalog.in_flight_count == 0


def test_numbers_are_never_given_twice(broker: Broker) -> None:
    broker.do(broker.catalog.plan_create_topic(T, now_ms=1))
    first = broker.catalog.topic(T.full)
    assert first is not None
    broker.do(broker.catalog.plan_delete_topic(T))
    broker = broker.restarted()
    broker.do(broker.catalog.plan_create_topic(T, now_ms=2, properties={"a": "b"}))
    second = broker.catalog.topic(T.full)
    assert second is not None
    assert second.number > first.number
    assert (second.created_ms, second.properties) == (2, {"a": "b"})
    broker.catalog.plan_create_topic(parse_topic("u"), now_ms=3)
    broker.catalog.abandon_all()
    change = broker.do(broker.catalog.plan_create_topic(parse_topic("v"), now_ms=3))
    topics = [row.after for row in change.rows if row.kind is Kind.TOPIC]
    assert isinstance(topics[0], TopicRow)
    assert topics[0].number == second.number + 2


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


def test_a_name_is_taken_by_either_kind_of_topic(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    with pytest.raises(RefusalError, match="This topic already exists"):
        catalog.plan_create_partitioned(T, 2, now_ms=1)
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    with pytest.raises(RefusalError, match="This topic already exists"):
        catalog.plan_create_topic(PT, now_ms=1)


def test_partitions_are_made_with_their_topic_and_grow(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1, properties={"k": "v"}))
    assert catalog.topics(NS) == [PT.partition_name(0).full, PT.partition_name(1).full]
    assert catalog.partitioned_topics(NS) == [PT.full]
    broker.do(catalog.plan_delete_topic(PT.partition_name(0)))
    broker.do(catalog.plan_grow_partitioned(PT, 3, now_ms=2))
    assert len(catalog.topics(NS)) == 3
    row = broker.restarted().catalog.partitioned(PT.full)
    assert row == PartitionedRow(partitions=3, created_ms=1, properties={"k": "v"})
    with pytest.raises(RefusalError) as caught:
        catalog.plan_grow_partitioned(PT, 2, now_ms=2)
    assert caught.value.status == 422
    with pytest.raises(RefusalError, match="is not the partitioned topic"):
        catalog.plan_grow_partitioned(T, 2, now_ms=2)


def test_new_partitions_lack_subscriptions_until_that_is_noted_otherwise(broker: Broker) -> None:
    catalog = broker.catalog

    def incomplete() -> list[int]:
        names = [PT.partition_name(index) for index in range(4)]
        rows = [catalog.topic(name.full) for name in names]
        return [
            index for index, row in enumerate(rows) if row is not None and row.lacks_subscriptions
        ]

    broker.do(catalog.plan_create_topic(PT.partition_name(1), now_ms=1))
    assert incomplete() == []  # there is no partitioned topic: it is one like any other
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    assert incomplete() == [0]
    broker.do(catalog.plan_grow_partitioned(PT, 3, now_ms=2))
    broker.do(catalog.plan_delete_topic(PT.partition_name(1)))
    broker.do(catalog.plan_create_topic(PT.partition_name(1), now_ms=1))
    assert incomplete() == [0, 1, 2]
    catalog = broker.restarted().catalog
    assert incomplete() == [0, 1, 2]
    numbers = sorted(catalog.topic_numbers())
    change = catalog.plan_subscriptions_complete([numbers[0], 99])
    assert change is not None
    assert catalog.plan_subscriptions_complete([numbers[0]]) is None
    catalog.apply(change)
    assert len(incomplete()) == 2


def test_partitions_made_with_their_topic_lack_no_subscriptions(broker: Broker) -> None:
    broker.do(broker.catalog.plan_create_partitioned(PT, 2, now_ms=1))
    names = broker.catalog.topics(NS)
    assert not any(row.lacks_subscriptions for name in names if (row := broker.catalog.topic(name)))


def test_names_of_partitions(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    with pytest.raises(RefusalError, match="larger than"):
        catalog.plan_create_topic(PT.partition_name(2), now_ms=1)
    with pytest.raises(RefusalError, match="should not contain '-partition-'"):
        catalog.plan_create_partitioned(PT.partition_name(0), 2, now_ms=1)
    broker.do(catalog.plan_delete_topic(PT.partition_name(1)))
    broker.do(catalog.plan_create_topic(PT.partition_name(1), now_ms=1))
    broker.do(catalog.plan_create_topic(parse_topic("lone-partition-3"), now_ms=1))


def test_a_partitioned_topic_goes_with_its_partitions_and_policies(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    broker.do(catalog.plan_topic_policies(PT, dispatch_rate=DispatchRate(5)))
    broker.do(catalog.plan_delete_topic(PT))
    assert catalog.topics(NS) == []
    assert broker.restarted().catalog.topic_policies(PT).dispatch_rate is None
    with pytest.raises(RefusalError) as caught:
        catalog.plan_delete_topic(PT)
    assert refused(caught) == (404, f"Topic {PT} not found")


def test_topic_policies_belong_to_the_base_name(broker: Broker) -> None:
    catalog = broker.catalog
    rate = DispatchRate(5)
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    broker.do(catalog.plan_topic_policies(PT, dispatch_rate=rate))
    assert catalog.topic_policies(PT.partition_name(1)).dispatch_rate == rate
    with pytest.raises(RefusalError, match="for a partition"):
        catalog.plan_topic_policies(PT.partition_name(1), dispatch_rate=None)
    with pytest.raises(RefusalError) as caught:
        catalog.plan_topic_policies(T, dispatch_rate=rate)
    assert refused(caught) == (404, f"Topic {T} not found")
    change = broker.do(catalog.plan_topic_policies(PT, dispatch_rate=None))
    assert change.rows[0].after is None
    lone = parse_topic("lone-partition-3")
    broker.do(catalog.plan_create_topic(lone, now_ms=1))
    broker.do(catalog.plan_topic_policies(lone, dispatch_rate=rate))
    assert catalog.topic_policies(lone).dispatch_rate == rate


def test_rates_of_single_subscriptions(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    broker.do(catalog.plan_subscription_rate(T, "a", DispatchRate(1)))
    broker.do(catalog.plan_subscription_rate(T, "b", DispatchRate(2)))
    broker.do(catalog.plan_subscription_rate(T, "a", None))
    rates = broker.restarted().catalog.topic_policies(T).dispatch_rate_by_subscription
    assert rates == {"b": DispatchRate(2)}


MIB = 1 << 20
SIZE: QuotaKind = "destination_storage"
AGE: QuotaKind = "message_age"
LARGE = BacklogQuota("producer_exception", MIB)
OLD = BacklogQuota("producer_exception", -1, 60)
NO_RETENTION = Retention()


def test_backlog_quotas_are_set_by_type_and_survive_a_restart(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    for kind, quota in ((AGE, OLD), (SIZE, LARGE)):
        broker.do(catalog.plan_namespace_quota(NS, kind, quota))
        broker.do(catalog.plan_topic_quota(T, kind, quota, broker_retention=NO_RETENTION))
    again = broker.restarted().catalog
    assert again.namespace_policies(NS).backlog_quotas == {SIZE: LARGE, AGE: OLD}
    assert again.topic_policies(T).backlog_quotas == {SIZE: LARGE, AGE: OLD}
    broker.do(catalog.plan_namespace_quota(NS, SIZE, None))
    broker.do(catalog.plan_topic_quota(T, SIZE, None, broker_retention=NO_RETENTION))
    change = broker.do(catalog.plan_topic_quota(T, AGE, None, broker_retention=NO_RETENTION))
    assert change.rows[0].after is None
    assert broker.restarted().catalog.namespace_policies(NS).backlog_quotas == {AGE: OLD}


def test_two_types_in_flight_at_once_are_both_kept(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    changes = [
        catalog.plan_namespace_quota(NS, SIZE, LARGE),
        catalog.plan_namespace_quota(NS, AGE, OLD),
        catalog.plan_topic_quota(T, AGE, OLD, broker_retention=NO_RETENTION),
        catalog.plan_topic_quota(T, SIZE, LARGE, broker_retention=NO_RETENTION),
    ]
    assert catalog.namespace_policies(NS).backlog_quotas == {}
    for change in changes:
        broker.do(change)
    assert catalog.namespace_policies(NS).backlog_quotas == {SIZE: LARGE, AGE: OLD}
    assert catalog.topic_policies(T).backlog_quotas == {SIZE: LARGE, AGE: OLD}


def test_a_namespaces_quota_and_retention_are_compared_while_in_flight(catalog: Catalog) -> None:
    catalog.plan_namespace_policies(NS, retention=Retention(-1, 1))
    with pytest.raises(RefusalError, match=r"Backlog Quota exceeds .* for namespace") as caught:
        catalog.plan_namespace_quota(NS, SIZE, LARGE)
    assert caught.value.status == 412
    catalog.plan_namespace_policies(NS, retention=None)
    catalog.plan_namespace_quota(NS, SIZE, LARGE)
    with pytest.raises(
        RefusalError, match=r"Retention Quota must exceed .* for namespace"
    ) as caught:
        catalog.plan_namespace_policies(NS, retention=Retention(-1, 1))
    assert caught.value.status == 412
    catalog.plan_namespace_policies(NS, dispatch_rate=DispatchRate(5))
    assert catalog.in_flight_count == 4


def test_a_topics_quota_and_retention_are_compared_while_in_flight(catalog: Catalog) -> None:
    catalog.plan_create_topic(T, now_ms=1)
    catalog.plan_topic_policies(T, retention=Retention(1, -1))
    with pytest.raises(RefusalError, match=r"Backlog Quota exceeds .* for topic") as caught:
        catalog.plan_topic_quota(T, AGE, OLD, broker_retention=NO_RETENTION)
    assert caught.value.status == 412
    catalog.plan_topic_policies(T, retention=None)
    catalog.plan_topic_quota(T, AGE, OLD, broker_retention=NO_RETENTION)
    with pytest.raises(RefusalError, match=r"Retention Quota must exceed .* for topic") as caught:
        catalog.plan_topic_policies(T, retention=Retention(1, -1))
    assert caught.value.status == 412
    catalog.plan_topic_policies(T, dispatch_rate=DispatchRate(5))
    assert catalog.in_flight_count == 5


def test_a_topics_quota_is_compared_with_the_retention_in_force(catalog: Catalog) -> None:
    catalog.plan_create_topic(T, now_ms=1)
    small, wide = Retention(-1, 1), Retention(-1, 2)
    with pytest.raises(RefusalError):
        catalog.plan_topic_quota(T, SIZE, LARGE, broker_retention=small)
    catalog.plan_namespace_policies(NS, retention=wide)
    catalog.plan_topic_quota(T, SIZE, LARGE, broker_retention=small)
    catalog.plan_namespace_policies(NS, retention=small)
    with pytest.raises(RefusalError):
        catalog.plan_topic_quota(T, SIZE, LARGE, broker_retention=wide)
    # The other type may be set all the same, and what no longer fits may be removed.
    catalog.plan_topic_quota(T, AGE, OLD, broker_retention=wide)
    catalog.plan_topic_quota(T, SIZE, None, broker_retention=wide)
    catalog.plan_topic_policies(T, retention=wide)
    catalog.plan_topic_quota(T, SIZE, LARGE, broker_retention=small)


def test_a_topics_retention_is_compared_with_the_namespaces_quota(catalog: Catalog) -> None:
    catalog.plan_create_topic(T, now_ms=1)
    catalog.plan_namespace_quota(NS, SIZE, LARGE)
    with pytest.raises(RefusalError, match="for topic"):
        catalog.plan_topic_policies(T, retention=Retention(-1, 1))
    own = BacklogQuota("producer_exception", MIB - 1)
    catalog.plan_topic_quota(T, SIZE, own, broker_retention=NO_RETENTION)
    catalog.plan_topic_policies(T, retention=Retention(-1, 1))


def test_quotas_have_a_place(broker: Broker) -> None:
    catalog = broker.catalog
    with pytest.raises(RefusalError, match="Namespace not found"):
        catalog.plan_namespace_quota(NamespaceName("public", "none"), SIZE, LARGE)
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    for topic, status in ((PT.partition_name(0), 412), (T, 404)):
        with pytest.raises(RefusalError) as caught:
            catalog.plan_topic_quota(topic, SIZE, LARGE, broker_retention=NO_RETENTION)
        assert caught.value.status == status
    broker.do(catalog.plan_topic_quota(PT, SIZE, LARGE, broker_retention=NO_RETENTION))
    assert catalog.topic_policies(PT.partition_name(1)).backlog_quotas == {SIZE: LARGE}


def test_a_new_namespaces_quotas_must_fit_its_retention(catalog: Catalog) -> None:
    name = NamespaceName("public", "new")
    policies = NamespacePolicies(retention=Retention(-1, 1), backlog_quotas={SIZE: LARGE})
    with pytest.raises(RefusalError, match="Backlog Quota exceeds") as caught:
        catalog.plan_create_namespace(name, policies=policies)
    assert caught.value.status == 412
    catalog.plan_create_namespace(name, policies=NamespacePolicies(backlog_quotas={SIZE: LARGE}))


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


SCHEMA = SchemaRow(type=4, name="s", data=b"{}", properties={"k": "v"})


def test_a_schema_is_said_once_and_goes_with_its_topic(broker: Broker) -> None:
    catalog = broker.catalog
    with pytest.raises(RefusalError, match="not found"):
        catalog.plan_schema(T, SCHEMA)
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    broker.do(catalog.plan_schema(T, SCHEMA))
    with pytest.raises(RefusalError, match="has a schema"):
        catalog.plan_schema(T, SCHEMA)
    catalog = broker.restarted().catalog
    assert catalog.schema(T) == SCHEMA
    catalog.apply(catalog.plan_delete_topic(T))
    assert catalog.schema(T) is None


def test_partitions_share_a_schema(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1))
    broker.do(catalog.plan_schema(PT.partition_name(1), SCHEMA))
    assert catalog.schema(PT) == catalog.schema(PT.partition_name(0)) == SCHEMA
    broker.do(catalog.plan_delete_topic(PT.partition_name(1)))
    assert catalog.schema(PT) == SCHEMA
    broker.do(catalog.plan_delete_topic(PT))
    assert catalog.schema(PT) is None


def test_a_partitioned_topic_takes_over_the_schema_of_what_becomes_its_partition(
    broker: Broker,
) -> None:
    catalog = broker.catalog
    for index, name in ((0, "none"), (1, "first"), (2, "second")):
        broker.do(catalog.plan_create_topic(PT.partition_name(index), now_ms=1))
        if index:
            row = msgspec.structs.replace(SCHEMA, name=name)
            broker.do(catalog.plan_schema(PT.partition_name(index), row))
    assert catalog.schema(PT.partition_name(2)) != catalog.schema(PT.partition_name(1))
    broker.do(catalog.plan_create_partitioned(PT, 3, now_ms=1))
    names = {catalog.schema(PT.partition_name(index)).name for index in range(3)}  # type: ignore[union-attr]
    assert names == {"first"}
    broker.do(catalog.plan_delete_topic(PT))
    broker.do(catalog.plan_create_topic(PT.partition_name(2), now_ms=1))
    assert catalog.schema(PT.partition_name(2)) is None
