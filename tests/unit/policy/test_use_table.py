"""What a client's use creates, and the types of subscriptions that it may have."""

from __future__ import annotations

from headgate.metadata.policies import AutoSubscriptionCreation, AutoTopicCreation
from headgate.policy.use_table import UseTable
from tests.unit.policy.test_expiry_table import SYSTEM, TOPIC, make, of_namespace, of_topic


def test_topics() -> None:
    _, catalog, settings = make()
    table = UseTable(catalog, settings)
    namespace = TOPIC.namespace
    assert table.created_partitions(namespace) == 0
    settings.allowAutoTopicCreationType, settings.defaultNumPartitions = "partitioned", 3
    assert table.created_partitions(namespace) == 3
    settings.allowAutoTopicCreation = False
    assert table.created_partitions(namespace) is None
    of_namespace(catalog, auto_topic_creation=AutoTopicCreation(True, "partitioned", 5))
    assert table.created_partitions(namespace) == 5
    of_namespace(catalog, auto_topic_creation=AutoTopicCreation(True, "non-partitioned"))
    assert table.created_partitions(namespace) == 0
    settings.allowAutoTopicCreation = True
    of_namespace(catalog, auto_topic_creation=AutoTopicCreation(False))
    assert table.created_partitions(namespace) is None


def test_subscriptions() -> None:
    _, catalog, settings = make()
    table = UseTable(catalog, settings, [SYSTEM.full])
    assert table.creates_subscriptions(TOPIC)
    settings.allowAutoSubscriptionCreation = False
    assert not table.creates_subscriptions(TOPIC)
    of_namespace(catalog, auto_subscription_creation=AutoSubscriptionCreation(True))
    assert table.creates_subscriptions(TOPIC)
    of_topic(catalog, auto_subscription_creation=AutoSubscriptionCreation(False))
    assert not table.creates_subscriptions(TOPIC)
    assert table.creates_subscriptions(SYSTEM)


def test_types() -> None:
    _, catalog, settings = make()
    table = UseTable(catalog, settings, [SYSTEM.full])
    assert "Key_Shared" in table.subscription_types(TOPIC)
    settings.subscriptionTypesEnabled = "Shared, Failover"
    assert tuple(table.subscription_types(TOPIC)) == ("Shared", "Failover")
    of_namespace(catalog, subscription_types_enabled=("Shared",))
    assert tuple(table.subscription_types(TOPIC)) == ("Shared",)
    of_topic(catalog, subscription_types_enabled=("Exclusive",))
    assert tuple(table.subscription_types(TOPIC)) == ("Exclusive",)
    of_topic(catalog, subscription_types_enabled=())  # says nothing
    assert tuple(table.subscription_types(TOPIC)) == ("Shared",)
    assert len(table.subscription_types(SYSTEM)) == 4
