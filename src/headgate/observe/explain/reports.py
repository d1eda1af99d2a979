"""The JSON fields of explain's reports.

Names are in camel case in JSON (``backlog_messages`` is ``backlogMessages``). Fields are added,
never renamed. Seconds and rates are floats, shares lie in 0..1 and sum to 1, messages and bytes are
integers, instants are ISO 8601 in UTC. ``null`` means: not known, or none.
"""

from __future__ import annotations

from msgspec import Struct

from headgate.observe.states.fields import (
    AdaptiveState,
    HeldBackState,
    LimitRef,
    LimitState,
    ParkedState,
    QuotaState,
    StorageState,
)


class TopicQuotaReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """A backlog quota that is exceeded or breaks soon, and whose it is."""

    topic: str
    """Of a partitioned topic the partition: each has the quota by itself."""
    quota: QuotaState


class HeldProducer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A producer with messages that wait in the broker."""

    topic: str
    producer: str
    cause: str
    messages: int
    bytes: int
    waiting_s: float
    """Since the oldest of them arrived."""


class TopicPublishingReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """A topic whose producers are held now."""

    topic: str
    """Of a partitioned topic the partition: each has the limit by itself."""
    causes: list[str]
    """What holds them, as in :class:`ParkedState`; who holds most messages first."""
    messages: int
    bytes: int
    sentence: str


class StateTime(Struct, frozen=True, kw_only=True, rename="camel"):
    """Time in one state of the account (``headgate_subscription_state_seconds_total``)."""

    state: str
    dimension: str
    consumer: str
    """``hungry`` or ``busy`` where a limiter held, else empty."""
    seconds: float
    share: float


class AccountWindow(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one subscription did in a window that ends now; seconds per state add up to the window
    (for a partitioned topic answered as one: to the sum of its partitions' windows)."""

    window_s: float
    states: list[StateTime]
    """Largest first; states that did not occur are left out."""
    shares: dict[str, float]
    """Blame by verdict; sums to 1."""
    appended: int
    delivered: int
    acked: int
    skipped: int
    rewound: int
    expired: int
    evicted: int
    """Taken by a backlog quota."""
    redelivered: int
    backlog_start: int
    backlog_end: int
    oldest_age_max_s: float
    appended_per_s: float
    delivered_per_s: float
    acked_per_s: float


class SubscriptionReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """One subscription and why its backlog is what it is."""

    topic: str
    subscription: str
    partitions: int
    """Over how many partitions this was summed; 0 for a topic without."""
    type: str
    consumers: int
    state: str
    """Of the account, now; of several partitions the one with the largest backlog."""
    state_dimension: str
    state_consumer: str
    backlog_messages: int
    backlog_bytes: int
    unacked_messages: int
    """With consumers, not acknowledged."""
    permits: int
    permits_max: int
    """The consumers' windows: the largest permit totals they ever had."""
    oldest_age_s: float
    backlog_since: str | None
    """When the backlog began; null while only messages in flight are unacknowledged."""
    backlog_since_s: float | None
    known_since: str
    """From when on the broker has watched all of it: since its start, or the topic's load, or an
    hour at most. A backlog may be older; what held it before that, nobody knows."""
    known_since_s: float
    verdict: str
    """NONE, CONSUMER, NO_CONSUMER, THROTTLED_SUBSCRIPTION, _TOPIC, _BROKER or BROKER; while it is
    too early for one SETTLING: then ``second``, ``verdictSince``, ``wouldHaveGrown`` and ``limit``
    are null, and the confidence is 0."""
    second: str | None
    """Also named: within 5 %, or a limiter that merely stands by."""
    bystander: bool
    verdict_since: str | None
    """Back to when the account has said so without a break, as far as it is known: not before
    ``knownSince``. Where the backlog is older the sentence says "at least"."""
    verdict_since_s: float | None
    confidence: float
    confidence_level: str
    """``settling`` (less than three seconds are known; of a backlog that is older than what is
    known, and would be the broker's, less than ten), ``low``, ``medium`` or ``high``."""
    window_s: float
    """What the verdict is about: since the backlog began, at most the last 60 s."""
    growth_messages: int
    """Over that window."""
    shares: dict[str, float]
    would_have_grown: bool | None
    """Without the limit, at the consumer's demonstrated rate; null when no limit is blamed."""
    proven_ack_per_s: float | None
    """95th percentile of its ack rate while unthrottled with a backlog, in the last hour."""
    limit: LimitRef | None
    damage: str | None
    """Where the disk lost something of it, or of its topic; null where it did not. The sentence is
    about that, then."""
    sentence: str


class SubscriptionAccount(SubscriptionReport, frozen=True, kw_only=True, rename="camel"):
    """The same with the account in full."""

    minute: AccountWindow
    hour: AccountWindow
    limits: list[LimitState]
    """Set on this subscription itself; one a partition."""
    spared: bool
    """Whether no limit applies to it now, because it is caught up
    (``dispatchThrottlingOnNonBacklogConsumerEnabled=false``)."""
    held_back: list[HeldBackState]
    """By each limiter that held anything back since the topic was loaded."""


class Publishing(Struct, frozen=True, kw_only=True, rename="camel"):
    """The publishing side of a topic; rates are means over the last 5 to 10 seconds."""

    producers: int
    messages_per_s: float
    bytes_per_s: float
    pending_entries: int
    """Received and not yet durable."""
    parked: list[ParkedState]
    """By each cause that ever had anything wait since the topic was loaded."""
    longest_waiting: list[HeldProducer]
    """At most five: those with most messages that wait."""
    limits: list[LimitState]
    """Publish limits of the topic (one a partition) and of the broker."""
    delays_ignored: int
    """Messages that asked to be delivered later and were delivered at once, since the topic was
    loaded: delayed delivery is not supported."""
    sentence: str
    """What holds publishing now, or held it lately."""
    last_publish: str | None


class TopicReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """``explain TOPIC``."""

    topic: str
    at: str
    partitions: int
    """0: not partitioned."""
    sentence: str
    """About the subscription with the largest backlog; about damage where there is any."""
    damage: str | None
    """Where the disk lost something of the topic; null where it did not."""
    storage_bytes: int
    storage: StorageState
    publishing: Publishing
    quotas: list[QuotaState]
    """The backlog quotas in force."""
    adaptive: AdaptiveState | None
    """Null where adaptive publish throttling is not enabled, or knows nothing of the topic yet."""
    limits: list[LimitState]
    """Dispatch limits of the topic (one a partition) and of the broker."""
    subscriptions: list[SubscriptionAccount]
    """Largest backlog first."""
    per_partition: list[TopicReport] | None
    """The partitions one by one; null unless asked for."""


class DamageState(Struct, frozen=True, kw_only=True, rename="camel"):
    """A topic or subscription that cannot go on because the disk lost something of it."""

    topic: str
    """Full name; of a partitioned topic the partition's."""
    subscription: str | None
    """Null: the whole topic."""
    damage: str
    """Where, and what is lost."""


class TopReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """``explain`` without a topic: the worst backlogs."""

    at: str
    broker: str
    subscriptions_total: int
    """A partitioned topic's counts once."""
    with_backlog: int
    """How many of them have any unacknowledged message."""
    storage: StorageState
    subscriptions: list[SubscriptionReport]
    """Largest backlog first; the partitions of a topic are summed."""
    quotas: list[TopicQuotaReport]
    """Backlog quotas that are exceeded, then those that break within a day, the nearest first; as
    many as subscriptions at most."""
    publishing: list[TopicPublishingReport]
    """Topics whose producers are held now, those with most messages that wait first; as many as
    subscriptions at most."""
    damaged: list[DamageState]
    """What the disk lost something of; as many as subscriptions at most."""
