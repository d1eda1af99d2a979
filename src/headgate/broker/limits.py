"""The one function that says which dispatch limit is in force and where it is set (law 1.8).

Enforcement, REST's ``applied=true``, /metrics, telemetry and explain all ask here.
"""

from __future__ import annotations

from headgate.base.names import TopicName
from headgate.broker.settings import Settings
from headgate.flow.limits import EffectiveLimit, Level, RatePolicy, effective_limit
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import DispatchRate

NO_LIMIT = EffectiveLimit(None, "")


def policy_of(rate: DispatchRate | None) -> RatePolicy | None:
    """A stored rate as the law reads it."""
    if rate is None:
        return None
    return RatePolicy(
        messages=rate.dispatch_throttling_rate_in_msg,
        bytes=rate.dispatch_throttling_rate_in_byte,
        period_s=rate.rate_period_in_second,
    )


class LimitTable:
    """Effective dispatch limits of one broker."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings

    def of_broker(self) -> EffectiveLimit:
        """What the whole broker may deliver."""
        settings = self._settings
        return effective_limit(
            Level.BROKER,
            broker_messages=settings.dispatchThrottlingRateInMsg,
            broker_bytes=settings.dispatchThrottlingRateInByte,
        )

    def of_topic(self, topic: TopicName) -> EffectiveLimit:
        """What one topic (each partition by itself) may deliver."""
        settings = self._settings
        namespace = self._catalog.namespace_policies(topic.namespace)
        return effective_limit(
            Level.TOPIC,
            topic_policy=policy_of(self._catalog.topic_policies(topic).dispatch_rate),
            namespace_policy=policy_of(namespace.dispatch_rate),
            namespace=str(topic.namespace),
            broker_messages=settings.dispatchThrottlingRatePerTopicInMsg,
            broker_bytes=settings.dispatchThrottlingRatePerTopicInByte,
        )

    def of_subscription(self, topic: TopicName, subscription: str) -> EffectiveLimit:
        """What one subscription of one topic (of each partition by itself) may be delivered."""
        settings = self._settings
        policies = self._catalog.topic_policies(topic)
        namespace = self._catalog.namespace_policies(topic.namespace)
        return effective_limit(
            Level.SUBSCRIPTION,
            subscription_policy=policy_of(policies.dispatch_rate_by_subscription.get(subscription)),
            topic_policy=policy_of(policies.subscription_dispatch_rate),
            namespace_policy=policy_of(namespace.subscription_dispatch_rate),
            namespace=str(topic.namespace),
            broker_messages=settings.dispatchThrottlingRatePerSubscriptionInMsg,
            broker_bytes=settings.dispatchThrottlingRatePerSubscriptionInByte,
        )
