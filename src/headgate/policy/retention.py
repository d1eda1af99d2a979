"""The retention of acknowledged messages that is in force on a topic."""

from __future__ import annotations

from headgate.base.names import TopicName
from headgate.flow.limits.precedence import TOPIC_POLICY, most_specific, namespace_policy_source
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import Retention
from headgate.policy.settings import Settings


def default_retention(settings: Settings) -> Retention:
    """The retention of topics without a policy."""
    return Retention(settings.defaultRetentionTimeInMinutes, settings.defaultRetentionSizeInMB)


def telemetry_retention(settings: Settings) -> Retention:
    """The retention of the telemetry topic, which has no policies."""
    return Retention(
        settings.headgateTelemetryRetentionMinutes, settings.headgateTelemetryRetentionSizeInMB
    )


def retention_of(catalog: Catalog, settings: Settings, topic: TopicName) -> Retention:
    """The retention of one topic, or of one partition: its topic policy, else its namespace policy,
    else the broker's settings."""
    found = most_specific(
        (catalog.topic_policies(topic).retention, TOPIC_POLICY),
        (
            catalog.namespace_policies(topic.namespace).retention,
            namespace_policy_source(str(topic.namespace)),
        ),
    )
    return default_retention(settings) if found is None else found[0]
