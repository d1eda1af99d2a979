"""Eviction: how far a backlog quota moves a subscription forward, to the entry (law 4.3)."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from headgate.base.ack_set import AckSet
from headgate.engine.ports import EntryLog
from headgate.flow.quota.backlog_quota import Quota


class SubscriptionLoss(NamedTuple):
    """What an eviction took from one subscription."""

    subscription: str
    messages: int
    bytes: int


class Eviction(NamedTuple):
    """One eviction on a topic."""

    quota: Quota
    backlog_bytes_before: int
    age_ms_before: int
    """Age of the oldest unacknowledged message; -1 if there is none."""
    losses: list[SubscriptionLoss]
    """The largest loss first."""
    backlog_bytes: int
    age_ms: int

    @property
    def messages(self) -> int:
        """Messages that all subscriptions lost together."""
        return sum(loss.messages for loss in self.losses)

    @property
    def bytes(self) -> int:
        """Bytes that all subscriptions lost together."""
        return sum(loss.bytes for loss in self.losses)


def first_kept(log: EntryLog, acks: AckSet, excess_bytes: int) -> int:
    """The first entry that a subscription keeps when it loses at least ``excess_bytes`` of its
    oldest unacknowledged entries, and not one entry more; the topic's end if it loses all."""
    at = max(acks.mark_delete + 1, log.first)
    for first, last in acks.acked_runs(log.end):
        if first > at:
            unacked_bytes = log.bytes_before(first) - log.bytes_before(at)
            if unacked_bytes >= excess_bytes:
                return _after(log, at, first, excess_bytes)
            excess_bytes -= unacked_bytes
        at = max(at, last + 1)
    return _after(log, at, log.end, excess_bytes)


def _after(log: EntryLog, first: int, stop: int, size_bytes: int) -> int:
    """The least ordinal up to ``stop`` such that the entries from ``first`` to before it have
    ``size_bytes``; ``stop`` if all of them have less."""
    before = log.bytes_before
    ordinals = range(first, stop)
    return first + bisect_left(ordinals, before(first) + size_bytes, key=before)
