"""The present figures of a subscription, as a point of its history."""

from __future__ import annotations

from headgate.base.units import NS_PER_MS
from headgate.engine.subscription import Subscription
from headgate.explain.points import Point, limits_hash


def point_now(subscription: Subscription, *, keep: bool = False) -> Point:
    """The subscription at this instant.

    ``keep`` says that the history keeps the point: then the account is booked up to now.
    """
    topic, account = subscription.topic, subscription.account
    log, now_ns = topic.log, topic.now_ns
    if keep and subscription.throttled:
        subscription.dispatcher.count_late(now_ns)
    age_ns = 0
    if subscription.done_entries < log.end:
        age_ns = (subscription.deliverable_age_ms() or 0) * NS_PER_MS
    # By place, in the order of the fields: names cost half a microsecond.
    return Point(
        account.cell,
        account.snapshot(now_ns) if keep else account.peek(now_ns),
        now_ns,
        log.messages_before(log.end),
        subscription.done_messages,
        subscription.messages_sent,
        subscription.bytes_sent,
        subscription.acked_messages,
        subscription.skipped_messages,
        subscription.rewound_messages,
        subscription.expired_messages,
        subscription.evicted_messages,
        subscription.redelivered_messages,
        subscription.dispatcher.in_flight_messages(),
        subscription.delayed_messages,
        age_ns,
        age_ns,
        # Limits as they are set: one that follows the publish rate stays the same limit.
        limits_hash(subscription.limits_set()) if subscription.gate.limited else 0,
    )
