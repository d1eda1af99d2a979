"""The retention of acknowledged messages that policies and settings define."""

from __future__ import annotations

from collections.abc import Collection

from headgate.base.names import TopicName
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import Retention, retention_policy
from headgate.policy.settings import Settings


class RetentionTable:
    """The retention for each name; a partition has the retention of its topic."""

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names; their retention is that of the telemetry."""
        self._catalog = catalog
        self._settings = settings
        self._system_topics = system_topics

    def of_broker(self) -> Retention:
        """The retention of topics without a policy."""
        settings = self._settings
        return Retention(settings.defaultRetentionTimeInMinutes, settings.defaultRetentionSizeInMB)

    def of_topic(self, topic: TopicName) -> Retention:
        """The retention of one topic, or of one partition: its topic policy, else its namespace
        policy, else the broker's settings."""
        if topic.full in self._system_topics:
            return self._of_telemetry()
        catalog = self._catalog
        policy = retention_policy(
            catalog.topic_policies(topic), catalog.namespace_policies(topic.namespace)
        )
        return self.of_broker() if policy is None else policy

    def _of_telemetry(self) -> Retention:
        settings = self._settings
        return Retention(
            settings.headgateTelemetryRetentionMinutes, settings.headgateTelemetryRetentionSizeInMB
        )
