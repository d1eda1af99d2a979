"""The last look at a topic in the form of Pulsar's ``stats``: its subscriptions and consumers.

Fields that looks do not tell are absent. Of a partitioned topic the partitions are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.agent.inferred_subscription import InferredSubscription
from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.looks import ConsumerLook


def stats_report(topics: Sequence[InferredTopic]) -> dict[str, Any]:
    """The statistics of a topic, given as its partitions, or as itself."""
    parts: dict[str, list[InferredSubscription]] = {}
    for topic in topics:
        for each in topic.subscriptions.values():
            parts.setdefault(each.name, []).append(each)
    return {"subscriptions": {name: _subscription(found) for name, found in parts.items()}}


def _subscription(parts: Sequence[InferredSubscription]) -> dict[str, Any]:
    looks = [part.look for part in parts if part.look is not None]
    return {
        "type": next((look.type for look in looks if look.type), ""),
        "msgBacklog": sum(look.backlog or 0 for look in looks),
        "consumers": [_consumer(consumer) for look in looks for consumer in look.consumers],
    }


def _consumer(consumer: ConsumerLook) -> dict[str, Any]:
    return {
        "consumerName": consumer.name,
        "address": consumer.address or None,
        "connectedSince": consumer.connected_since or None,
        "availablePermits": consumer.permits,
        "unackedMessages": consumer.unacked,
        "blockedConsumerOnUnackedMsgs": consumer.is_blocked,
        "msgOutCounter": consumer.sent,
    }
