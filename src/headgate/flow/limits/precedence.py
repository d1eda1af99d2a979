"""Which limit is in force, and where it is set (law 1.8).

The order is Pulsar's: the most specific policy that sets anything wins *as a whole*; a dimension
that it leaves out is unlimited, not inherited. :func:`most_specific` decides for rate limits
and quotas alike, and REST, metrics, explain and enforcement all use its result. A policy whose
rates are both <= 0 sets nothing, and the next level applies. A policy that says "unlimited" ends
the search: there is no limit at this level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit

TOPIC_POLICY = "topic policy"
"""The source of a limit or quota that is set on the topic itself."""

P = TypeVar("P")

ADAPTIVE_SOURCE = "adaptive controller"
"""The source of a publish limit that the adaptive controller sets."""

ABOVE_PUBLISH_RATE = ", above the publish rate"
"""The end of a source's text, in telemetry, if the limit is relative to the publish rate."""


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """A rate as REST stores it: raw numbers, not yet normalised.

    ``messages`` and ``bytes`` count per ``period_s`` seconds; <= 0 means no limit. A period < 1
    counts as 1, as in Pulsar. A ``relative`` rate comes on top of the publish rate. ``unlimited``
    means no limit, whatever further levels set; the rates are then ignored.
    """

    messages: int = 0
    bytes: int = 0
    period_s: int = 1
    relative: bool = False
    unlimited: bool = False

    def says_nothing(self) -> bool:
        """Whether it sets no limit, so that the next level applies."""
        return not self.unlimited and self.messages <= 0 and self.bytes <= 0

    def limit(self) -> RateLimit | None:
        """The normalised limit; None if it sets none or says "unlimited"."""
        if self.unlimited or self.says_nothing():
            return None
        return RateLimit(
            messages=self.messages if self.messages > 0 else None,
            bytes=self.bytes if self.bytes > 0 else None,
            period_ns=max(1, self.period_s) * NS_PER_S,
            relative=self.relative,
        )


class RateKeys(NamedTuple):
    """The two broker settings of one limit."""

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
"""The broker settings of dispatch limits."""

PUBLISH_KEYS = {
    Level.TOPIC: RateKeys("maxPublishRatePerTopicInMessages", "maxPublishRatePerTopicInBytes"),
    Level.BROKER: RateKeys(
        "brokerPublisherThrottlingMaxMessageRate", "brokerPublisherThrottlingMaxByteRate"
    ),
}
"""The broker settings of publish limits."""


@dataclass(frozen=True, slots=True)
class EffectiveLimit:
    """The limit of the most specific policy or setting at one level, and its source.

    ``source`` is empty if nothing is set. A source without a ``limit`` says "unlimited". ``policy``
    is the policy as it was set. ``sources`` has the source of each :class:`Dimension`
    where ``source`` alone does not tell it.
    """

    limit: RateLimit | None
    source: str
    policy: RatePolicy | None = None
    sources: tuple[str, str] | None = None

    def source_of(self, dimension: Dimension) -> str:
        """The source of one dimension; of two broker settings, the one for that dimension."""
        if self.sources is not None:
            return self.sources[dimension]
        parts = self.source.split(" and ")
        if len(parts) == 2 and parts[0].startswith("broker setting "):
            return parts[0] if dimension == Dimension.MESSAGES else f"broker setting {parts[1]}"
        return self.source


NO_LIMIT = EffectiveLimit(None, "")
"""No limit is set."""


def namespace_policy_source(namespace: str) -> str:
    """The source text of a namespace policy."""
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
    """The limit in force at one level, and its source text.

    The order is ``subscription_policy``, ``topic_policy``, ``namespace_policy``, broker settings.
    The caller passes policies of the same level; ``subscription_policy`` exists only at the
    subscription level and is the rate that the topic's policies set for this one subscription. The
    broker settings count per second; ``broker_keys`` are their names, from :data:`DISPATCH_KEYS` or
    :data:`PUBLISH_KEYS`. ``broker_relative`` adds them to the publish rate. ``namespace`` is the
    name to print.
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
    """What two limits over one second allow together: the tighter one in each dimension, because
    both count the same messages (law 3.3)."""
    if one is None or other is None:
        return one or other
    return RateLimit(
        messages=_least(one.messages, other.messages), bytes=_least(one.bytes, other.bytes)
    )


def is_tighter(limit: RateLimit, other: RateLimit | None, dimension: Dimension) -> bool:
    """Whether ``limit`` is tighter than ``other`` in a dimension that one of them limits."""
    others = None if other is None else other.amount(dimension)
    amount = limit.amount(dimension)
    return others is None or (amount is not None and amount < others)


def _least(one: int | None, other: int | None) -> int | None:
    return min((amount for amount in (one, other) if amount is not None), default=None)


def _if_it_says_anything(policy: RatePolicy | None) -> RatePolicy | None:
    return None if policy is None or policy.says_nothing() else policy
