"""What the agent knows of a cluster's storage, in the JSON of a broker's storage report.

A cluster tells how much a topic stores, and what its subscriptions have not read. Its disks, and
what retention keeps, it does not tell: those fields are null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headgate.agent.inferred_subscription import InferredSubscription
from headgate.agent.inferred_topic import InferredTopic
from headgate.base.instants import iso_time
from headgate.base.largest import Largest
from headgate.base.texts import number, size_text
from headgate.explain.delivery import Instant
from headgate.flow.account.verdict import INFERRED


def storage_report(
    cluster: str, topics: Iterable[InferredTopic], count: int, instant: Instant
) -> dict[str, Any]:
    """The topics and partitions that store most, ``count`` of them."""
    largest = Largest[InferredTopic](count)
    total = untold = 0
    for topic in topics:
        if topic.look is None or topic.is_gone(instant.now_ns):
            continue
        stored = topic.look.storage_bytes
        if stored is None:
            untold += 1
        elif stored > 0:
            total += 1
            largest.add(stored, topic)
    return {
        "at": iso_time(instant.now_ms),
        "broker": cluster,
        "started": None,
        "logs": None,
        "forecast": None,
        "tenants": None,
        "topicsTotal": total,
        "topics": [_holder(topic) for topic in largest.items()],
        "evidence": INFERRED,
        "notSeen": [
            "the disks of the cluster, and what retention keeps",
            *([f"what {untold:,} of the topics and partitions store"] if untold else []),
        ],
    }


def _holder(topic: InferredTopic) -> dict[str, Any]:
    look = topic.look
    stored = None if look is None else look.storage_bytes
    slowest = _slowest(topic)
    waiting = _waiting_bytes(topic, slowest)
    is_unread = waiting is not None and stored is not None and 2 * waiting > stored
    name = slowest.name if slowest is not None and is_unread else None
    backlog = None if slowest is None else round(slowest.sample.backlog)
    acked_ms = None if slowest is None or slowest.look is None else slowest.look.last_acked_ms
    return {
        "topic": topic.name,
        "heldBytes": stored,
        "pinnedBytes": None,
        "freesBytes": None,
        "segments": None,
        "cause": "subscription" if name else "unknown",
        "subscription": name,
        "backlogMessages": backlog,
        "waitingBytes": waiting,
        "acknowledgedBytes": None
        if waiting is None or stored is None
        else max(0, stored - waiting),
        "lastPublish": None,
        "lastAcked": iso_time(acked_ms) if acked_ms else None,
        "sentence": _sentence(name, backlog, waiting),
    }


def _slowest(topic: InferredTopic) -> InferredSubscription | None:
    """The durable subscription with the largest backlog."""
    durable = [
        each
        for each in topic.subscriptions.values()
        if each.look is not None and each.look.is_durable
    ]
    return max(durable, key=lambda each: each.sample.backlog, default=None)


def _waiting_bytes(topic: InferredTopic, slowest: InferredSubscription | None) -> int | None:
    if slowest is None:
        return None
    if not slowest.sample.backlog:
        return 0
    if slowest.look is not None and slowest.look.backlog_bytes is not None:
        return slowest.look.backlog_bytes
    # A topic's backlog is that of its slowest subscription.
    return None if topic.look is None else topic.look.backlog_bytes


def _sentence(subscription: str | None, backlog: int | None, waiting: int | None) -> str:
    if subscription is not None:
        size = "" if waiting is None else f" ({size_text(waiting)})"
        return (
            f"subscription {subscription} has not acknowledged {number(backlog or 0)} messages"
            f"{size}"
        )
    if backlog is None:
        return "no durable subscription was seen: what keeps its messages is not known"
    if waiting is None:
        return "how much of it waits for a subscription is not known"
    return (
        "most of it is acknowledged: retention keeps it, or a ledger that is not full yet; a "
        "cluster does not tell which"
    )
