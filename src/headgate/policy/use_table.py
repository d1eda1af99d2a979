"""What a client's use may create, and which types of subscriptions it may have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from headgate.base.names import NamespaceName, TopicName
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import SUBSCRIPTION_TYPES, SubscriptionTypeName
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings


class UseTable:
    """The answers for each name; a partition has those of its topic."""

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names; every use of these topics is allowed."""
        self._catalog = catalog
        self._settings = settings
        self._system_topics = system_topics

    def created_partitions(self, namespace: NamespaceName) -> int | None:
        """How many partitions a topic of ``namespace`` gets that its first use creates; 0: it is
        not partitioned. None: it is not created."""
        policy = self._catalog.namespace_policies(namespace).auto_topic_creation
        if policy is not None:
            if not policy.allow_auto_topic_creation:
                return None
            return policy.default_num_partitions or 0
        settings = self._settings
        if not settings.allowAutoTopicCreation:
            return None
        is_partitioned = settings.allowAutoTopicCreationType == "partitioned"
        return settings.defaultNumPartitions if is_partitioned else 0

    def creates_subscriptions(self, topic: TopicName) -> bool:
        """Whether a consumer creates the durable subscription that it names on ``topic``."""
        if topic.full in self._system_topics:
            return True
        catalog = self._catalog
        for policy in (
            catalog.topic_policies(topic).auto_subscription_creation,
            catalog.namespace_policies(topic.namespace).auto_subscription_creation,
        ):
            if policy is not None:
                return policy.allow_auto_subscription_creation
        return self._settings.allowAutoSubscriptionCreation

    def subscription_types(self, topic: TopicName) -> Sequence[SubscriptionTypeName]:
        """The types that consumers of ``topic`` may use."""
        if topic.full in self._system_topics:
            return SUBSCRIPTION_TYPES
        catalog = self._catalog
        return (
            catalog.topic_policies(topic).subscription_types_enabled
            or catalog.namespace_policies(topic.namespace).subscription_types_enabled
            or cast(
                Sequence[SubscriptionTypeName], names_of(self._settings.subscriptionTypesEnabled)
            )
        )
