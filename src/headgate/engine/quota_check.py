"""Checks the state of a topic's backlog quotas against a count of everything."""

from __future__ import annotations

from headgate.engine.publishing import ADMIT_ALL
from headgate.engine.topic_quota import TopicQuota
from headgate.flow.quota.backlog_quota import (
    NO_QUOTAS,
    age_ms,
    age_released,
    size_exceeded,
    size_released,
)

LATE_MS_MAX = 1_000
"""A time quota that is enforced later than this was missed."""


def is_consistent(quota: TopicQuota) -> bool:
    """Whether a count of everything comes to the same state, so that no event was missed.

    Between an event and the evaluation that it requests, the two may differ.
    """
    topic = quota.topic
    end = mark_delete = topic.log.end
    done_bytes = ADMIT_ALL
    for subscription in topic.subscriptions.values():
        if subscription.cursor_id is not None:
            if subscription.done_bytes < done_bytes:
                done_bytes = subscription.done_bytes
            if subscription.acks.mark_delete < mark_delete:
                mark_delete = subscription.acks.mark_delete
    oldest_ms = None
    if mark_delete + 1 < end:
        totals, is_exact = topic.log.totals_near(mark_delete + 2)
        if not is_exact:
            return True  # its index is on the disk; the next round may know better
        oldest_ms = totals.received_ms
    if quota.exceeded_by_type is not NO_QUOTAS or quota.has_heaps or quota.awaits_acks:
        done_bytes = min(done_bytes, topic.publishing.staged_bytes)
        return _all_is_consistent(quota, done_bytes, oldest_ms)
    # The usual case: no quota is exceeded.
    size, time = quota.quotas
    if size is not None and quota.safe_below > size.limit + done_bytes:
        return False
    if size is not None and topic.publishing.staged_bytes - done_bytes >= size.limit:
        # Staged entries are evaluated when they are durable.
        return topic.log.bytes_before(end) - done_bytes < max(size.limit, 1)
    if time is None or oldest_ms is None or _awaits_index(quota):
        return True
    return topic.engine.log_ms - oldest_ms < time.limit + LATE_MS_MAX


def _all_is_consistent(quota: TopicQuota, done_bytes: int, oldest_ms: int | None) -> bool:
    """:func:`is_consistent` for a topic that exceeds a quota or has many subscriptions."""
    topic = quota.topic
    backlog_bytes = topic.publishing.staged_bytes - done_bytes
    if quota.has_heaps and backlog_bytes != quota.backlog_bytes():
        return False
    if quota.awaits_acks != (quota.exceeded is not None or bool(quota.queue)):
        return False
    if quota.exceeded_by_type.any != (quota.exceeded is not None):
        return False
    unacked_bytes = topic.log.bytes_before(topic.log.end) - done_bytes
    is_size_consistent = _size_is_consistent(quota, backlog_bytes, unacked_bytes)
    return is_size_consistent and _time_is_consistent(quota, oldest_ms)


def _size_is_consistent(quota: TopicQuota, backlog_bytes: int, unacked_bytes: int) -> bool:
    """Whether the size quota's state is right, with and without staged entries."""
    size, known = quota.quotas.size, quota.exceeded_by_type.size
    if size is None:
        return known is None
    if known is None:
        # Staged entries are evaluated when they are durable.
        bound = quota.safe_below - quota.topic.publishing.staged_bytes + backlog_bytes
        is_bounded = bound <= size.limit or quota.slowest() is None
        return is_bounded and unacked_bytes < max(size.limit, 1)
    if known.policy.stops_producers:
        return not size_released(backlog_bytes, size.limit, quota.next_bytes())
    return size_exceeded(backlog_bytes, size.limit)


def _time_is_consistent(quota: TopicQuota, oldest_ms: int | None) -> bool:
    time, known = quota.quotas.time, quota.exceeded_by_type.time
    if time is None:
        return known is None
    age = age_ms(quota.topic.engine.log_ms, oldest_ms)
    if known is None:
        return age < time.limit + LATE_MS_MAX or _awaits_index(quota)
    return not age_released(age, time.limit)


def _awaits_index(quota: TopicQuota) -> bool:
    """Whether an eviction has begun in time, and waits for a disk that is slow or fails."""
    return quota.eviction is not None and quota.eviction.awaits_index
