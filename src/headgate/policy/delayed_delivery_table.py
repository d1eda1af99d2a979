"""The policy of delayed delivery that policies and settings define."""

from __future__ import annotations

from headgate.base.names import TopicName
from headgate.engine.delayed_delivery import DelayedDelivery
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import DelayedDeliveryPolicy
from headgate.policy.settings import Settings


class DelayedDeliveryTable:
    """The policy for each name; a partition has the policy of its topic."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings

    def applied(self, topic: TopicName) -> DelayedDeliveryPolicy:
        """The effective policy of a topic, or of one partition: its topic policy, else its
        namespace policy, else the broker's settings."""
        catalog, settings = self._catalog, self._settings
        policy = catalog.topic_policies(topic).delayed_delivery
        if policy is None:
            policy = catalog.namespace_policies(topic.namespace).delayed_delivery
        if policy is not None:
            return policy
        return DelayedDeliveryPolicy(
            settings.delayedDeliveryTickTimeMillis,
            settings.delayedDeliveryEnabled,
            settings.delayedDeliveryMaxDelayInMillis,
        )

    def of_topic(self, topic: TopicName) -> DelayedDelivery:
        """What the broker applies to a topic."""
        policy = self.applied(topic)
        return DelayedDelivery(policy.active, max(policy.max_delivery_delay_in_millis, 0))
