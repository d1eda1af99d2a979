"""What a namespace without topics has goes in changes of a bounded number of rows."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Change
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import Kind, SchemaRow
from tests.unit.metadata.catalog_rig import Broker

NAME = NamespaceName("public", "other")


@pytest.fixture
def full(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """A namespace with grants and schemas, of which ten rows go together."""
    monkeypatch.setattr("headgate.metadata.namespace_contents.ROWS_TOGETHER", 10)
    monkeypatch.setattr("headgate.metadata.tenant_plans.ROWS_TOGETHER", 10)
    catalog = broker.catalog
    catalog.allow_grants_without_topics(True)
    broker.do(catalog.plan_create_namespace(NAME))
    for number in range(7):
        topic = parse_topic(f"public/other/t{number}")
        broker.do(catalog.plan_topic_grant(topic, "role", frozenset({"consume"})))
        broker.do(catalog.plan_subscription_grant(NAME, f"s{number}", ["role"]))
        for data in (b"0", b"1", b"2"):
            row = SchemaRow(type=1, data=data)
            latest = catalog.latest_schema(topic)
            broker.do(catalog.plan_schema(topic, row, latest, needs_topic=False))
    return broker


def removed(change: Change | None) -> int:
    assert change is not None
    assert all(row.after is None for row in change.rows if row.kind is not Kind.COUNTER)
    return len(change.rows) - 1


def test_of_very_many_most_go_before_the_namespace(full: Broker) -> None:
    catalog = full.catalog
    assert catalog.has_much(NAME)
    with pytest.raises(RefusalError, match="is not being deleted"):
        catalog.plan_empty_namespace(NAME)
    full.do(catalog.plan_begin_namespace_deletion(NAME, only_empty=True))
    counts = []
    while catalog.has_much(NAME):
        change = catalog.plan_empty_namespace(NAME)
        counts.append(removed(change))
        assert change is not None
        full.do(change)
    # A schema goes with all of its three versions.
    assert sum(counts) > 7 + 7 + 7 * 3 - 11
    assert max(counts) <= 10 + 3
    assert catalog.plan_empty_namespace(NAME) is None
    full.do(catalog.plan_delete_namespace(NAME))
    assert not any(full.restarted().catalog._state.rows(kind) for kind in (
        Kind.TOPIC_GRANTS, Kind.SUBSCRIPTION_GRANTS, Kind.SCHEMA, Kind.SCHEMA_VERSION,
    ))  # fmt: skip
    assert catalog.schema_bytes == 0


def test_two_deletions_at_once_do_not_take_what_the_other_does_for_all(full: Broker) -> None:
    catalog = full.catalog
    full.do(catalog.plan_begin_namespace_deletion(NAME))
    first = catalog.plan_empty_namespace(NAME)
    assert catalog.has_much(NAME)
    second = catalog.plan_empty_namespace(NAME)
    assert first is not None
    assert second is not None
    rows = [{(row.kind, row.key) for row in each.rows} for each in (first, second)]
    assert rows[0] & rows[1] == {(Kind.COUNTER, "revision")}


def test_one_with_topics_is_not_marked(full: Broker) -> None:
    full.do(full.catalog.plan_create_topic(parse_topic("public/other/t0"), now_ms=1))
    with pytest.raises(RefusalError, match="Cannot delete non empty namespace"):
        full.catalog.plan_begin_namespace_deletion(NAME, only_empty=True)
