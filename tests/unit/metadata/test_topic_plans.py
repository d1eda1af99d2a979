"""Changes of topics."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import (
    DispatchRate,
)
from headgate.metadata.rows import Kind, PartitionedRow, TopicRow
from tests.unit.metadata.catalog_rig import NS, PT, Broker, T, refused


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
