"""Namespaces and tenants that go with what they contain."""

from __future__ import annotations

from unittest.mock import AsyncMock

import pytest

from headgate.base.names import TopicName, parse_topic
from headgate.metadata.rows import SchemaRow
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

NS = "/admin/v2/namespaces/acme/ns"
ONE = parse_topic("persistent://acme/ns/one")


@pytest.fixture
def full(api: Ask, broker: FakeFacade) -> FakeFacade:
    """A tenant with a namespace that has topics, of both sorts."""
    api("PUT", "/admin/v2/tenants/acme", {"allowedClusters": ["standalone"]})
    api("PUT", NS)
    api("PUT", "/admin/v2/persistent/acme/ns/one")
    api("PUT", "/admin/v2/persistent/acme/ns/many/partitions", 3)
    return broker


def allow(facade: FakeFacade, name: str) -> None:
    facade._commit(facade.catalog.plan_setting(name, "true"))


def test_it_needs_the_setting(api: Ask, full: FakeFacade) -> None:
    answer = api("DELETE", f"{NS}?force=true")
    assert (answer.status, answer.reason) == (
        405,
        "Broker doesn't allow forced deletion of namespaces",
    )
    assert api("DELETE", NS).status == 409
    assert full.catalog.topic("persistent://acme/ns/one") is not None


def test_a_namespace_with_its_topics(api: Ask, full: FakeFacade) -> None:
    allow(full, "forceDeleteNamespaceAllowed")
    assert api("DELETE", f"{NS}?force=true").status == 204
    assert api("GET", NS).status == 404
    assert full.catalog.topic_numbers() == set()
    assert api("DELETE", f"{NS}?force=true").status == 404


def test_a_deletion_that_fails_can_be_repeated_and_no_topic_is_made_meanwhile(
    api: Ask, full: FakeFacade
) -> None:
    allow(full, "forceDeleteNamespaceAllowed")
    namespace = parse_topic("persistent://acme/ns/one").namespace
    full._commit(full.catalog.plan_begin_namespace_deletion(namespace))
    assert api("GET", NS).json()["deleted"] is True
    for path in ("new", "new/partitions"):
        answer = api("PUT", f"/admin/v2/persistent/acme/ns/{path}", 2 if "/" in path else None)
        assert (answer.status, answer.reason) == (404, "Namespace acme/ns is being deleted")
    assert api("POST", "/admin/v2/persistent/acme/ns/many/partitions", 5).status == 404
    assert api("DELETE", f"{NS}?force=true").status == 204


def test_a_deletion_that_has_begun_may_end_though_the_setting_is_off_again(
    api: Ask, full: FakeFacade
) -> None:
    namespace = parse_topic("persistent://acme/ns/one").namespace
    full._commit(full.catalog.plan_begin_namespace_deletion(namespace))
    assert api("DELETE", NS).status == 409
    assert api("DELETE", f"{NS}?force=true").status == 204
    assert api("GET", NS).status == 404


def test_a_deletion_that_another_one_overtook_leaves_the_new_namespace_alone(
    api: Ask, full: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients repeat a request that was not answered in time, and create the namespace anew when
    one of them is."""
    allow(full, "forceDeleteNamespaceAllowed")
    delete = full.delete_topic
    monkeypatch.setattr(full, "delete_topic", overtaken := AsyncMock())

    async def other(topic: TopicName, *, force: bool) -> None:
        overtaken.side_effect = delete
        for name in (topic, ONE):
            await delete(name, force=force)
        full._commit(full.catalog.plan_delete_namespace(topic.namespace))
        full._commit(full.catalog.plan_create_namespace(topic.namespace))
        full._commit(full.catalog.plan_create_topic(ONE, now_ms=1))

    overtaken.side_effect = other
    answer = api("DELETE", f"{NS}?force=true")
    assert (answer.status, answer.reason) == (404, "Namespace not found")
    assert full.catalog.topic("persistent://acme/ns/one") is not None


def test_a_tenant_with_its_namespaces(api: Ask, full: FakeFacade) -> None:
    tenant = "/admin/v2/tenants/acme"
    answer = api("DELETE", f"{tenant}?force=true")
    assert (answer.status, answer.reason) == (
        405,
        "Broker doesn't allow forced deletion of tenants",
    )
    allow(full, "forceDeleteTenantAllowed")
    assert api("DELETE", f"{tenant}?force=true").status == 204
    assert api("GET", tenant).status == 404
    assert full.catalog.topic_numbers() == set()


def test_a_namespace_with_very_many_schemas_is_deleted_in_several_changes(
    api: Ask, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single change of 100,000 rows held up everybody for two seconds."""
    monkeypatch.setattr("headgate.metadata.namespace_contents.ROWS_TOGETHER", 10)
    monkeypatch.setattr("headgate.metadata.tenant_plans.ROWS_TOGETHER", 10)
    api("PUT", "/admin/v2/tenants/acme", {"allowedClusters": ["standalone"]})
    api("PUT", NS)
    catalog = broker.catalog
    for number in range(50):
        topic = parse_topic(f"persistent://acme/ns/t{number}")
        row = SchemaRow(type=1, data=b"")
        broker._commit(catalog.plan_schema(topic, row, None, needs_topic=False))
    before = broker.gave_way
    assert api("DELETE", NS).status == 204
    assert broker.gave_way - before == 4
    assert catalog.schema_bytes == 0
    assert api("GET", NS).status == 404
