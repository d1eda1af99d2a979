"""Versions of schemas: their numbers, their rows, and what becomes of them with their topic."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import SCHEMA_ROW_BYTES, Kind, SchemaRow
from tests.unit.metadata.catalog_rig import NS, PT, Broker, T, refused

SCHEMA = SchemaRow(type=4, data=b"{}", properties={"k": "v"}, created_ms=7)


def add(broker: Broker, topic: TopicName = T, data: bytes = b"{}") -> SchemaRow:
    row = SchemaRow(type=4, data=data)
    latest = broker.catalog.latest_schema(topic)
    broker.do(broker.catalog.plan_schema(topic, row, latest, needs_topic=False))
    found = broker.catalog.schema(topic)
    assert found is not None
    return found


def numbers(broker: Broker, topic: TopicName = T) -> list[int]:
    return [row.version for row in broker.catalog.schemas(topic)]


def schema_keys(broker: Broker) -> list[str]:
    kinds = (Kind.SCHEMA.value, Kind.SCHEMA_VERSION.value)
    return sorted(key for kind, key in broker.store.load() if kind in kinds)


def test_a_schema_needs_its_topic_unless_it_is_uploaded_before(broker: Broker) -> None:
    catalog = broker.catalog
    with pytest.raises(RefusalError) as caught:
        catalog.plan_schema(T, SCHEMA, None)
    assert refused(caught) == (404, f"Topic {T} not found")
    with pytest.raises(RefusalError) as caught:
        catalog.plan_schema(parse_topic("a/b/c"), SCHEMA, None, needs_topic=False)
    assert refused(caught) == (404, "Namespace not found")
    broker.do(catalog.plan_schema(T, SCHEMA, None, needs_topic=False))
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    assert broker.restarted().catalog.schema(T) == SCHEMA


def test_versions_count_on_and_stay(broker: Broker) -> None:
    assert [add(broker, data=b"%d" % n).version for n in range(3)] == [0, 1, 2]
    catalog = broker.restarted().catalog
    assert [row.data for row in catalog.schemas(T)] == [b"0", b"1", b"2"]
    assert [catalog.schema(T, n).data for n in range(3)] == [b"0", b"1", b"2"]  # type: ignore[union-attr]
    assert catalog.schema(T, 3) is None
    assert catalog.schema(T, -1) is None
    assert catalog.schema_bytes == broker.catalog.schema_bytes == 3 + 3 * SCHEMA_ROW_BYTES
    assert catalog.tenant_schema_bytes == broker.catalog.tenant_schema_bytes
    assert catalog.tenant_schema_bytes == {T.namespace.tenant: catalog.schema_bytes}
    assert catalog.topic_schema_bytes == broker.catalog.topic_schema_bytes
    assert catalog.topic_schema_bytes == {catalog.own_name(T): catalog.schema_bytes}


def test_a_version_follows_the_row_that_its_planner_knew(broker: Broker) -> None:
    first = add(broker)
    catalog = broker.catalog
    for known in (None, SCHEMA):
        with pytest.raises(RefusalError) as caught:
            catalog.plan_schema(T, SCHEMA, known, needs_topic=False)
        assert refused(caught)[0] == 409
    change = catalog.plan_schema(T, SCHEMA, first, needs_topic=False)
    with pytest.raises(RefusalError):
        catalog.plan_schema(T, SCHEMA, first, needs_topic=False)
    with pytest.raises(RefusalError):
        catalog.plan_delete_schema(T, first, force=False, now_ms=1)
    catalog.abandon_all()
    del change
    broker.do(catalog.plan_schema(T, SCHEMA, first, needs_topic=False))
    assert numbers(broker) == [0, 1]


def test_a_deletion_takes_a_number_and_leaves_no_definition(broker: Broker) -> None:
    for data in (b"0", b"1"):
        add(broker, data=data)
    catalog = broker.catalog
    latest = catalog.latest_schema(T)
    assert latest is not None
    broker.do(catalog.plan_delete_schema(T, latest, force=False, now_ms=9))
    assert (numbers(broker), catalog.schema(T), catalog.schema(T, 0)) == ([], None, None)
    assert catalog.schema_bytes == SCHEMA_ROW_BYTES
    deleted = catalog.latest_schema(T)
    assert deleted is not None
    assert (deleted.version, deleted.is_deleted, deleted.created_ms) == (2, True, 9)
    broker.do(catalog.plan_delete_schema(T, deleted, force=False, now_ms=10))
    assert catalog.latest_schema(T).version == 2, "no number for a second deletion"  # type: ignore[union-attr]
    assert add(broker).version == 3
    assert add(broker, data=b"4").version == 4
    assert numbers(broker) == [3, 4]
    assert numbers(broker.restarted()) == [3, 4]
    assert catalog.schema(T, 2) is None


def test_a_forced_deletion_forgets_the_numbers(broker: Broker) -> None:
    for data in (b"0", b"1", b"2"):
        add(broker, data=data)
    latest = broker.catalog.latest_schema(T)
    assert latest is not None
    broker.do(broker.catalog.plan_delete_schema(T, latest, force=True, now_ms=9))
    assert schema_keys(broker) == []
    assert add(broker).version == 0


def test_schemas_go_with_their_topic_and_their_namespace(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    for data in (b"0", b"1", b"2"):
        add(broker, data=data)
    broker.do(catalog.plan_delete_topic(T))
    assert schema_keys(broker) == []
    assert catalog.schema_bytes == 0
    assert not catalog.tenant_schema_bytes
    assert not catalog.topic_schema_bytes
    other = NamespaceName("public", "other")
    broker.do(catalog.plan_create_namespace(other))
    uploaded = parse_topic("public/other/x")
    add(broker, uploaded)
    add(broker, uploaded, b"1")
    add(broker)
    broker.do(catalog.plan_delete_namespace(other))
    assert schema_keys(broker) == [T.full]
    assert T.namespace == NS


def test_what_becomes_partitions_has_a_bounded_number_of_versions(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.metadata.schema_plans.TAKEN_OVER_MAX", 5)
    whole = parse_topic("public/default/many")
    for index in range(3):
        add(broker, whole.partition_name(index))
        add(broker, whole.partition_name(index), b"1")
    with pytest.raises(RefusalError, match="have 6 versions: 5 are allowed; delete some") as caught:
        broker.catalog.plan_create_partitioned(whole, 3, now_ms=1)
    assert caught.value.status == 412
    broker.do(broker.catalog.plan_create_partitioned(whole, 2, now_ms=1))


def test_a_partitioned_topic_takes_over_the_schema_of_what_becomes_its_partition(
    broker: Broker,
) -> None:
    catalog = broker.catalog
    for index, versions in ((0, ()), (1, (b"a", b"b")), (2, (b"c", b"d"))):
        topic = PT.partition_name(index)
        broker.do(catalog.plan_create_topic(topic, now_ms=1))
        for data in versions:
            add(broker, topic, data)
    broker.do(catalog.plan_create_partitioned(PT, 3, now_ms=1))
    for index in range(3):
        found = catalog.schemas(PT.partition_name(index))
        assert [row.data for row in found] == [b"a", b"b"]
    assert schema_keys(broker) == [PT.full, f"{PT.full}/0"]
    broker.do(catalog.plan_delete_topic(PT))
    assert schema_keys(broker) == []


def test_an_uploaded_schema_stays_that_of_the_partitioned_topic(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(PT.partition_name(0), now_ms=1))
    add(broker, PT.partition_name(0), b"part")
    add(broker, PT, b"uploaded")
    broker.do(catalog.plan_create_partitioned(PT, 1, now_ms=1))
    assert schema_keys(broker) == [PT.full]
    assert catalog.schema(PT.partition_name(0)).data == b"uploaded"  # type: ignore[union-attr]
