"""Moving subscriptions forward because of a backlog quota: over real entry sizes, exactly as far
as the quota asks (law 4.3)."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from headgate.flow.quota.backlog_quota import Quota

if TYPE_CHECKING:
    from headgate.engine.subscription import Subscription


class SubscriptionLoss(NamedTuple):
    """What one subscription lost."""

    subscription: str
    messages: int
    bytes: int


class Eviction(NamedTuple):
    """One act of eviction on a topic."""

    quota: Quota
    backlog_bytes_before: int
    age_ms_before: int
    """Of the oldest unacknowledged message; -1 without one."""
    losses: list[SubscriptionLoss]
    """The largest loss first."""
    backlog_bytes: int
    age_ms: int

    @property
    def messages(self) -> int:
        """Lost by all subscriptions together."""
        return sum(loss.messages for loss in self.losses)

    @property
    def bytes(self) -> int:
        """Lost by all subscriptions together."""
        return sum(loss.bytes for loss in self.losses)


def first_kept(subscription: Subscription, excess_bytes: int) -> int:
    """The first entry that a subscription keeps when at least ``excess_bytes`` of its oldest
    unacknowledged entries go, and not one entry more; the topic's end if all of them must."""
    log, acks = subscription.topic.log, subscription.acks
    at = max(acks.mark_delete + 1, log.first)
    for first, last in acks.acked_runs(log.end):
        if first > at:
            owed_bytes = log.bytes_before(first) - log.bytes_before(at)
            if owed_bytes >= excess_bytes:
                return _after(subscription, at, first, excess_bytes)
            excess_bytes -= owed_bytes
        at = max(at, last + 1)
    return _after(subscription, at, log.end, excess_bytes)


def _after(subscription: Subscription, first: int, stop: int, size_bytes: int) -> int:
    """The least ordinal up to ``stop`` such that the entries from ``first`` to before it weigh
    ``size_bytes``; ``stop`` if all of them do not."""
    before = subscription.topic.log.bytes_before
    places = range(first, stop)
    return first + bisect_left(places, before(first) + size_bytes, key=before)
