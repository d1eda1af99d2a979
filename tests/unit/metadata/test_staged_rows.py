"""Lookups that plans share see changes in flight."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import Kind, PartitionedRow
from headgate.metadata.staged_rows import own_name, staged_namespace, topic_exists
from headgate.metadata.state import RowState


def test_a_missing_namespace_is_a_404() -> None:
    with pytest.raises(RefusalError) as caught:
        staged_namespace(RowState({}), NamespaceName("t", "n"))
    assert caught.value.status == 404


def test_policies_of_a_partition_are_stored_under_the_partitioned_topic() -> None:
    state = RowState({})
    base = parse_topic("persistent://t/n/orders")
    partition = base.partition_name(2)
    assert own_name(partition, state.staged) == partition.full
    assert not topic_exists(state, base.full)
    row = PartitionedRow(partitions=3, created_ms=1)
    state.stage([(Kind.PARTITIONED, base.full, row)])
    assert own_name(partition, state.staged) == own_name(base, state.staged) == base.full
    assert own_name(partition, state.get) == partition.full
    assert topic_exists(state, base.full)
