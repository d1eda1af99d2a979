"""Policies as Pulsar's admin API writes them.

Field names in JSON are Pulsar's (``rename="camel"``). A missing field has Pulsar's default for
*missing* fields. For dispatch rates that is 0; only the builder of the Java client and the CLI send
-1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field

from headgate.base.units import INT32_MAX, INT64_MAX

JavaInt = Annotated[int, Meta(ge=-INT32_MAX - 1, le=INT32_MAX)]
"""Pulsar's ``int`` fields."""

JavaLong = Annotated[int, Meta(ge=-INT64_MAX - 1, le=INT64_MAX)]
"""Pulsar's ``long`` fields."""


class DispatchRate(Struct, frozen=True, rename="camel"):
    """A dispatch limit: messages and bytes per period.

    A dimension <= 0 is not limited; if both are, the policy counts as not set and the next level
    applies, unless it is ``unlimited``. A period below 1 s is stored as given and treated as 1 s.

    Raises ``ValueError`` if it is unlimited and has a rate or is relative to one.
    """

    dispatch_throttling_rate_in_msg: JavaInt = 0
    dispatch_throttling_rate_in_byte: JavaLong = 0
    relative_to_publish_rate: bool = False
    rate_period_in_second: JavaInt = 0
    unlimited: bool | UnsetType = UNSET
    """No limit, whatever wider levels set. A field of Headgate; absent unless set."""

    def __post_init__(self) -> None:
        if self.is_unlimited and (self.is_limit or self.relative_to_publish_rate):
            raise ValueError("unlimited excludes rates above 0 and relativeToPublishRate")

    @property
    def is_limit(self) -> bool:
        """Whether it limits anything."""
        return self.dispatch_throttling_rate_in_msg > 0 or self.dispatch_throttling_rate_in_byte > 0

    @property
    def is_unlimited(self) -> bool:
        """Whether it sets no limit explicitly."""
        return self.unlimited is True

    @property
    def says_nothing(self) -> bool:
        """Whether the next level applies."""
        return not self.is_limit and not self.is_unlimited

    @property
    def period_s(self) -> int:
        """The period that is enforced, in seconds: never below 1."""
        return max(1, self.rate_period_in_second)


class PublishRate(Struct, frozen=True, rename="camel"):
    """A publish limit of a topic: messages and bytes per second.

    A dimension <= 0 is not limited; if both are, the policy counts as not set and the next level
    applies, unless it is ``unlimited``. A missing field is -1, as in Pulsar.

    Raises ``ValueError`` if it is unlimited and has a rate.
    """

    publish_throttling_rate_in_msg: JavaInt = -1
    publish_throttling_rate_in_byte: JavaLong = -1
    unlimited: bool | UnsetType = UNSET
    """No limit, whatever wider levels set. A field of Headgate; absent unless set."""

    def __post_init__(self) -> None:
        rates = (self.publish_throttling_rate_in_msg, self.publish_throttling_rate_in_byte)
        if self.is_unlimited and max(rates) > 0:
            raise ValueError("unlimited excludes rates above 0")

    @property
    def is_unlimited(self) -> bool:
        """Whether it sets no limit explicitly."""
        return self.unlimited is True


class Retention(Struct, frozen=True, rename="camel"):
    """For how long, and up to which size, acknowledged messages are kept; -1 means without bound.

    A message that either bound does not cover is removed. ``(0, 0)`` keeps none.
    """

    retention_time_in_minutes: JavaInt = 0
    retention_size_in_mb: JavaLong = field(default=0, name="retentionSizeInMB")


QuotaPolicyName = Literal[
    "producer_request_hold", "producer_exception", "consumer_backlog_eviction"
]
"""The actions of a backlog quota at its limit, by Pulsar's names."""


class BacklogQuota(Struct, frozen=True, rename="camel"):
    """A bound on a backlog, and the action at the bound.

    A quota of type ``destination_storage`` uses only ``limit_size``, one of ``message_age`` only
    ``limit_time``. A negative or missing limit is no limit; Pulsar takes 0 for a missing one. A
    size limit of 0 blocks all producers, as in Pulsar.
    """

    policy: QuotaPolicyName
    limit_size: JavaLong = -1
    """Bytes."""
    limit_time: JavaInt = -1
    """Seconds."""


QuotaKind = Literal["destination_storage", "message_age"]
"""The types of backlog quotas, by Pulsar's names."""

QUOTA_KINDS: tuple[QuotaKind, ...] = get_args(QuotaKind)
"""All types, in the order of responses."""


class DelayedDeliveryPolicy(Struct, frozen=True, rename="camel"):
    """Whether messages are delayed, and for how long at most.

    A missing field is 0 or false, as in Pulsar.
    """

    tick_time: JavaLong = 0
    """Milliseconds; stored and shown, without effect."""
    active: bool = False
    """Whether messages that ask for it are delayed."""
    max_delivery_delay_in_millis: JavaLong = 0
    """The longest delay that is accepted; 0 or less is no limit."""


CountField = Literal[
    "max_producers_per_topic",
    "max_consumers_per_topic",
    "max_consumers_per_subscription",
    "max_subscriptions_per_topic",
]
"""The fields of both kinds of policies that limit a number of clients or subscriptions."""

TOPICS_MAX = "max_topics_per_namespace"
"""The field of namespace policies that limits the number of topics."""

COUNT_NAMES: Mapping[str, str] = {
    "max_producers_per_topic": "maxProducersPerTopic",
    "max_consumers_per_topic": "maxConsumersPerTopic",
    "max_consumers_per_subscription": "maxConsumersPerSubscription",
    "max_subscriptions_per_topic": "maxSubscriptionsPerTopic",
    TOPICS_MAX: "maxTopicsPerNamespace",
}
"""The fields that limit a number, with their names in REST for a namespace. The broker's settings
have the same names."""

TOPIC_COUNT_NAMES: Mapping[CountField, str] = {
    "max_producers_per_topic": "maxProducers",
    "max_consumers_per_topic": "maxConsumers",
    "max_consumers_per_subscription": "maxConsumersPerSubscription",
    "max_subscriptions_per_topic": "maxSubscriptionsPerTopic",
}
"""The same for a topic, which Pulsar names differently."""


def with_quota(
    quotas: Mapping[QuotaKind, BacklogQuota], kind: QuotaKind, quota: BacklogQuota | None
) -> dict[QuotaKind, BacklogQuota]:
    """``quotas`` with one type replaced or (``None``) removed, in the order of types."""
    found = {**quotas, kind: quota}
    return {each: one for each in QUOTA_KINDS if (one := found.get(each)) is not None}


class NamespacePolicies(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The policies of a namespace. ``None``: not set, the broker's setting applies.

    A new policy is another optional field: in stored rows it is not set.
    """

    dispatch_rate: DispatchRate | None = None
    subscription_dispatch_rate: DispatchRate | None = None
    publish_rate: PublishRate | None = None
    retention: Retention | None = None
    backlog_quotas: Mapping[QuotaKind, BacklogQuota] = field(default_factory=dict)
    max_producers_per_topic: int | None = None
    """A field of :data:`COUNT_NAMES`: 0 is no limit, even if a wider level has one."""
    max_consumers_per_topic: int | None = None
    max_consumers_per_subscription: int | None = None
    max_subscriptions_per_topic: int | None = None
    max_topics_per_namespace: int | None = None
    delayed_delivery: DelayedDeliveryPolicy | None = None
    encryption_required: bool = False
    """Whether producers must encrypt messages."""


class TopicPolicies(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The policies of a topic. The partitions of a partitioned topic share them."""

    dispatch_rate: DispatchRate | None = None
    subscription_dispatch_rate: DispatchRate | None = None
    publish_rate: PublishRate | None = None
    retention: Retention | None = None
    backlog_quotas: Mapping[QuotaKind, BacklogQuota] = field(default_factory=dict)
    max_producers_per_topic: int | None = None
    max_consumers_per_topic: int | None = None
    max_consumers_per_subscription: int | None = None
    max_subscriptions_per_topic: int | None = None
    dispatch_rate_by_subscription: Mapping[str, DispatchRate] = field(default_factory=dict)
    """Limits of single subscriptions by name; they override ``subscription_dispatch_rate``."""
    delayed_delivery: DelayedDeliveryPolicy | None = None
    max_message_size: int | None = None
    """Bytes of the largest entry; 0 is no limit but the broker's."""


NO_TOPIC_POLICIES = TopicPolicies()
"""The policies of a topic on which none is set."""


def retention_policy(topic: TopicPolicies, namespace: NamespacePolicies) -> Retention | None:
    """The retention that is set for a topic: its own, else its namespace's. None: the broker's
    setting applies."""
    return namespace.retention if topic.retention is None else topic.retention
