"""The message deduplication that policies and settings define."""

from __future__ import annotations

from collections.abc import Collection

from headgate.base.names import TopicName
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import deduplication_policy
from headgate.policy.settings import Settings


class DeduplicationTable:
    """Whether each name has deduplication; a partition has what its topic has."""

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names; these topics have none."""
        self._catalog = catalog
        self._settings = settings
        self._system_topics = system_topics

    def of_topic(self, topic: TopicName) -> bool:
        """Whether one topic or partition has it: by its topic policy, else its namespace policy,
        else the broker's setting."""
        if topic.full in self._system_topics:
            return False
        catalog = self._catalog
        policy = deduplication_policy(
            catalog.topic_policies(topic), catalog.namespace_policies(topic.namespace)
        )
        return self._settings.brokerDeduplicationEnabled if policy is None else policy
