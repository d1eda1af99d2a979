"""The JSON fields of limits, quotas, waiting messages, the controller and the disk.

The field names follow the rules of :mod:`headgate.explain.reports`.
"""

from __future__ import annotations

from msgspec import Struct


class LimitRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """The limit that a verdict or a cause of waiting names."""

    level: str
    """``subscription``, ``topic`` or ``broker``; of publish limits ``publish_topic`` or
    ``publish_broker``."""
    dimension: str
    """``messages`` or ``bytes``. Empty for a publish limit in both dimensions at which no producer
    waits now."""
    text: str
    """The limit in words: ``50 msg/s``."""
    source: str
    """Where the limit is set: ``namespace policy acme/orders``, ``broker setting ...``."""


class BudgetState(Struct, frozen=True, kw_only=True, rename="camel"):
    """One dimension of a current limit."""

    dimension: str
    limit: int
    """Messages or bytes in any window of one period. With
    ``dispatchThrottlingOnBatchMessageEnabled`` a batch is one message."""
    period_s: float
    in_window: int
    """Delivered or published in the window that ends now. Amounts under an earlier, higher limit
    count in proportion."""
    debt: int
    """Excess over the limit, because an entry is never split; the next wait is longer by it."""
    granted: int
    """Everything that ever passed the limit."""
    above_publish_rate: int | None
    """The configured amount of a limit relative to the publish rate; null for other limits."""
    publish_rate_times: int | None
    """How often a relative limit contains the publish rate: once for each subscription that needs
    all of it; 0 for the sum over the broker's topics."""
    text: str
    source: str


class WaitingSubscription(Struct, frozen=True, kw_only=True, rename="camel"):
    """A subscription that waits for a limit now."""

    topic: str
    subscription: str
    waiting_s: float


class LimitState(Struct, frozen=True, kw_only=True, rename="camel"):
    """A current limit with its waiters."""

    level: str
    """As in :class:`LimitRef`."""
    subject: str
    """What the limit applies to: a topic, ``topic / subscription``, or empty for the broker."""
    source: str
    unlimited: bool
    """Whether ``source`` says "unlimited"; then there are no budgets."""
    relative: bool
    """Whether the limit is relative to the publish rate; the budgets have its present amounts."""
    budgets: list[BudgetState]
    waiters: int
    waiters_max: int
    waiting_s: float
    """Time in which anything waited for the limit, since the subject was loaded."""
    longest_waiting: list[WaitingSubscription]
    """At most five; none for publish limits, whose producers are in ``longestWaiting`` of
    ``publishing``."""


class ThrottledAmount(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one limiter throttled of a subscription since its topic was loaded (PIP-406)."""

    level: str
    dimension: str
    events: int
    """Periods in which it delayed delivery."""
    amount: int
    """Messages or bytes throttled, counted once for each delivery attempt."""


class QuotaState(Struct, frozen=True, kw_only=True, rename="camel"):
    """An effective backlog quota and how full it is; for a partitioned topic on its fullest
    partition."""

    topic: str
    """Full name of the topic, or of the fullest partition."""
    type: str
    """``size`` or ``time``."""
    policy: str
    """The action at the limit, by Pulsar's name."""
    source: str
    limit: float
    """Bytes, or seconds."""
    used: float
    """Bytes of the largest backlog, including entries that are not durable yet; or the age of the
    oldest message in seconds."""
    use: float | None
    """``used / limit``; null for a limit of 0."""
    subscription: str | None
    """The subscription with the largest backlog, or with the oldest message."""
    exceeded: bool
    """Whether the quota stops producers now."""
    seconds_to_breach: float | None
    """At the smoothed present rate of growth; null while the backlog does not approach the limit,
    or adaptive throttling or a publish limit holds a size at its level."""
    seconds_to_breach_earliest: float | None = None
    """At the fastest of the paces of now, of the last minutes and of the last hour, and a margin
    for how much they change; null as ``secondsToBreach``, in the first minute, and while the limit
    is reached."""
    seconds_to_breach_latest: float | None = None
    """The same at the slowest; null also if the limit may never be reached, or not within a day."""
    stopped_s: float
    """Time in which the quota held or refused producers since the topic was loaded, summed over
    partitions. The following fields are sums as well."""
    producers_closed: int
    """Producers that quotas of either type disconnected."""
    producers_refused: int
    """Attempts that quotas of either type refused; a disconnected client tries repeatedly."""
    evictions: int
    """Evictions since the topic was loaded."""
    evicted_messages: int
    evicted_bytes: int
    sentence: str


class ParkedState(Struct, frozen=True, kw_only=True, rename="camel"):
    """The parked SENDs of one cause."""

    cause: str
    """``topic_rate`` (the topic's publish limit), ``broker_rate``, ``adaptive`` (a limit of the
    adaptive controller), ``backlog_quota``, ``pending_limit`` (the connection has as many
    unanswered messages as it may), ``memory`` (the broker does not read the connection, because too
    many messages of others wait; then no messages are counted) or ``disk_full``."""
    producers: int
    """Producers that wait now."""
    unread: int
    """Of these the producers whose connection the broker does not read, because too many of their
    messages wait."""
    messages: int
    bytes: int
    seconds: float
    """Time in which anything waited since the topic was loaded, summed over partitions."""
    minute_s: float
    """Time in which anything waited in the last minute, on the partition where that was longest."""
    hour_s: float
    """The same for the last hour."""
    waiting_s: float | None
    """Time for which something has waited without a break; null if nothing waits."""
    last_goes_s: float | None
    """Time until the last waiting message passes the limit, if no other topic takes part of it;
    null if the cause is not a limit."""
    limit: LimitRef | None
    """The publish limit that the messages wait for, at its present value; null if the cause is
    not a limit."""


class DecisionState(Struct, frozen=True, kw_only=True, rename="camel"):
    """One decision of the adaptive controller."""

    at: str
    topic: str
    """Full name of the topic or partition."""
    kind: str
    """``activated``, ``changed`` or ``deactivated``."""
    observe_only: bool
    """Whether the decision was only recorded, not enforced."""
    law: str
    rule: str
    """The rule that determined the limit; ``clear`` or ``let_go`` for the end of one."""
    memory_rule: str | None
    """Why memory pressure reached this topic: ``share`` (the topic uses the memory), ``everybody``
    (no topic stands out); ``no_effect`` if slowing all topics did not help; null without
    pressure."""
    memory_pressure: float
    """Pressure from memory on the topic then, 0..1; 0 if it takes no part in it."""
    backlog_pressure: float
    """Position of the fuller quota between the watermarks then, 0..1."""
    before: str | None
    """``750 msg/s and 768,000 B/s``; null without a limit."""
    after: str | None
    sentence: str


class AdaptiveState(Struct, frozen=True, kw_only=True, rename="camel"):
    """Adaptive publish throttling of a topic."""

    law: str
    """The configured law: ``pressure`` or ``drain``."""
    observe_only: bool
    active: int
    """Partitions that are slowed now; 0 or 1 for a topic without partitions."""
    natural_messages_per_s: float
    """The learned rate at which the topic publishes while no SEND is parked; 0 while unknown."""
    effective_messages_per_s: float
    """The part of the natural rate that is allowed now, in observe-only mode the part that would
    be; all of it without a limit."""
    memory_pressure: float
    """Pressure from memory on this topic, 0..1."""
    backlog_pressure: float
    """Position of the fuller quota between the watermarks, 0..1."""
    decisions: list[DecisionState]
    """The last eight at most, oldest first."""
    sentence: str
    """The last decision in words."""


class StorageState(Struct, frozen=True, kw_only=True, rename="camel"):
    """The disk and the connections, which all topics share."""

    sentence: str
    """What delays producers or connections now, or that the disk is full within four hours; empty
    otherwise."""
    disk_full: bool
    """Whether published messages wait for room on the disk now (cause ``disk_full``)."""
    disk_full_s: float
    """Time in which they waited, since the start."""
    free_bytes: int | None
    """Free space of the file system under the data directory; null if unknown."""
    size_bytes: int | None
    disk_full_in_s: float | None
    """Seconds until published messages wait for room, at the present growth; 0 while they do; null
    if the disk does not fill up within a week, or while it is not known."""
    disk_slow: bool
    """Whether commits take so long that ``sentence`` says so."""
    commit_mean_s: float | None
    """Mean over the commits of the last ten seconds; null without commits."""
    commit_longest_s: float | None
    commit_running_s: float
    """Age of the running commit; 0 without one."""
    connections_refused: int
    """Connections refused since the start for lack of file descriptors."""
