"""The JSON fields of explain's reports.

Names are in camel case in JSON (``backlog_messages`` is ``backlogMessages``). Fields are added,
never renamed. Seconds and rates are floats, shares lie in 0..1 and sum to 1, messages and bytes are
integers, instants are ISO 8601 in UTC. ``null`` means: not known, or none.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from headgate.explain.changes import BeforeGrowth, Changes
from headgate.explain.states import (
    AdaptiveState,
    DecisionState,
    LimitRef,
    LimitState,
    ParkedState,
    QuotaState,
    StorageState,
    ThrottledAmount,
)
from headgate.explain.timeline import Timeline
from headgate.flow.account.verdict import MEASURED

EXPLAIN_PATH: Final = "/admin/v2/headgate/explain"
"""Where a broker or an agent answers."""

COUNT_DEFAULT: Final = 10
COUNT_MAX: Final = 1_000
"""Backlogs of one answer."""


class TopicQuotaReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """A backlog quota that is exceeded or will be soon, with its topic."""

    topic: str
    """Full name of the topic or partition; each partition has the quota for itself."""
    quota: QuotaState


class WaitingProducer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A producer with messages that wait in the broker."""

    topic: str
    producer: str
    cause: str
    messages: int
    bytes: int
    waiting_s: float
    """Since the oldest of these messages arrived."""


class TopicPublishingReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """A topic whose producers wait now."""

    topic: str
    """Full name of the topic or partition; each partition has the limit for itself."""
    causes: list[str]
    """What the messages wait for, as in ``ParkedState``, the cause of most messages first."""
    messages: int
    bytes: int
    sentence: str


class StateTime(Struct, frozen=True, kw_only=True, rename="camel"):
    """Time in one state of the account (``headgate_subscription_state_seconds_total``)."""

    state: str
    dimension: str
    consumer: str
    """``hungry`` or ``busy`` if a limiter throttled, else empty."""
    seconds: float
    share: float
    verdict: str
    """The verdict that blames this time: the shares of a window add it up."""


class AccountWindow(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one subscription did in a window that ends now.

    The seconds of all states add up to the window; for a partitioned topic reported as one, to the
    sum over its partitions.
    """

    window_s: float
    states: list[StateTime]
    """The states that occurred, the longest first."""
    shares: dict[str, float]
    """Share of the blame by verdict; the shares sum to 1."""
    appended: int
    delivered: int
    acked: int
    skipped: int
    rewound: int
    expired: int
    evicted: int
    """Messages that a backlog quota removed."""
    redelivered: int
    backlog_start: int
    backlog_end: int
    oldest_age_max_s: float
    appended_per_s: float
    delivered_per_s: float
    acked_per_s: float


class SubscriptionReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """One subscription and the cause of its backlog."""

    topic: str
    subscription: str
    partitions: int
    """Number of partitions in the sums; 0 for a topic without partitions."""
    type: str
    consumers: int
    state: str
    """Present state of the account, on the partition with the largest backlog."""
    state_dimension: str
    state_consumer: str
    backlog_messages: int
    """Not acknowledged, delayed messages included; ``growthMessages`` is without these."""
    backlog_bytes: int
    delayed_messages: int
    """Not due yet."""
    unacked_messages: int
    """With consumers and not acknowledged."""
    permits: int
    permits_max: int
    """Sum of the largest permits that each consumer ever had."""
    oldest_age_s: float
    backlog_since: str | None
    """Start of the backlog; null while only messages in flight are unacknowledged."""
    backlog_since_s: float | None
    known_since: str
    """Start of the broker's history of it: the broker's start, the load of the topic, or an hour
    ago. A backlog may be older; its cause before is unknown."""
    known_since_s: float
    verdict: str
    """NONE, CONSUMER, NO_CONSUMER, THROTTLED_SUBSCRIPTION, _TOPIC, _BROKER or BROKER. SETTLING
    while it is too early for a verdict: then ``second``, ``verdictSince``, ``wouldHaveGrown`` and
    ``limit`` are null, and the confidence is 0."""
    second: str | None
    """A second cause: within 5 % of the first, or a limiter that is only a bystander."""
    bystander: bool
    verdict_since: str | None
    """Since when the account has given this verdict without a break, not before ``knownSince``. If
    the backlog is older, the sentence says "at least"."""
    verdict_since_s: float | None
    confidence: float
    confidence_level: str
    """``settling``, ``low``, ``medium`` or ``high``. A verdict settles after three seconds of
    history; one that blames the broker for a backlog older than the history, after ten."""
    window_s: float
    """The time that the verdict covers: since the backlog began, at most the last 60 s."""
    growth_messages: int
    """Growth of the backlog over that window."""
    evicted_messages: int
    """Messages that left the backlog in that window because a backlog quota evicted them."""
    expired_messages: int
    """The same of messages that expired."""
    skipped_messages: int
    """The same of messages that were skipped."""
    drains_in_s: float | None
    """In how many seconds the backlog is gone at the pace at which it was consumed in that window;
    null if it stands still or grows, and while it fills a size quota. What was evicted, expired or
    skipped is not consumed."""
    breaks_in_s: float | None
    """In how many seconds this backlog fills a backlog quota, the sooner one of two: the
    ``secondsToBreach`` of a quota whose ``subscription`` this is. 0 while the quota is full."""
    breaks_quota: str | None
    """That quota: ``size`` or ``time``."""
    shares: dict[str, float]
    would_have_grown: bool | None
    """Without the limit, at the consumer's demonstrated rate; null when no limit is blamed."""
    proven_ack_per_s: float | None
    """95th percentile of the acknowledge rate while unthrottled with a backlog, in the last
    hour."""
    limit: LimitRef | None
    damage: str | None
    """Where the disk lost data of the subscription or its topic; null without damage. With damage
    the sentence is about it."""
    sentence: str
    evidence: str = MEASURED
    """``inferred`` where the agent looked at a cluster that keeps no account."""
    looks: int | None = None
    """Of inferred evidence: how many looks at the subscription it is made of."""
    looked_for_s: float | None = None
    """The time from the first of them to the last."""
    not_seen: list[str] | None = None
    """What the looks leave open, in words."""
    timeline: Timeline | None = None
    """The last hour minute by minute, up to half a minute old; null unless ``timeline`` is set."""
    before_growth: BeforeGrowth | None = None
    """What changed before the backlog grew; null without a backlog, and of one that began before
    all changes are known."""


class SubscriptionAccount(SubscriptionReport, frozen=True, kw_only=True, rename="camel"):
    """A subscription report with the account in full."""

    minute: AccountWindow
    hour: AccountWindow
    limits: list[LimitState]
    """Dispatch limits of this subscription itself, one for each partition."""
    spared: bool
    """Whether no limit applies now because the subscription is caught up
    (``dispatchThrottlingOnNonBacklogConsumerEnabled=false``)."""
    held_back: list[ThrottledAmount]
    """The limiters that throttled anything since the topic was loaded."""


class Publishing(Struct, frozen=True, kw_only=True, rename="camel"):
    """The publishing side of a topic; rates are means over the last 5 to 10 seconds."""

    producers: int
    messages_per_s: float
    bytes_per_s: float
    pending_entries: int
    """Received and not yet durable."""
    parked: list[ParkedState]
    """The causes that made anything wait since the topic was loaded."""
    longest_waiting: list[WaitingProducer]
    """The producers with most waiting messages, at most five."""
    limits: list[LimitState]
    """Publish limits of the topic (one for each partition) and of the broker."""
    waiting_for_access: int
    """Producers that wait for exclusive access; nothing of theirs waits in the broker."""
    delays_ignored: int
    """Messages that asked to be delivered later and were delivered at once, since the topic was
    loaded: delayed delivery was off."""
    delays_refused: int
    """Messages that asked for a longer delay than is allowed, since then."""
    duplicates_dropped: int
    """Messages that deduplication did not store, because they had been stored before, since the
    topic was loaded."""
    sentence: str
    """What publishing waits for now, or waited for in the last hour."""
    last_publish: str | None


class TopicReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """``explain TOPIC``."""

    topic: str
    at: str
    partitions: int
    """0: not partitioned."""
    sentence: str
    """About damage if there is any, otherwise about the subscription with the largest backlog."""
    damage: str | None
    """Where the disk lost data of the topic; null without damage."""
    storage_bytes: int
    storage: StorageState
    publishing: Publishing
    quotas: list[QuotaState]
    """The effective backlog quotas."""
    adaptive: AdaptiveState | None
    """Null if adaptive publish throttling is not enabled or has not seen the topic yet."""
    limits: list[LimitState]
    """Dispatch limits of the topic (one for each partition) and of the broker."""
    subscriptions: list[SubscriptionAccount]
    """Largest backlog first."""
    per_partition: list[TopicReport] | None
    """A report on each partition; null unless ``perPartition`` is set."""
    changes: Changes | None = None
    """What changed in the last hour, from an agent what two looks show; null unless ``timeline`` is
    set."""


class LimitsReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """The limits in force on a broker."""

    at: str
    broker: str
    limits_total: int
    """A partition has those of its topic for itself, so each counts."""
    limits: list[LimitState]
    """Those at which something waits now first, then those that held for the longest time; at most
    ``count``."""


class MemoryHolding(Struct, frozen=True, kw_only=True, rename="camel"):
    """What clients make the broker hold, by kind (``headgate_client_memory_bytes``)."""

    kind: str
    bytes: int


class LaneState(Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread for blocking work."""

    name: str
    silent_s: float
    """For how long it has had work without an answer; 0 if it has none."""


class BrokerReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """The broker itself: what its clients hold of its memory, and whether anything is slow."""

    at: str
    broker: str
    started: str
    sentence: str
    """What is wrong with the broker; empty if nothing is."""
    storage: StorageState
    connections: int
    memory_max_bytes: int
    """``headgateClientMemoryMB``."""
    memory: list[MemoryHolding]
    """Those that hold most first."""
    slowed: int
    """Connections that are not read at present, because their clients hold too much memory."""
    closed: int
    """Connections that were closed for that, since the start."""
    lanes: list[LaneState]
    longest_turn_s: float
    """The longest time for which the event loop did one thing, in the last minute."""
    longest_turn: str
    """What that was; empty if none was noted."""


class AdaptiveReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """The adaptive controller of a broker."""

    at: str
    broker: str
    enabled: bool
    """``adaptivePublisherThrottlingEnabled``; without it the rest is null or empty."""
    law: str | None
    observe_only: bool | None
    active: int
    """Topics that it slows now; none in observe-only mode."""
    activations: int
    """Limits that it began since the start."""
    memory_pressure: float | None
    """Pressure from the broker's memory, 0..1."""
    memory_used_bytes: int | None
    memory_limit_bytes: int | None
    last_evaluation: str | None
    """When it last evaluated all topics without a failure."""
    failures: int
    """Evaluations that failed since the start."""
    decisions: list[DecisionState]
    """The latest, the latest first; at most ``count``."""


class DamageState(Struct, frozen=True, kw_only=True, rename="camel"):
    """A topic or subscription that is stopped because the disk lost data of it."""

    topic: str
    """Full name of the topic or partition."""
    subscription: str | None
    """Null if the whole topic is damaged."""
    damage: str
    """Where the damage is, and what is lost."""


class TopReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """``explain`` without a topic: the largest backlogs."""

    at: str
    broker: str
    subscriptions_total: int
    """The partitions of a topic count as one subscription."""
    with_backlog: int
    """Subscriptions with an unacknowledged message, delivered or not."""
    storage: StorageState
    subscriptions: list[SubscriptionReport]
    """Largest backlog first, summed over partitions."""
    quotas: list[TopicQuotaReport]
    """Backlog quotas that are exceeded, then those that will be within a day, the nearest first; at
    most ``count``."""
    publishing: list[TopicPublishingReport]
    """Topics whose producers wait now, those with most waiting messages first; at most
    ``count``."""
    damaged: list[DamageState]
    """Topics and subscriptions that are stopped by damage; at most ``count``."""


class SpaceReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """How one log uses the disk; the bytes add up to ``file_bytes``."""

    log: str
    """``main``, or ``telemetry`` for the log of the telemetry topic."""
    file_bytes: int
    live_bytes: int
    """Records of retained messages."""
    pinned_bytes: int
    """Records that nothing needs, in segments that also hold retained messages."""
    dead_bytes: int
    """Segments without retained messages: deleted behind the next checkpoint."""
    index_bytes: int
    """Footers of segments."""
    open_bytes: int
    """Room of the segments that are being written or prepared, without retained messages."""
    checkpoint_bytes: int
    segments: int
    segments_dead: int
    message_bytes_written: int
    """Records of messages written since the broker's start."""
    write_amplification: float | None
    """All bytes that the log wrote since then (records, footers, checkpoints) for each byte of
    messages; null before the first message."""


class StorageHolder(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one topic keeps on the disk, and what keeps its messages."""

    topic: str
    """Full name of the topic or partition."""
    held_bytes: int
    """Records of its retained messages."""
    pinned_bytes: int
    """Its share of the records that nothing needs: those of a segment are shared equally by the
    topics with messages in it."""
    frees_bytes: int
    """What deleting the topic frees at once: its messages in sealed segments, and all of a segment
    that only it keeps."""
    segments: int
    """Sealed segments with messages of it."""
    cause: str
    """What keeps most of its messages: ``subscription``, ``retention``, ``ledger`` (a ledger goes
    as a whole), ``damage``, or ``unknown`` (its index cannot be read: the two amounts below are 0).
    """
    subscription: str | None
    """The slowest durable subscription, if the cause is a subscription."""
    backlog_messages: int
    """Of the slowest durable subscription."""
    waiting_bytes: int
    """Records from the first message that it has not acknowledged."""
    acknowledged_bytes: int
    """Records before that."""
    last_publish: str | None
    """Null if nothing was published since the start."""
    last_acked: str | None
    """The last acknowledgement of the slowest durable subscription; null if there was none since
    the start."""
    sentence: str


class GrowingTopic(Struct, frozen=True, kw_only=True, rename="camel"):
    """A topic whose retained messages grow, and what keeps them."""

    topic: str
    """Full name of the topic or partition."""
    growth_bytes_per_s: float
    """Mean over the last ten minutes, or since the topic began to grow."""
    held_bytes: int
    """Records of its retained messages."""
    cause: str
    """What keeps most of its messages, as in ``StorageHolder``."""
    subscription: str | None
    sentence: str
    """What keeps them: what must change for the topic to stop growing."""


class FillingReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """When the disk is full, and what fills it."""

    filling: str
    """``filling`` (the disk is full at a known time), ``steady`` (as much is freed as is written),
    ``not_filling`` (it does not grow, or is not full within a week), ``full`` (messages wait now)
    or ``unknown`` (the growth was not measured for two minutes, or for twelve
    while it is not steady)."""
    full_in_s: float | None
    """Seconds until published messages wait for room; 0 while they do; null without a forecast."""
    full_at: str | None
    known_in_s: float | None
    """While unknown: the time after which it is known; null before the first measurement."""
    span_s: float | None
    """The time over which the growths are the mean: ten minutes, or an hour if growth shows only
    there; less after a start. Null while unknown."""
    growth_bytes_per_s: float | None
    retained_bytes_per_s: float | None
    """Growth of retained messages. This, the next and the last add up to the growth."""
    unneeded_bytes_per_s: float | None
    """Growth of records that no topic needs; while a backup runs it holds them."""
    other_bytes_per_s: float | None
    """Growth of all files outside the logs."""
    held_for_backup: bool
    """Whether a running backup keeps the broker from freeing files."""
    topics: list[GrowingTopic]
    """Those that grow most, at most ``count``. Empty for a minute after the start."""
    sentence: str


class TenantStored(Struct, frozen=True, kw_only=True, rename="camel"):
    """What all topics of a tenant store."""

    tenant: str
    bytes: int
    """Retained messages, with the head of each entry."""
    bytes_max: int | None
    """``headgateMaxStoragePerTenantMB``; null without a limit."""
    is_full: bool
    """Whether its producers are refused, because it stores all that it may."""


class StorageReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """``explain --storage``: what takes the disk."""

    at: str
    broker: str
    started: str
    """The start of the broker: earlier publishing and acknowledging is not known."""
    logs: list[SpaceReport]
    forecast: FillingReport
    tenants: list[TenantStored]
    """Those that store most, the most first; at most ``count``."""
    topics_total: int
    """Topics with retained messages."""
    topics: list[StorageHolder]
    """Those that pin most bytes beyond their messages first, then those that hold most; at most
    ``count``."""
