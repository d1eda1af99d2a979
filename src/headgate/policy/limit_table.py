"""The dispatch or publish limits that policies and settings define (law 1.8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.base.names import TopicName
from headgate.flow.limits.precedence import (
    DISPATCH_KEYS,
    NO_LIMIT,
    PUBLISH_KEYS,
    EffectiveLimit,
    RateKeys,
    RatePolicy,
    effective_limit,
)
from headgate.flow.limits.rate_limit import Level
from headgate.metadata.catalog import Catalog
from headgate.policy.rate_policies import dispatch_policy, publish_policy
from headgate.policy.settings import Settings


@dataclass(frozen=True, slots=True)
class LimitKind:
    """Where limits of one kind are stored."""

    settings: Mapping[Level, RateKeys]
    """The broker's settings for each level."""
    policies: Mapping[Level, str]
    """The field of topic policies and of namespace policies for each level that has one."""
    convert: Callable[[Any], RatePolicy | None]
    """Turns such a field's value into a policy."""
    by_subscription: str = ""
    """The field of topic policies with the rates of single subscriptions, if there is one."""
    relative_setting: str = ""
    """The setting that makes the broker's settings relative to the publish rate, if there is one.
    """


DISPATCH: Final = LimitKind(
    DISPATCH_KEYS,
    {Level.TOPIC: "dispatch_rate", Level.SUBSCRIPTION: "subscription_dispatch_rate"},
    dispatch_policy,
    "dispatch_rate_by_subscription",
    "dispatchThrottlingRateRelativeToPublishRate",
)
PUBLISH: Final = LimitKind(PUBLISH_KEYS, {Level.TOPIC: "publish_rate"}, publish_policy)


class LimitTable:
    """The limits of one kind for each name; a partition has the limits of its topic."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        kind: LimitKind,
        system_topics: Collection[str] = (),
    ) -> None:
        """``system_topics`` are full names; these topics have no limits."""
        self._catalog = catalog
        self._settings = settings
        self._kind = kind
        self._system_topics = system_topics

    def of_broker(self) -> EffectiveLimit:
        """The limit of the whole broker."""
        return effective_limit(self._kind.settings[Level.BROKER], **self._of_settings(Level.BROKER))

    def of_topic(self, topic: TopicName) -> EffectiveLimit:
        """The limit of one topic, or of one partition."""
        if topic.full in self._system_topics:
            return NO_LIMIT
        return self._of_name(Level.TOPIC, topic, None)

    def of_subscription(self, topic: TopicName, subscription: str) -> EffectiveLimit:
        """The limit of one subscription of a topic or partition. Only dispatch limits have it."""
        if topic.full in self._system_topics:
            return NO_LIMIT
        kind = self._kind
        rates = getattr(self._catalog.topic_policies(topic), kind.by_subscription)
        return self._of_name(Level.SUBSCRIPTION, topic, kind.convert(rates.get(subscription)))

    def _of_name(
        self, level: Level, topic: TopicName, subscription_policy: RatePolicy | None
    ) -> EffectiveLimit:
        kind, catalog = self._kind, self._catalog
        field = kind.policies[level]
        topic_policy = kind.convert(getattr(catalog.topic_policies(topic), field))
        policies = catalog.namespace_policies(topic.namespace)
        namespace_policy = kind.convert(getattr(policies, field))
        if subscription_policy is None and topic_policy is None and namespace_policy is None:
            keys, settings = kind.settings[level], self._settings
            if getattr(settings, keys.messages) <= 0 and getattr(settings, keys.bytes) <= 0:
                return NO_LIMIT  # most names, of which crowds are looked up at once
        return effective_limit(
            kind.settings[level],
            subscription_policy=subscription_policy,
            topic_policy=topic_policy,
            namespace_policy=namespace_policy,
            namespace=str(topic.namespace),
            **self._of_settings(level),
        )

    def _of_settings(self, level: Level) -> dict[str, Any]:
        kind, settings = self._kind, self._settings
        keys = kind.settings[level]
        return {
            "broker_messages": getattr(settings, keys.messages),
            "broker_bytes": getattr(settings, keys.bytes),
            "broker_relative": bool(kind.relative_setting)
            and getattr(settings, kind.relative_setting),
        }
