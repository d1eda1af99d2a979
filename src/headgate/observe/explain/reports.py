"""What explain says: the only place where its JSON field names are defined.

Names are spelled in camel case in JSON (``backlog_messages`` is ``backlogMessages``). Fields are
added, never renamed. Seconds and rates are floats, shares lie in 0..1 and sum to 1, messages and
bytes are integers, instants are ISO 8601 in UTC. ``null`` means: not known, or none.
"""

from __future__ import annotations

from msgspec import Struct


class LimitRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """The one limit that a verdict, or a cause of waiting, names."""

    level: str
    """``subscription``, ``topic`` or ``broker``; of publish limits ``publish_topic`` or
    ``publish_broker``."""
    dimension: str
    """``messages`` or ``bytes``; of a publish limit at which nobody waits now, empty where both are
    limited."""
    text: str
    """For people: ``50 msg/s``."""
    source: str
    """Where it is set: ``namespace policy acme/orders``, ``broker setting ...``."""


class BudgetState(Struct, frozen=True, kw_only=True, rename="camel"):
    """One dimension of a limit in force, at this instant."""

    dimension: str
    limit: int
    """Messages or bytes in any window of one period. With
    ``dispatchThrottlingOnBatchMessageEnabled`` a batch is one message."""
    period_s: float
    in_window: int
    """Delivered, or published, in the window that ends now; what went under a higher limit counts
    in proportion."""
    debt: int
    """What went beyond the limit because an entry is never split; paid by waiting longer."""
    granted: int
    """All that ever went under it."""
    above_publish_rate: int | None
    """What is configured, where ``limit`` moves with the publish rate; null where it does not."""
    publish_rate_times: int | None
    """How often the publish rate is in such a limit: once for each subscription that needs all of
    it; 0 for the sum over the broker's topics."""
    text: str
    source: str


class HeldSubscription(Struct, frozen=True, kw_only=True, rename="camel"):
    """Somebody who waits for a limit now."""

    topic: str
    subscription: str
    waiting_s: float


class LimitState(Struct, frozen=True, kw_only=True, rename="camel"):
    """A limit in force with its waiters."""

    level: str
    """As in :class:`LimitRef`."""
    subject: str
    """What it is a limit on: a topic, ``topic / subscription``, or empty for the broker."""
    source: str
    unlimited: bool
    """Whether "unlimited" is set there; then there are no budgets."""
    relative: bool
    """Whether it moves with the publish rate; the budgets say what it amounts to now."""
    budgets: list[BudgetState]
    waiters: int
    waiters_max: int
    waiting_s: float
    """How long somebody has waited for it, since the subject was loaded."""
    longest_waiting: list[HeldSubscription]
    """At most five; of publish limits none, see :class:`HeldProducer`."""


class HeldBackState(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one limiter did to a subscription since its topic was loaded (PIP-406)."""

    level: str
    dimension: str
    events: int
    """Periods in which it delayed delivery."""
    amount: int
    """Messages or bytes that it held back, once for each delivery attempt."""


class QuotaState(Struct, frozen=True, kw_only=True, rename="camel"):
    """A backlog quota in force and how full it is: of several partitions of the fullest."""

    topic: str
    """Full name; of a partitioned topic that of the fullest partition."""
    type: str
    """``size`` or ``time``."""
    policy: str
    """What happens at the limit, by Pulsar's name."""
    source: str
    limit: float
    """Bytes, or seconds."""
    used: float
    """Bytes of the largest backlog with what is not durable yet, or the oldest message's age in
    seconds."""
    use: float | None
    """``used / limit``; null for a limit of 0."""
    subscription: str | None
    """Whose backlog it is: the slowest, or the one that owes the oldest message."""
    exceeded: bool
    """Whether producers are stopped by it now."""
    seconds_to_breach: float | None
    """At the smoothed present speed; null while the backlog does not approach the limit."""
    stopped_s: float
    """Time in which it held or refused producers since the topic was loaded; of all partitions, as
    what follows."""
    producers_closed: int
    """By quotas of either type."""
    producers_refused: int
    """Attempts, by quotas of either type; clients that were disconnected try again and again."""
    evictions: int
    """Acts, since the topic was loaded."""
    evicted_messages: int
    evicted_bytes: int
    sentence: str


class TopicQuotaReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """A backlog quota that is exceeded or breaks soon, and whose it is."""

    topic: str
    """Of a partitioned topic the partition: each has the quota by itself."""
    quota: QuotaState


class ParkedState(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was sent and waits in the broker, by cause."""

    cause: str
    """``topic_rate`` (its publish limit), ``broker_rate``, ``adaptive`` (a limit of the adaptive
    controller), ``backlog_quota``, ``pending_limit`` (its connection has as many unanswered
    messages as it may), ``memory`` (its connection is not read, because too much waits that is not
    its own: there are no messages then) or ``disk_full``."""
    producers: int
    """That wait now."""
    unread: int
    """Of them those whose connection is not read, because they park too much."""
    messages: int
    bytes: int
    seconds: float
    """Time in which anything waited, since the topic was loaded; of several partitions the sum."""
    minute_s: float
    """Of the last minute; of several partitions that of the one that waited longest. So is the next
    of the last hour."""
    hour_s: float
    waiting_s: float | None
    """For how long something has waited without a break; null: nothing does."""
    last_goes_s: float | None
    """In what time the last of what waits goes under that limit, if the others leave it all of it;
    null where it is none."""
    limit: LimitRef | None
    """The publish limit that holds, as it is now; null where it is none."""


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


class DecisionState(Struct, frozen=True, kw_only=True, rename="camel"):
    """One decision of the adaptive controller."""

    at: str
    topic: str
    """Full name; of a partitioned topic the partition's."""
    kind: str
    """``activated``, ``changed`` or ``deactivated``."""
    observe_only: bool
    """Whether nothing was enforced."""
    law: str
    rule: str
    """What bound the limit; ``clear`` or ``let_go`` where it ended."""
    memory_rule: str | None
    """By which rule memory asks for it: ``share`` (the topic takes it), ``everybody`` (no topic is
    seen to take it); ``no_effect`` where slowing everybody did not help; null where it never
    asked."""
    before: str | None
    """``750 msg/s and 768,000 B/s``; null without a limit."""
    after: str | None
    sentence: str


class AdaptiveState(Struct, frozen=True, kw_only=True, rename="camel"):
    """What adaptive publish throttling does to a topic."""

    law: str
    """``pressure`` or ``drain``, as it is set."""
    observe_only: bool
    active: int
    """How many of its partitions are slowed now; 0 or 1 of one without."""
    natural_messages_per_s: float
    """What it publishes when nothing holds it, as learned; 0 while that is not known."""
    effective_messages_per_s: float
    """What of that is allowed now: all of it without a limit. In observe-only what would be."""
    memory_pressure: float
    """What memory asks of it, 0..1."""
    backlog_pressure: float
    """Where the fuller of its quotas stands between the watermarks, 0..1."""
    decisions: list[DecisionState]
    """The last eight at most, oldest first."""
    sentence: str
    """The last of them in words."""


class StorageState(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the disk does to everybody; the same for all topics of users."""

    sentence: str
    """What is to be said of it; empty while it holds nobody up."""
    disk_full: bool
    """Whether what producers send waits for room on it now (cause ``disk_full``)."""
    disk_full_s: float
    """Time in which it did, since the start."""
    free_bytes: int | None
    """Of the file system under the data directory; null where that is not known."""
    size_bytes: int | None
    disk_slow: bool
    """Whether commits take so long that it is worth a word."""
    commit_mean_s: float | None
    """Of the commits of the last ten seconds; null where there was none."""
    commit_longest_s: float | None
    commit_running_s: float
    """For how long the present one has run; 0 without one."""
    connections_refused: int
    """Since the start, because file descriptors were short."""


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
