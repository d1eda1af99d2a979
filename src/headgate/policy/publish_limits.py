"""Which publish limit is in force, and where it is set.

Enforcement, REST's ``applied=true``, stats, /metrics, telemetry and explain all ask here, so that
they cannot disagree. :class:`PublishLimitTable` knows what is set, by names. The order is that of
dispatch limits (law 1.8): topic policy, namespace policy, broker setting.
:class:`PublishLimitsInForce` knows what holds on what is live, where the adaptive controller may
allow less. A publish limit counts over one second and is never relative.
"""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import UNSET

from headgate.base.names import TopicName
from headgate.engine.topic import Topic
from headgate.flow.limits.precedence import (
    ADAPTIVE_SOURCE,
    PUBLISH_KEYS,
    EffectiveLimit,
    RatePolicy,
    effective_limit,
    is_tighter,
    tighter,
)
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from headgate.flow.sentences.backlog import limit_text
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import PublishRate
from headgate.policy.dispatch_limits import NO_LIMIT
from headgate.policy.settings import Settings

PUBLISH_TOPIC: Final = "publish_topic"
PUBLISH_BROKER: Final = "publish_broker"
"""Levels as they are told; those of dispatch limits are the names of :class:`Level`."""


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


def set_limit_text(effective: EffectiveLimit) -> str:
    """A limit that is set, in each dimension, and where: ``100 msg/s and 1,000 B/s (topic
    policy)``."""
    limit = effective.limit
    if limit is None:
        return "none"
    dimensions = [each for each in Dimension if limit.amount(each) is not None]
    text = " and ".join(limit_text(limit, dimension) for dimension in dimensions)
    return f"{text} ({effective.source})"


def holding_text(effective: EffectiveLimit) -> str:
    """What holds in which dimension: ``topic policy in messages, adaptive controller in bytes``."""
    found: dict[str, list[str]] = {}
    for dimension in Dimension:
        if effective.limit is not None and effective.limit.amount(dimension) is not None:
            found.setdefault(effective.source_of(dimension), []).append(dimension.name.lower())
    return ", ".join(f"{source} in {' and '.join(names)}" for source, names in found.items())


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


class PublishLimitSource(Protocol):
    """Which publish limits are set: :class:`PublishLimitTable` is one."""

    def of_broker(self) -> EffectiveLimit:
        """What all topics together may be published."""

    def of_topic(self, topic: TopicName, /) -> EffectiveLimit:
        """What one topic may be published."""


class PublishLimitsInForce:
    """Effective publish limits of what is live: of static and adaptive ones the tighter."""

    def __init__(self, table: PublishLimitSource) -> None:
        self._table = table

    def of_broker(self) -> EffectiveLimit:
        """What all topics together may be published now."""
        return self._table.of_broker()

    def of_topic(self, topic: Topic) -> EffectiveLimit:
        """What a topic may be published now; no limit on the broker's own."""
        if topic.is_system:
            return NO_LIMIT
        return _with_adaptive(self._table.of_topic(topic.name), topic.adaptive_limit)

    def on(self, topic: Topic) -> list[EffectiveLimit]:
        """The publish limits that a topic meets: its own and the broker's."""
        if topic.is_system:
            return [NO_LIMIT, NO_LIMIT]
        return [self.of_topic(topic), self.of_broker()]


def _with_adaptive(effective: EffectiveLimit, adaptive: RateLimit | None) -> EffectiveLimit:
    if adaptive is None:
        return effective
    limit = tighter(effective.limit, adaptive)
    sources = []
    for dimension in Dimension:
        source = ""
        if limit is not None and limit.amount(dimension) is not None:
            is_adaptive = is_tighter(adaptive, effective.limit, dimension)
            source = ADAPTIVE_SOURCE if is_adaptive else effective.source_of(dimension)
        sources.append(source)
    of_messages, of_bytes = sources
    source = " and ".join(dict.fromkeys(filter(None, sources)))
    return EffectiveLimit(limit, source, effective.policy, (of_messages, of_bytes))
