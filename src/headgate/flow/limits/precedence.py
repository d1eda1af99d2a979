"""Which limit is in force, with the place where it is set (law 1.8).

The order is Pulsar's: the most specific policy that says anything wins *as a whole*; its missing
dimension is "no limit" and is not inherited. :func:`most_specific` decides for rate limits and
quotas alike, and REST, metrics, explain and enforcement share the answer.
A policy whose rates are both <= 0 says nothing and the next level applies, unless it says
"unlimited": that ends the search, and there is no limit at this level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit

TOPIC_POLICY = "topic policy"
"""Where a limit or quota is set that somebody set for the topic itself."""

P = TypeVar("P")

ADAPTIVE_SOURCE = "adaptive controller"
"""Where a publish limit comes from that nobody set."""

ABOVE_PUBLISH_RATE = ", above the publish rate"
"""Ends the text of a source, in telemetry, where the limit moves with what is published."""


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """A rate as REST stores it: raw numbers, not yet normalised.

    ``messages`` and ``bytes`` per ``period_s`` seconds, <= 0 meaning none; a period < 1 counts as
    1 (Pulsar clamps it). ``relative``: on top of the publish rate. ``unlimited``: explicitly no
    limit, whatever further levels say; its rates then mean nothing.
    """

    messages: int = 0
    bytes: int = 0
    period_s: int = 1
    relative: bool = False
    unlimited: bool = False

    def says_nothing(self) -> bool:
        """Whether the next level applies."""
        return not self.unlimited and self.messages <= 0 and self.bytes <= 0

    def limit(self) -> RateLimit | None:
        """The normalised limit; None where it says nothing, or that there is none."""
        if self.unlimited or self.says_nothing():
            return None
        return RateLimit(
            messages=self.messages if self.messages > 0 else None,
            bytes=self.bytes if self.bytes > 0 else None,
            period_ns=max(1, self.period_s) * NS_PER_S,
            relative=self.relative,
        )


class RateKeys(NamedTuple):
    """The two broker settings that limit the same thing."""

    messages: str
    bytes: str


DISPATCH_KEYS = {
    Level.SUBSCRIPTION: RateKeys(
        "dispatchThrottlingRatePerSubscriptionInMsg", "dispatchThrottlingRatePerSubscriptionInByte"
    ),
    Level.TOPIC: RateKeys(
        "dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerTopicInByte"
    ),
    Level.BROKER: RateKeys("dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte"),
}
"""The settings of dispatch limits."""

PUBLISH_KEYS = {
    Level.TOPIC: RateKeys("maxPublishRatePerTopicInMessages", "maxPublishRatePerTopicInBytes"),
    Level.BROKER: RateKeys(
        "brokerPublisherThrottlingMaxMessageRate", "brokerPublisherThrottlingMaxByteRate"
    ),
}
"""Those of publish limits."""


@dataclass(frozen=True, slots=True)
class EffectiveLimit:
    """The limit in force at one level and who set it.

    ``source`` is empty when nobody set anything; with a source and no ``limit``, somebody set
    "unlimited" there. ``policy`` is what was set, as it was. ``sources``: where each
    :class:`Dimension` comes from, where that is not one policy or the broker's settings.
    """

    limit: RateLimit | None
    source: str
    policy: RatePolicy | None = None
    sources: tuple[str, str] | None = None

    def source_of(self, dimension: Dimension) -> str:
        """Where this dimension is set; of two broker settings only the one that counts."""
        if self.sources is not None:
            return self.sources[dimension]
        parts = self.source.split(" and ")
        if len(parts) == 2 and parts[0].startswith("broker setting "):
            return parts[0] if dimension == Dimension.MESSAGES else f"broker setting {parts[1]}"
        return self.source


NO_LIMIT = EffectiveLimit(None, "")
"""No limit is set."""


def namespace_policy_source(namespace: str) -> str:
    """The source text of what is set for a namespace."""
    return f"namespace policy {namespace}".rstrip()


def most_specific(*candidates: tuple[P | None, str]) -> tuple[P, str] | None:
    """The first candidate with a policy, and its source; None if no candidate has one.

    Candidates are pairs of a policy and its source, the most specific first. A policy that says
    nothing is None.
    """
    for policy, source in candidates:
        if policy is not None:
            return policy, source
    return None


def effective_limit(
    broker_keys: RateKeys,
    *,
    subscription_policy: RatePolicy | None = None,
    topic_policy: RatePolicy | None = None,
    namespace_policy: RatePolicy | None = None,
    namespace: str = "",
    broker_messages: int = 0,
    broker_bytes: int = 0,
    broker_relative: bool = False,
) -> EffectiveLimit:
    """The limit in force at one level and its source text.

    ``subscription_policy`` (only for the subscription level: the rate set for this very
    subscription inside the topic's policies) comes before ``topic_policy`` before
    ``namespace_policy`` before the broker's settings for that level, whose period is one second.
    ``broker_keys`` are the names of these, as :data:`DISPATCH_KEYS` and :data:`PUBLISH_KEYS` have
    them by level. The caller passes the policies that belong to the same level. ``namespace`` is
    its printed name. ``broker_relative``: the settings are meant on top of the publish rate.
    """
    found = most_specific(
        (_if_it_says_anything(subscription_policy), "subscription policy"),
        (_if_it_says_anything(topic_policy), TOPIC_POLICY),
        (_if_it_says_anything(namespace_policy), namespace_policy_source(namespace)),
    )
    if found is not None:
        policy, source = found
        return EffectiveLimit(policy.limit(), source, policy)
    settings = RatePolicy(broker_messages, broker_bytes, relative=broker_relative)
    limit = settings.limit()
    if limit is None:
        return EffectiveLimit(None, "")
    names = [
        key
        for key, amount in zip(broker_keys, (limit.messages, limit.bytes), strict=True)
        if amount is not None
    ]
    return EffectiveLimit(limit, "broker setting " + " and ".join(names), settings)


def tighter(one: RateLimit | None, other: RateLimit | None) -> RateLimit | None:
    """What two limits over one second allow together: as they count the same messages, the tighter
    one in each dimension is all that can bind (law 3.3)."""
    if one is None or other is None:
        return one or other
    return RateLimit(
        messages=_least(one.messages, other.messages), bytes=_least(one.bytes, other.bytes)
    )


def is_tighter(limit: RateLimit, other: RateLimit | None, dimension: Dimension) -> bool:
    """Whether of a dimension that is limited ``limit`` is what binds."""
    others = None if other is None else other.amount(dimension)
    amount = limit.amount(dimension)
    return others is None or (amount is not None and amount < others)


def _least(one: int | None, other: int | None) -> int | None:
    return min((amount for amount in (one, other) if amount is not None), default=None)


def _if_it_says_anything(policy: RatePolicy | None) -> RatePolicy | None:
    return None if policy is None or policy.says_nothing() else policy
