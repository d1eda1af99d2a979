"""What ends by itself: the policies of topic and namespace, then the settings."""

from __future__ import annotations

from headgate.base.names import parse_topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.policies import InactiveTopicPolicies
from headgate.metadata.state import Change
from headgate.policy.expiry_table import ExpiryTable
from headgate.policy.settings import Settings

TOPIC = parse_topic("persistent://public/default/orders")
SYSTEM = parse_topic("persistent://public/default/own")
KEEP = InactiveTopicPolicies("delete_when_subscriptions_caught_up", 5, delete_while_inactive=False)
DROP = InactiveTopicPolicies("delete_when_no_subscriptions", 7, delete_while_inactive=True)


def make() -> tuple[ExpiryTable, Catalog, Settings]:
    store, settings = MemoryStore(), Settings()
    catalog = Catalog("standalone", store.load())
    change = catalog.plan_first_boot()
    assert change is not None
    catalog.apply(change)
    for topic in (TOPIC, SYSTEM):
        catalog.apply(catalog.plan_create_topic(topic, now_ms=0))
    return ExpiryTable(catalog, settings, [SYSTEM.full]), catalog, settings


def of_namespace(catalog: Catalog, **policies: object) -> Change:
    change = catalog.plan_namespace_policies(TOPIC.namespace, **policies)
    catalog.apply(change)
    return change


def of_topic(catalog: Catalog, **policies: object) -> None:
    catalog.apply(catalog.plan_topic_policies(TOPIC, **policies))


def test_message_ttl() -> None:
    table, catalog, settings = make()
    assert table.message_ttl(TOPIC) is None
    settings.ttlDurationDefaultInSeconds = 9
    assert table.message_ttl(TOPIC) == (9, "broker setting ttlDurationDefaultInSeconds")
    of_namespace(catalog, message_ttl_in_seconds=8)
    assert table.message_ttl(TOPIC) == (8, "namespace policy public/default")
    of_topic(catalog, message_ttl_in_seconds=0)
    assert table.message_ttl(TOPIC) is None
    assert table.message_ttl(SYSTEM) is None


def test_subscription_expiration() -> None:
    table, catalog, settings = make()
    assert table.subscription_expiration_min(TOPIC) == 0
    settings.subscriptionExpirationTimeMinutes = 9
    assert table.subscription_expiration_min(TOPIC) == 9
    of_namespace(catalog, subscription_expiration_time_minutes=8)
    assert table.subscription_expiration_min(TOPIC) == 8
    of_topic(catalog, subscription_expiration_time_minutes=0)
    assert table.subscription_expiration_min(TOPIC) == 0
    assert table.subscription_expiration_min(SYSTEM) == 0


def test_inactive_topics() -> None:
    table, catalog, settings = make()
    by_default = InactiveTopicPolicies("delete_when_no_subscriptions", 60, True)
    assert table.inactive_topic(TOPIC) == by_default
    settings.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds = 5
    settings.brokerDeleteInactiveTopicsMode = "delete_when_subscriptions_caught_up"
    settings.brokerDeleteInactiveTopicsEnabled = False
    assert table.inactive_topic(TOPIC) == KEEP
    of_namespace(catalog, inactive_topic_policies=DROP)
    assert table.inactive_topic(TOPIC) == DROP
    of_topic(catalog, inactive_topic_policies=KEEP)
    assert table.inactive_topic(TOPIC) == KEEP
    assert not table.inactive_topic(SYSTEM).delete_while_inactive
