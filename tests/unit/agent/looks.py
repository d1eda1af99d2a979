"""Looks at topics, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headgate.agent.looks import SubscriptionLook, TopicLook

S = 10**9
TOPIC = "persistent://acme/orders/paid"

SUBSCRIPTION = SubscriptionLook(
    name="billing", type="Shared", is_durable=True, backlog=0, delayed=0, in_replay=0, unacked=0,
    is_blocked=False, backlog_bytes=None, sent=0, sent_bytes=0, expired=0, events=None,
    draining_hashes=None, last_consumed_ms=None, last_acked_ms=None, mark_delete_moved_ms=None,
    oldest_age_s=None, consumers=(),
)  # fmt: skip

LOOK = TopicLook(
    topic=TOPIC, at_ns=0, owner="b1:8080", published=0, published_bytes=0, storage_bytes=0,
    backlog_bytes=0, publisher_addresses=(), publish_limited_count=None, quota_size_bytes=None,
    quota_age_s=None, oldest_age_s=None, oldest_subscription="", size_evictions=0, age_evictions=0,
    subscriptions=(),
)  # fmt: skip


def look(at_s: float, *subscriptions: SubscriptionLook, **fields: Any) -> TopicLook:
    """A look at the topic at a second."""
    return replace(LOOK, at_ns=round(at_s * S), subscriptions=subscriptions, **fields)


def backlog(name: str = "billing", **fields: Any) -> SubscriptionLook:
    """A subscription."""
    return replace(SUBSCRIPTION, name=name, **fields)
