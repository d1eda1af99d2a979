"""The limit on a namespace's topics counts what is planned, in whatever order it comes."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.metadata.errors import RefusalError, TooManyTopicsError
from tests.unit.metadata.catalog_rig import NS, PT, Broker, T, refused

REFUSED = (412, "Exceed maximum number of topics in namespace.")
SYSTEM = parse_topic("persistent://public/default/system")


def limit(broker: Broker, setting: int) -> None:
    broker.catalog.limit_topics(lambda policy: setting if policy is None else policy, [SYSTEM.full])


def create(broker: Broker, *names: str) -> None:
    for name in names:
        broker.do(broker.catalog.plan_create_topic(parse_topic(name), now_ms=1))


def test_each_partition_counts_and_a_system_topic_does_not(broker: Broker) -> None:
    limit(broker, 3)
    broker.do(broker.catalog.plan_create_topic(SYSTEM, now_ms=1))
    broker.do(broker.catalog.plan_create_partitioned(PT, 2, now_ms=1))
    with pytest.raises(TooManyTopicsError) as caught:
        broker.catalog.plan_grow_partitioned(PT, 4, now_ms=1)
    assert refused(caught) == REFUSED
    broker.do(broker.catalog.plan_grow_partitioned(PT, 3, now_ms=1))
    with pytest.raises(TooManyTopicsError):
        create(broker, "t")
    with pytest.raises(TooManyTopicsError):
        broker.catalog.plan_create_partitioned(T, 1, now_ms=1)
    broker.do(broker.catalog.plan_grow_partitioned(PT, 3, now_ms=1))
    broker.do(broker.catalog.plan_delete_topic(SYSTEM))
    broker.do(broker.catalog.plan_create_topic(SYSTEM, now_ms=1))
    broker.do(broker.catalog.plan_delete_topic(PT))
    create(broker, "t", "u", "v")


def test_creations_in_flight_count_until_they_are_abandoned(broker: Broker) -> None:
    limit(broker, 2)
    create(broker, "t")
    catalog = broker.catalog
    first = catalog.plan_create_topic(parse_topic("u"), now_ms=1)
    with pytest.raises(TooManyTopicsError):
        catalog.plan_create_topic(parse_topic("v"), now_ms=1)
    with pytest.raises(RefusalError, match="already exists"):
        catalog.plan_create_topic(parse_topic("u"), now_ms=1)
    catalog.abandon_all()
    again = broker.do(catalog.plan_create_topic(parse_topic("v"), now_ms=1))
    assert again.rows != first.rows
    deletion = catalog.plan_delete_topic(T)
    moved = catalog.plan_create_topic(parse_topic("u"), now_ms=1)
    broker.do(deletion)
    broker.do(moved)
    assert [name.rpartition("/")[2] for name in catalog.topics(NS)] == ["u", "v"]


def test_the_namespaces_limit_counts_before_the_brokers(broker: Broker) -> None:
    limit(broker, 1)
    create(broker, "t")
    catalog = broker.catalog
    # In force from its planning on: what is planned later is carried out later.
    policy = catalog.plan_namespace_policies(NS, max_topics_per_namespace=2)
    created = catalog.plan_create_topic(parse_topic("u"), now_ms=1)
    broker.do(policy)
    broker.do(created)
    with pytest.raises(TooManyTopicsError):
        create(broker, "v")
    broker.do(catalog.plan_namespace_policies(NS, max_topics_per_namespace=0))
    create(broker, "v", "w")
    broker.do(catalog.plan_namespace_policies(NS, max_topics_per_namespace=2))
    with pytest.raises(TooManyTopicsError):
        create(broker, "x")
    broker.do(catalog.plan_namespace_policies(NS, max_topics_per_namespace=None))
    with pytest.raises(TooManyTopicsError):
        create(broker, "x")
    assert len(broker.restarted().catalog.topics(NS)) == 4, "those that are there stay"
