"""What one look at a Pulsar cluster says.

A figure that the cluster does not tell, or tells as no number, is None: it is not known, and never
zero. Instants ``at_ns`` are monotonic, of the agent's clock, in the middle of the request; times
since the epoch (``_ms``) are the broker's.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.flow.limits.precedence import EffectiveLimit


@dataclass(frozen=True, slots=True)
class ConsumerLook:
    """One consumer of a subscription at one instant."""

    name: str
    address: str
    connected_since: str
    permits: int | None
    """May be negative: a batch is sent whole."""
    unacked: int | None
    is_blocked: bool
    """At its limit of unacknowledged messages."""
    sent: int | None
    """Messages since it connected."""
    entry_messages: float | None
    """Mean number of messages in an entry."""


@dataclass(frozen=True, slots=True)
class SubscriptionLook:
    """One subscription of a topic or partition at one instant."""

    name: str
    type: str
    """``Shared``, ...; empty before a consumer has connected."""
    is_durable: bool
    backlog: int | None
    """In entries, delayed ones included."""
    delayed: int | None
    """In entries."""
    in_replay: int | None
    unacked: int | None
    """Messages; 0 also where Pulsar does not count them: Exclusive and Failover."""
    is_blocked: bool
    """At its limit of unacknowledged messages."""
    backlog_bytes: int | None
    sent: int | None
    """Messages since the topic was loaded; cumulative."""
    sent_bytes: int | None
    expired: int | None
    events: tuple[int, ...] | None
    """Throttled events by level, then dimension; None before Pulsar 4.0.4."""
    draining_hashes: int | None
    last_consumed_ms: int | None
    last_acked_ms: int | None
    mark_delete_moved_ms: int | None
    oldest_age_s: float | None
    """From Pulsar 5.0 on (PIP-492)."""
    consumers: tuple[ConsumerLook, ...]
    active_consumer: str = ""
    """Name of the one that gets the messages, of Exclusive and Failover; empty if unknown."""


@dataclass(frozen=True, slots=True)
class TopicLook:
    """A topic that is not partitioned, or one partition, at one instant."""

    topic: str
    """Full name."""
    at_ns: int
    owner: str
    """The broker that answered; empty if unknown."""
    published: int | None
    """Messages since the topic was loaded; cumulative."""
    published_bytes: int | None
    storage_bytes: int | None
    backlog_bytes: int | None
    publisher_addresses: tuple[str, ...]
    publish_limited_count: int | None
    quota_size_bytes: int | None
    """The limit in force; None without one."""
    quota_age_s: int | None
    oldest_age_s: float | None
    """Age of the oldest message in a backlog, by the broker's last check of quotas."""
    oldest_subscription: str
    size_evictions: int | None
    age_evictions: int | None
    subscriptions: tuple[SubscriptionLook, ...]
    nameless: int = 0
    """Subscriptions that are left out, because their names are too long."""
    is_survey: bool = False
    """Whether it comes from ``broker-stats/topics``: then its figures may be a minute old."""


@dataclass(frozen=True, slots=True)
class CursorLook:
    """What ``internalStats`` says of one subscription, as proof."""

    subscription: str
    read_position: tuple[int, int] | None
    mark_delete_position: tuple[int, int] | None
    pending_reads: int | None
    is_waiting: bool | None
    """Whether the cursor waits for an entry to be published."""
    has_pending_read: bool | None
    """Whether the dispatcher says that a read is under way."""
    has_pending_replay: bool | None


@dataclass(frozen=True, slots=True)
class ProofLook:
    """``internalStats`` of a topic or partition at one instant."""

    topic: str
    at_ns: int
    last_position: tuple[int, int] | None
    """The last confirmed entry."""
    entries: int | None
    cursors: tuple[CursorLook, ...]


@dataclass(frozen=True, slots=True)
class QuotaLook:
    """The backlog quotas of a namespace's topics that have none of their own. None: there is none,
    or it is not known."""

    namespace: str
    at_ns: int
    size_bytes: int | None
    age_s: int | None


@dataclass(frozen=True, slots=True)
class LimitsLook:
    """The limits in force for one topic, with where they are set; by level for dispatch."""

    topic: str
    at_ns: int
    dispatch: tuple[EffectiveLimit, ...]
    """Of the topic's subscriptions in general, by ``Level``."""
    by_subscription: dict[str, EffectiveLimit]
    """Policies of single subscriptions."""
    publish: EffectiveLimit
    unknown: tuple[str, ...]
    """What could not be read, in words: ``the broker's settings (needs superuser)``."""
