"""Which dispatch limit is in force and where it is set (law 1.8).

Enforcement, REST's ``applied=true``, /metrics, telemetry and explain all ask here.
:class:`LimitTable` knows what is set, by names; :class:`LimitsInForce` what that amounts to at
present on what is live, where a limit is relative to the publish rate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from msgspec import UNSET

from headgate.base.names import TopicName
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.limits.gate_node import GateNode
from headgate.flow.limits.precedence import (
    DISPATCH_KEYS,
    EffectiveLimit,
    RatePolicy,
    effective_limit,
)
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import DispatchRate
from headgate.policy.settings import Settings

NO_LIMIT = EffectiveLimit(None, "")


def policy_of(rate: DispatchRate | None) -> RatePolicy | None:
    """A stored rate as the law reads it."""
    if rate is None:
        return None
    return RatePolicy(
        messages=rate.dispatch_throttling_rate_in_msg,
        bytes=rate.dispatch_throttling_rate_in_byte,
        period_s=rate.rate_period_in_second,
        relative=rate.relative_to_publish_rate,
        unlimited=rate.is_unlimited,
    )


def rate_of(policy: RatePolicy | None) -> DispatchRate:
    """What REST shows for the policy that decided; without one, rates of 0."""
    if policy is None:
        return DispatchRate(rate_period_in_second=1)
    return DispatchRate(
        dispatch_throttling_rate_in_msg=policy.messages,
        dispatch_throttling_rate_in_byte=policy.bytes,
        relative_to_publish_rate=policy.relative,
        rate_period_in_second=policy.period_s,
        unlimited=True if policy.unlimited else UNSET,
    )


class LimitTable:
    """Effective dispatch limits of one broker, as they are set."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings

    def of_broker(self) -> EffectiveLimit:
        """What the whole broker may deliver."""
        settings = self._settings
        return effective_limit(
            DISPATCH_KEYS[Level.BROKER],
            broker_messages=settings.dispatchThrottlingRateInMsg,
            broker_bytes=settings.dispatchThrottlingRateInByte,
            broker_relative=settings.dispatchThrottlingRateRelativeToPublishRate,
        )

    def of_topic(self, topic: TopicName) -> EffectiveLimit:
        """What one topic (each partition by itself) may deliver."""
        settings = self._settings
        namespace = self._catalog.namespace_policies(topic.namespace)
        return effective_limit(
            DISPATCH_KEYS[Level.TOPIC],
            topic_policy=policy_of(self._catalog.topic_policies(topic).dispatch_rate),
            namespace_policy=policy_of(namespace.dispatch_rate),
            namespace=str(topic.namespace),
            broker_messages=settings.dispatchThrottlingRatePerTopicInMsg,
            broker_bytes=settings.dispatchThrottlingRatePerTopicInByte,
            broker_relative=settings.dispatchThrottlingRateRelativeToPublishRate,
        )

    def of_subscription(self, topic: TopicName, subscription: str) -> EffectiveLimit:
        """What one subscription of one topic (of each partition by itself) may be delivered."""
        settings = self._settings
        policies = self._catalog.topic_policies(topic)
        namespace = self._catalog.namespace_policies(topic.namespace)
        return effective_limit(
            DISPATCH_KEYS[Level.SUBSCRIPTION],
            subscription_policy=policy_of(policies.dispatch_rate_by_subscription.get(subscription)),
            topic_policy=policy_of(policies.subscription_dispatch_rate),
            namespace_policy=policy_of(namespace.subscription_dispatch_rate),
            namespace=str(topic.namespace),
            broker_messages=settings.dispatchThrottlingRatePerSubscriptionInMsg,
            broker_bytes=settings.dispatchThrottlingRatePerSubscriptionInByte,
            broker_relative=settings.dispatchThrottlingRateRelativeToPublishRate,
        )


class LimitSource(Protocol):
    """Which limits are set: :class:`LimitTable` is one."""

    def of_broker(self) -> EffectiveLimit:
        """What the whole broker may deliver."""

    def of_topic(self, topic: TopicName, /) -> EffectiveLimit:
        """What one topic may deliver."""

    def of_subscription(self, topic: TopicName, subscription: str, /) -> EffectiveLimit:
        """What one subscription of one topic may be delivered."""


class LimitsInForce:
    """Effective dispatch limits of what is live: as they are set, with what is enforced now."""

    def __init__(self, table: LimitSource, engine: Engine) -> None:
        self._table = table
        self._engine = engine

    def of_broker(self) -> EffectiveLimit:
        """What the whole broker may deliver now."""
        return _enforced(self._table.of_broker(), self._engine.gate, times=0)

    def of_topic(self, topic: Topic) -> EffectiveLimit:
        """What a topic may deliver now; no limit on the broker's own."""
        if topic.is_system:
            return NO_LIMIT
        effective = self._table.of_topic(topic.name)
        if effective.limit is None or not effective.limit.relative:
            return effective  # the usual case; counting is O(subscriptions)
        times = self._engine.relative.followers(topic)
        return _enforced(effective, topic.gate, times=times)

    def of_subscription(self, subscription: Subscription) -> EffectiveLimit:
        """What a subscription may be delivered now; no limit on the broker's own topics."""
        topic = subscription.topic
        if topic.is_system:
            return NO_LIMIT
        effective = self._table.of_subscription(topic.name, subscription.name)
        return _enforced(effective, subscription.gate, times=1)

    def on(self, subscription: Subscription) -> list[EffectiveLimit]:
        """The limits that a subscription meets, indexed by level."""
        return [self.of_subscription(subscription), *self.above(subscription.topic)]

    def above(self, topic: Topic) -> list[EffectiveLimit]:
        """Those of them that all subscriptions of a topic share: its own and the broker's."""
        if topic.is_system:
            return [NO_LIMIT, NO_LIMIT]
        return [self.of_topic(topic), self.of_broker()]


def _enforced(effective: EffectiveLimit, gate: GateNode, *, times: int) -> EffectiveLimit:
    """The same with the numbers that its gate enforces, if it moves with the publish rate;
    ``times`` is how often that is in it."""
    limit = effective.limit
    if limit is None or not limit.relative or not gate.budgets:
        return effective
    amounts = {budget.dimension: budget.limit for budget in gate.budgets}
    now = RateLimit(
        amounts.get(Dimension.MESSAGES),
        amounts.get(Dimension.BYTES),
        limit.period_ns,
        base=limit,
        times=times,
    )
    return replace(effective, limit=now)
