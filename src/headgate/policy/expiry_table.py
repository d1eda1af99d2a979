"""What ends by itself, by policies and settings: messages, subscriptions, topics."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from headgate.base.names import TopicName
from headgate.flow.expiry import MessageTtl, effective_ttl
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import InactiveTopicDeleteMode, InactiveTopicPolicies
from headgate.policy.settings import Settings


class ExpiryTable:
    """The times to live for each name; a partition has those of its topic."""

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names; nothing of these topics ends by itself."""
        self._catalog = catalog
        self._settings = settings
        self._system_topics = system_topics

    def message_ttl(self, topic: TopicName) -> MessageTtl | None:
        """The TTL of a topic's messages, and where it is set; None without one."""
        if topic.full in self._system_topics:
            return None
        catalog = self._catalog
        namespace = catalog.namespace_policies(topic.namespace)
        return effective_ttl(
            topic_s=catalog.topic_policies(topic).message_ttl_in_seconds,
            namespace_s=namespace.message_ttl_in_seconds,
            namespace=str(topic.namespace),
            broker_s=self._settings.ttlDurationDefaultInSeconds,
        )

    def subscription_expiration_min(self, topic: TopicName) -> int:
        """Minutes without a consumer after which a durable subscription of a topic is deleted; 0 is
        never."""
        if topic.full in self._system_topics:
            return 0
        catalog = self._catalog
        for minutes in (
            catalog.topic_policies(topic).subscription_expiration_time_minutes,
            catalog.namespace_policies(topic.namespace).subscription_expiration_time_minutes,
        ):
            if minutes is not None:
                return minutes
        return self._settings.subscriptionExpirationTimeMinutes

    def inactive_topic(self, topic: TopicName) -> InactiveTopicPolicies:
        """Whether and when a topic is deleted that nobody uses."""
        if topic.full in self._system_topics:
            return InactiveTopicPolicies()
        catalog = self._catalog
        return (
            catalog.topic_policies(topic).inactive_topic_policies
            or catalog.namespace_policies(topic.namespace).inactive_topic_policies
            or self._inactive_topic_of_broker()
        )

    def _inactive_topic_of_broker(self) -> InactiveTopicPolicies:
        settings = self._settings
        return InactiveTopicPolicies(
            cast(InactiveTopicDeleteMode, settings.brokerDeleteInactiveTopicsMode),
            settings.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds
            or settings.brokerDeleteInactiveTopicsFrequencySeconds,
            settings.brokerDeleteInactiveTopicsEnabled,
        )
