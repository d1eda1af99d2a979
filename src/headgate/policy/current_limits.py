"""The current limits: the amounts that the gates enforce at this moment.

A :class:`~headgate.policy.limit_table.LimitTable` has the effective limits, those of the most
specific policies. A relative dispatch limit is higher while messages are published, and the
adaptive controller may lower a publish limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from headgate.base.names import TopicName
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.limits.gate_node import GateNode
from headgate.flow.limits.precedence import (
    ADAPTIVE_SOURCE,
    NO_LIMIT,
    EffectiveLimit,
    is_tighter,
    tighter,
)
from headgate.flow.limits.rate_limit import Dimension, RateLimit

PUBLISH_TOPIC: Final = "publish_topic"
PUBLISH_BROKER: Final = "publish_broker"
"""Names of the levels of publish limits; those of dispatch limits are the names of
:class:`~headgate.flow.limits.rate_limit.Level`."""


class PublishLimitSource(Protocol):
    """The effective publish limits."""

    def of_broker(self) -> EffectiveLimit:
        """The limit of the whole broker."""

    def of_topic(self, topic: TopicName, /) -> EffectiveLimit:
        """The limit of one topic."""


class DispatchLimitSource(PublishLimitSource, Protocol):
    """The effective dispatch limits."""

    def of_subscription(self, topic: TopicName, subscription: str, /) -> EffectiveLimit:
        """The limit of one subscription of one topic."""


class CurrentDispatchLimits:
    """The current dispatch limits of loaded topics and their subscriptions."""

    def __init__(self, table: DispatchLimitSource, engine: Engine) -> None:
        self._table = table
        self._engine = engine

    def of_broker(self) -> EffectiveLimit:
        """What the whole broker may deliver now."""
        return _with_enforced_amounts(
            self._table.of_broker(), self._engine.gate, publish_rate_times=0
        )

    def of_topic(self, topic: Topic) -> EffectiveLimit:
        """What a topic may deliver now."""
        effective = self._table.of_topic(topic.name)
        if effective.limit is None or not effective.limit.relative:
            return effective  # the usual case; counting is O(subscriptions)
        times = self._engine.relative.followers(topic)
        return _with_enforced_amounts(effective, topic.gate, publish_rate_times=times)

    def of_subscription(self, subscription: Subscription) -> EffectiveLimit:
        """What the broker may deliver to a subscription now."""
        effective = self._table.of_subscription(subscription.topic.name, subscription.name)
        return _with_enforced_amounts(effective, subscription.gate, publish_rate_times=1)

    def limits_of(self, subscription: Subscription) -> list[EffectiveLimit]:
        """The limits that apply to a subscription, indexed by level."""
        return [self.of_subscription(subscription), *self.shared_limits_of(subscription.topic)]

    def shared_limits_of(self, topic: Topic) -> list[EffectiveLimit]:
        """The limits that the subscriptions of a topic share: the topic's and the broker's.

        The broker's limit does not apply to system topics.
        """
        if topic.is_system:
            return [NO_LIMIT, NO_LIMIT]
        return [self.of_topic(topic), self.of_broker()]


class CurrentPublishLimits:
    """The current publish limits of loaded topics."""

    def __init__(self, table: PublishLimitSource) -> None:
        self._table = table

    def of_broker(self) -> EffectiveLimit:
        """What all topics together may receive now."""
        return self._table.of_broker()

    def of_topic(self, topic: Topic) -> EffectiveLimit:
        """What a topic may receive now: in each dimension the tighter of the effective limit
        and the adaptive one."""
        return _with_adaptive(self._table.of_topic(topic.name), topic.publishing.adaptive_limit)

    def effective_of_topic(self, topic: Topic) -> EffectiveLimit:
        """The effective limit of a topic, without the adaptive one."""
        return self._table.of_topic(topic.name)

    def limits_of(self, topic: Topic) -> list[EffectiveLimit]:
        """The limits that apply to a topic: its own and the broker's, none to a system topic."""
        if topic.is_system:
            return [NO_LIMIT, NO_LIMIT]
        return [self.of_topic(topic), self.of_broker()]


def _with_enforced_amounts(
    effective: EffectiveLimit, gate: GateNode, *, publish_rate_times: int
) -> EffectiveLimit:
    """A relative limit with the amounts that its gate enforces, any other limit unchanged.
    ``publish_rate_times`` is how many times the publish rate is in the amounts: once for each
    subscription that follows it, 0 for the sum over many topics."""
    limit = effective.limit
    if limit is None or not limit.relative or not gate.budgets:
        return effective
    amounts = {budget.dimension: budget.limit for budget in gate.budgets}
    enforced = RateLimit(
        amounts.get(Dimension.MESSAGES),
        amounts.get(Dimension.BYTES),
        limit.period_ns,
        base=limit,
        times=publish_rate_times,
    )
    return replace(effective, limit=enforced)


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
