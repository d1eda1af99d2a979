"""Properties of namespaces and topics."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName
from headgate.metadata.errors import RefusalError
from headgate.metadata.property_plans import PROPERTIES_BYTES_MAX, PROPERTY_BYTES
from tests.unit.metadata.catalog_rig import NS, PT, Broker, T, refused


def test_properties_of_a_namespace(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_namespace_properties(NS, {"a": "1", "b": "2"}))
    broker.do(catalog.plan_namespace_properties(NS, {"a": "3"}))
    broker.do(catalog.plan_namespace_properties(NS, {}, ["b", "none"]))
    row = broker.restarted().catalog.namespace(NS)
    assert row is not None
    assert row.properties == {"a": "3"}
    broker.do(broker.catalog.plan_namespace_properties(NS, {}, None))
    row = broker.catalog.namespace(NS)
    assert row is not None
    assert row.properties == {}


def test_a_partition_also_has_those_of_its_topic(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_create_partitioned(PT, 2, now_ms=1, properties={"team": "x", "a": "0"}))
    part = PT.partition_name(1)
    broker.do(catalog.plan_topic_properties(part, {"a": "1"}))
    broker.do(catalog.plan_topic_properties(PT, {"b": "2"}, ["none"]))
    assert catalog.topic_properties(PT) == {"team": "x", "a": "0", "b": "2"}
    assert catalog.topic_properties(part) == {"team": "x", "a": "1", "b": "2"}
    assert catalog.topic_properties(PT.partition_name(0)) == catalog.topic_properties(PT)
    broker.do(catalog.plan_topic_properties(part, removed=["a"]))
    restarted = broker.restarted().catalog
    assert restarted.topic_properties(part) == {"team": "x", "a": "0", "b": "2"}
    assert restarted.topic_properties(T) == {}


def test_what_is_refused(broker: Broker) -> None:
    with pytest.raises(RefusalError) as caught:
        broker.catalog.plan_topic_properties(T, {"a": "1"})
    assert refused(caught) == (404, f"Topic {T} not found")
    broker.do(broker.catalog.plan_create_topic(T, now_ms=1, properties={"a": "1"}))
    with pytest.raises(RefusalError, match="65536 are allowed") as caught:
        broker.catalog.plan_topic_properties(T, {"b": "x" * PROPERTIES_BYTES_MAX})
    assert caught.value.status == 412
    broker.do(broker.catalog.plan_topic_properties(T, {"a": "2"}))
    assert broker.catalog.in_flight_count == 0


def test_very_many_short_properties_count_what_they_take(broker: Broker) -> None:
    allowed = PROPERTIES_BYTES_MAX // (PROPERTY_BYTES + 4)
    properties = {f"{number:04}": "" for number in range(allowed + 1)}
    name = NamespaceName("public", "default")
    with pytest.raises(RefusalError, match="64 for each beside its own: 65536 are allowed"):
        broker.catalog.plan_namespace_properties(name, properties)
    properties.popitem()
    broker.do(broker.catalog.plan_namespace_properties(name, properties))


def test_a_new_namespace_or_topic_has_no_more_properties_than_others(broker: Broker) -> None:
    catalog, many = broker.catalog, {"b": "x" * PROPERTIES_BYTES_MAX}
    for plan in (
        lambda: catalog.plan_create_namespace(NamespaceName("public", "new"), properties=many),
        lambda: catalog.plan_create_topic(T, now_ms=1, properties=many),
        lambda: catalog.plan_create_partitioned(PT, 2, now_ms=1, properties=many),
    ):
        with pytest.raises(RefusalError, match="65536 are allowed") as caught:
            plan()
        assert caught.value.status == 412
    assert broker.catalog.in_flight_count == 0
