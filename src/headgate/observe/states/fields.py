"""The JSON fields of limits, quotas, waiting messages, the controller and the disk.

The field names follow the rules of :mod:`headgate.observe.explain.reports`.
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
