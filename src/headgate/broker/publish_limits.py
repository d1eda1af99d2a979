"""Which publish limit is set, and where.

Enforcement and REST's ``applied=true`` ask the same table, so that they cannot disagree. The order
is that of dispatch limits (law 1.8): topic policy, namespace policy, broker setting. A publish
limit counts over one second and is never relative.
"""

from __future__ import annotations

from msgspec import UNSET

from headgate.base.names import TopicName
from headgate.broker.settings import Settings
from headgate.flow.limits import (
    PUBLISH_KEYS,
    EffectiveLimit,
    Level,
    RatePolicy,
    effective_limit,
)
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import PublishRate


def policy_of(rate: PublishRate | None) -> RatePolicy | None:
    """A stored rate as the law reads it."""
    if rate is None:
        return None
    return RatePolicy(
        messages=rate.publish_throttling_rate_in_msg,
        bytes=rate.publish_throttling_rate_in_byte,
        unlimited=rate.is_unlimited,
    )


def rate_of(policy: RatePolicy | None) -> PublishRate | None:
    """What REST shows for the policy that decided; None without one."""
    if policy is None:
        return None
    return PublishRate(
        publish_throttling_rate_in_msg=policy.messages,
        publish_throttling_rate_in_byte=policy.bytes,
        unlimited=True if policy.unlimited else UNSET,
    )


class PublishLimitTable:
    """Effective publish limits of one broker, as they are set."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings

    def of_broker(self) -> EffectiveLimit:
        """What all topics together may be published."""
        settings = self._settings
        return effective_limit(
            PUBLISH_KEYS[Level.BROKER],
            broker_messages=settings.brokerPublisherThrottlingMaxMessageRate,
            broker_bytes=settings.brokerPublisherThrottlingMaxByteRate,
        )

    def of_topic(self, topic: TopicName) -> EffectiveLimit:
        """What one topic (each partition by itself) may be published."""
        settings = self._settings
        namespace = self._catalog.namespace_policies(topic.namespace)
        return effective_limit(
            PUBLISH_KEYS[Level.TOPIC],
            topic_policy=policy_of(self._catalog.topic_policies(topic).publish_rate),
            namespace_policy=policy_of(namespace.publish_rate),
            namespace=str(topic.namespace),
            broker_messages=settings.maxPublishRatePerTopicInMessages,
            broker_bytes=settings.maxPublishRatePerTopicInBytes,
        )
