"""Which retention is in force on a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.names import TopicName
from headgate.metadata.policies import Retention
from headgate.policy.settings import Settings

if TYPE_CHECKING:
    from headgate.broker.service import Broker


def default_retention(settings: Settings) -> Retention:
    """What is kept where no policy says otherwise."""
    return Retention(settings.defaultRetentionTimeInMinutes, settings.defaultRetentionSizeInMB)


def retention_of(broker: Broker, name: TopicName) -> Retention:
    """What is kept of a topic's acknowledged messages."""
    catalog, settings = broker.catalog, broker.settings
    if broker.registry.is_system(name):
        return Retention(
            settings.headgateTelemetryRetentionMinutes, settings.headgateTelemetryRetentionSizeInMB
        )
    return (
        catalog.topic_policies(name).retention
        or catalog.namespace_policies(name.namespace).retention
        or default_retention(settings)
    )
