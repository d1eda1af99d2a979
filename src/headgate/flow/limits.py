"""Which limit is in force, and where it is set.

One function, :func:`effective_limit`, answers for REST, metrics, explain and enforcement alike
(law 1.8), so that they cannot disagree. The order is Pulsar's: the most specific policy
that says anything wins *as a whole*; its missing dimension is "no limit" and is not inherited.
A policy whose rates are both <= 0 says nothing and the next level applies, unless it says
"unlimited": that ends the search, and there is no limit at this level.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import NamedTuple

from headgate.base.errors import InputError
from headgate.base.units import INT64_MAX, NS_PER_S


class Level(IntEnum):
    """Whose limit it is. The order is from the most specific outwards and indexes lists."""

    SUBSCRIPTION = 0
    TOPIC = 1
    BROKER = 2


class Dimension(IntEnum):
    """What is counted. Indexes lists."""

    MESSAGES = 0
    BYTES = 1


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most so many messages and bytes in any window of one period.

    ``None`` means no limit in that dimension. Raises :class:`InputError` when a given amount is
    outside 1..2^63-1, the period is not positive or neither dimension is limited.
    """

    messages: int | None
    bytes: int | None
    period_ns: int = NS_PER_S
    relative: bool = False
    """Whether the amounts come on top of what is published (law 1.7, PIP-52). Such a limit has to
    be put :meth:`over` a publish rate before it can be enforced."""
    base: RateLimit | None = None
    """The relative limit that this one is while so much is published; None for a plain one."""
    times: int = 1
    """How often the publish rate is in a limit with a ``base``: once for each subscription that
    needs it; 0 for the sum over many topics."""

    def __post_init__(self) -> None:
        for name, amount in (("messages", self.messages), ("bytes", self.bytes)):
            if amount is not None and not 1 <= amount <= INT64_MAX:
                raise InputError(f"{name} is {amount}; a limit lies in 1..{INT64_MAX}")
        if self.messages is None and self.bytes is None:
            raise InputError("a limit needs messages or bytes; use None for no limit at all")
        if self.period_ns < 1:
            raise InputError(f"period_ns is {self.period_ns}; a period is at least 1 ns")

    def amount(self, dimension: Dimension) -> int | None:
        """The limit in that dimension per period; None if it has none."""
        return self.messages if dimension == Dimension.MESSAGES else self.bytes

    def per_second(self, dimension: Dimension) -> float | None:
        """The limit in that dimension as a rate, for people and comparisons."""
        amount = self.amount(dimension)
        return None if amount is None else amount * NS_PER_S / self.period_ns

    def over(self, published: PerSecond) -> RateLimit:
        """What a relative limit allows while ``published`` is published; itself if it is plain.

        The publish rate counts over the limit's own period, so that units agree.
        """
        if not self.relative:
            return self

        def sum_with(amount: int | None, per_second: float) -> int | None:
            if amount is None:
                return None
            return min(amount + round(per_second * self.period_ns / NS_PER_S), INT64_MAX)

        return RateLimit(
            messages=sum_with(self.messages, published.messages),
            bytes=sum_with(self.bytes, published.bytes),
            period_ns=self.period_ns,
            base=self,
        )


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


def is_lower(limit: RateLimit, other: RateLimit) -> bool:
    """Whether ``limit`` lets less through than ``other``, in the first dimension in which their
    rates differ; no limit lets everything through."""
    for dimension in Dimension:
        rates = limit.per_second(dimension), other.per_second(dimension)
        if rates[0] != rates[1]:
            return (rates[0] or inf) < (rates[1] or inf)
    return False


TOPIC_POLICY = "topic policy"
"""Where a limit or quota is set that somebody set for the topic itself."""

ADAPTIVE_SOURCE = "adaptive controller"
"""Where a publish limit comes from that nobody set."""

ABOVE_PUBLISH_RATE = ", above the publish rate"
"""Ends the text of a source, in telemetry, where the limit moves with what is published."""


class PerSecond(NamedTuple):
    """A rate in both dimensions."""

    messages: float
    bytes: float


class Refusal(NamedTuple):
    """Why the next entry may not go now, and the instant at which it may.

    When several budgets refuse, the one that releases last is named. ``release_at_ns`` may be the
    present instant: then only others' turns come first, and ``pop_ready`` is due at once.
    """

    level: Level
    dimension: Dimension
    release_at_ns: int


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
    for policy, source in (
        (subscription_policy, "subscription policy"),
        (topic_policy, TOPIC_POLICY),
        (namespace_policy, f"namespace policy {namespace}".rstrip()),
    ):
        if policy is not None and not policy.says_nothing():
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
