"""Changes of the policies of namespaces and topics."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import (
    BacklogQuota,
    DispatchRate,
    NamespacePolicies,
    QuotaKind,
    Retention,
)
from tests.unit.metadata.catalog_rig import NS, PT, Broker, T, refused


def test_one_policy_is_changed_and_the_others_are_left(broker: Broker) -> None:
    catalog = broker.catalog
    broker.do(catalog.plan_namespace_policies(NS, retention=Retention(1, 1)))
    broker.do(catalog.plan_namespace_policies(NS, dispatch_rate=DispatchRate(5)))
    broker.do(catalog.plan_namespace_policies(NS, retention=None))
    assert catalog.namespace_policies(NS) == NamespacePolicies(dispatch_rate=DispatchRate(5))
    with pytest.raises(RefusalError, match="time limit"):
        catalog.plan_namespace_policies(NS, retention=Retention(-9, 0))
    assert catalog.in_flight_count == 0


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


def test_a_bounded_number_of_subscriptions_has_rates(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change writes all of them."""
    monkeypatch.setattr("headgate.metadata.policy_plans.SUBSCRIPTION_RATES_MAX", 2)
    catalog = broker.catalog
    broker.do(catalog.plan_create_topic(T, now_ms=1))
    for name in ("a", "b", "a"):
        broker.do(catalog.plan_subscription_rate(T, name, DispatchRate(1)))
    with pytest.raises(RefusalError, match="more are not allowed") as caught:
        catalog.plan_subscription_rate(T, "c", DispatchRate(1))
    assert caught.value.status == 412
    broker.do(catalog.plan_subscription_rate(T, "a", None))
    broker.do(catalog.plan_subscription_rate(T, "c", DispatchRate(1)))


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
