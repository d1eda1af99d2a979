"""Policies as Pulsar's admin API writes them.

Field names in JSON are Pulsar's (``rename="camel"``). A missing field has Pulsar's default for
*missing* fields. For dispatch rates that is 0; only the builder of the Java client and the CLI send
-1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field

from headgate.base.schema_types import AutoUpdateStrategy, CompatibilityStrategy
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
    "max_unacked_messages_per_consumer",
    "max_unacked_messages_per_subscription",
]
"""The fields of both kinds of policies that limit a number of clients, subscriptions or
unacknowledged messages."""

TOPICS_MAX = "max_topics_per_namespace"
"""The field of namespace policies that limits the number of topics."""

COUNT_NAMES: Mapping[str, str] = {
    "max_producers_per_topic": "maxProducersPerTopic",
    "max_consumers_per_topic": "maxConsumersPerTopic",
    "max_consumers_per_subscription": "maxConsumersPerSubscription",
    "max_subscriptions_per_topic": "maxSubscriptionsPerTopic",
    TOPICS_MAX: "maxTopicsPerNamespace",
    "max_unacked_messages_per_consumer": "maxUnackedMessagesPerConsumer",
    "max_unacked_messages_per_subscription": "maxUnackedMessagesPerSubscription",
}
"""The fields that limit a number, with their names in REST for a namespace. The broker's settings
have the same names."""

TOPIC_COUNT_NAMES: Mapping[CountField, str] = {
    "max_producers_per_topic": "maxProducers",
    "max_consumers_per_topic": "maxConsumers",
    "max_consumers_per_subscription": "maxConsumersPerSubscription",
    "max_subscriptions_per_topic": "maxSubscriptionsPerTopic",
    "max_unacked_messages_per_consumer": "maxUnackedMessagesOnConsumer",
    "max_unacked_messages_per_subscription": "maxUnackedMessagesOnSubscription",
}
"""The same for a topic, which Pulsar names differently."""

InactiveTopicDeleteMode = Literal[
    "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"
]
"""When an unused topic is inactive, by Pulsar's names."""


class InactiveTopicPolicies(Struct, frozen=True, rename="camel"):
    """Whether and when a topic that nobody uses is deleted."""

    inactive_topic_delete_mode: InactiveTopicDeleteMode = "delete_when_no_subscriptions"
    """A topic with producers or consumers is active. One with subscriptions is, too, or only if
    one of them has a backlog."""
    max_inactive_duration_seconds: JavaInt = 0
    delete_while_inactive: bool = False
    """False: the topic is never deleted."""


TopicType = Literal["partitioned", "non-partitioned"]
"""The types of topics that a client's first use may create."""


class AutoTopicCreation(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether a client's first use creates a topic, and of which type."""

    allow_auto_topic_creation: bool
    topic_type: TopicType | None = None
    """Required if topics are created."""
    default_num_partitions: JavaInt | None = None
    """Only for partitioned topics, and required for them."""


class AutoSubscriptionCreation(Struct, frozen=True, rename="camel"):
    """Whether a consumer creates the durable subscription that it names."""

    allow_auto_subscription_creation: bool = False


SubscriptionTypeName = Literal["Exclusive", "Shared", "Failover", "Key_Shared"]
"""The types of subscriptions, by Pulsar's names."""

SUBSCRIPTION_TYPES: tuple[SubscriptionTypeName, ...] = get_args(SubscriptionTypeName)

SubscriptionTypes = Annotated[tuple[SubscriptionTypeName, ...], Meta(max_length=4)]
"""A policy as clients send it, which names each type once at most."""


class Persistence(Struct, frozen=True, rename="camel"):
    """How entries are stored. The log keeps one copy of each and stores acknowledgements at once,
    so that only these values are allowed."""

    bookkeeper_ensemble: JavaInt = 0
    bookkeeper_write_quorum: JavaInt = 0
    bookkeeper_ack_quorum: JavaInt = 0
    managed_ledger_max_mark_delete_rate: float | None = 0.0
    """Null is none, as in Pulsar; it is also how an infinite one was stored."""


def with_quota(
    quotas: Mapping[QuotaKind, BacklogQuota], kind: QuotaKind, quota: BacklogQuota | None
) -> dict[QuotaKind, BacklogQuota]:
    """``quotas`` with one type replaced or (``None``) removed, in the order of types."""
    found = {**quotas, kind: quota}
    return {each: one for each in QUOTA_KINDS if (one := found.get(each)) is not None}


class CommonPolicies(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be set on a namespace and on a topic. ``None``: not set, the next level applies.

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
    schema_compatibility_strategy: CompatibilityStrategy | None = None
    deduplication: bool | None = None
    """Whether messages are stored once only."""
    message_ttl_in_seconds: int | None = None
    """Age from which unacknowledged messages expire; 0 is none, even if a wider level has one."""
    subscription_expiration_time_minutes: int | None = None
    """Time without a consumer after which a subscription is deleted; 0 is never."""
    inactive_topic_policies: InactiveTopicPolicies | None = None
    auto_subscription_creation: AutoSubscriptionCreation | None = None
    subscription_types_enabled: tuple[SubscriptionTypeName, ...] | None = None
    """Types that consumers may use; None or none: the next level decides."""
    max_unacked_messages_per_consumer: int | None = None
    max_unacked_messages_per_subscription: int | None = None
    persistence: Persistence | None = None
    delayed_delivery: DelayedDeliveryPolicy | None = None


class NamespacePolicies(CommonPolicies, frozen=True, kw_only=True, omit_defaults=True):
    """The policies of a namespace."""

    max_topics_per_namespace: int | None = None
    schema_auto_update_compatibility_strategy: AutoUpdateStrategy | None = None
    """The older policy, for a namespace without the newer one."""
    is_allow_auto_update_schema: bool | None = None
    """Whether clients may bring new definitions."""
    schema_validation_enforced: bool = False
    """Whether producers without a schema are refused on topics with one."""
    auto_topic_creation: AutoTopicCreation | None = None
    encryption_required: bool = False
    """Whether producers must encrypt messages."""
    allowed_topic_property_keys_for_metrics: tuple[str, ...] | None = None
    """The properties of its topics that become labels on /metrics; None: the broker's setting."""


class TopicPolicies(CommonPolicies, frozen=True, kw_only=True, omit_defaults=True):
    """The policies of a topic. The partitions of a partitioned topic share them."""

    dispatch_rate_by_subscription: Mapping[str, DispatchRate] = field(default_factory=dict)
    """Limits of single subscriptions by name; they override ``subscription_dispatch_rate``."""
    schema_validation_enforced: bool | None = None
    max_message_size: int | None = None
    """Bytes of the largest entry; 0 is no limit but the broker's."""


NO_TOPIC_POLICIES = TopicPolicies()
"""The policies of a topic on which none is set."""


def deduplication_policy(topic: TopicPolicies, namespace: NamespacePolicies) -> bool | None:
    """Whether message deduplication is set for a topic: by its own policy, else its namespace's.
    None: the broker's setting applies."""
    return namespace.deduplication if topic.deduplication is None else topic.deduplication


def retention_policy(topic: TopicPolicies, namespace: NamespacePolicies) -> Retention | None:
    """The retention that is set for a topic: its own, else its namespace's. None: the broker's
    setting applies."""
    return namespace.retention if topic.retention is None else topic.retention
