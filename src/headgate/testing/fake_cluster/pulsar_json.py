"""The JSON of a fake cluster, with the names and shapes of Pulsar 4.0."""

from __future__ import annotations

from typing import Any

from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_MS
from headgate.testing.fake_cluster.cluster import (
    FakeCluster,
    FakeSubscription,
    FakeTopic,
    amount,
)

_EVENTS = tuple(
    f"dispatchThrottled{dimension}EventsBy{level}Limit"
    for level in ("Subscription", "Topic", "Broker")
    for dimension in ("Msg", "Bytes")
)
_NOT_IN_SURVEYS = (
    "backlogQuotaLimitSize", "backlogQuotaLimitTime", "oldestBacklogMessageAgeSeconds",
    "publishRateLimitedTimes", "ownerBroker",
)  # fmt: skip
_SINCE = "2026-11-20T23:46:32.913605358Z"


def topic_stats(cluster: FakeCluster, topic: FakeTopic, at_ns: int) -> dict[str, Any]:
    """``GET .../{topic}/stats``."""
    published = amount(topic.published_per_s, at_ns)
    size = topic.entry_bytes
    backlog = max((backlog_of(topic, sub, at_ns) for sub in topic.subscriptions), default=0)
    return {
        "msgRateIn": topic.published_per_s,
        "msgInCounter": published,
        "bytesInCounter": published * size,
        "storageSize": published * size,
        "backlogSize": backlog * size,
        "backlogQuotaLimitSize": cluster.quota_bytes(topic),
        "backlogQuotaLimitTime": -1,
        "oldestBacklogMessageAgeSeconds": -1,
        "publishRateLimitedTimes": 0,
        "publishers": [
            {"address": f"/10.0.0.{index % 250}:4000", "producerName": f"p-{index}"}
            for index in range(topic.publishers)
        ],
        "subscriptions": {
            sub.name: _subscription(cluster, topic, sub, at_ns) for sub in topic.subscriptions
        },
        "ownerBroker": cluster.owner(topic.name),
    }


def _subscription(
    cluster: FakeCluster, topic: FakeTopic, sub: FakeSubscription, at_ns: int
) -> dict[str, Any]:
    sent = _acked(topic, sub, at_ns) + sub.unacked
    backlog = backlog_of(topic, sub, at_ns)
    now_ms = _broker_ms(cluster, topic, at_ns)
    moved_ms = 0 if sub.is_stuck else now_ms
    fields: dict[str, Any] = {
        "type": sub.type,
        "isDurable": True,
        "msgBacklog": backlog,
        "msgBacklogNoDelayed": backlog,
        "msgDelayed": 0,
        "msgInReplay": 0,
        "backlogSize": backlog * topic.entry_bytes,
        "unackedMessages": sub.unacked,
        "blockedSubscriptionOnUnackedMsgs": sub.is_blocked,
        "msgOutCounter": sent,
        "bytesOutCounter": sent * topic.entry_bytes,
        "totalMsgExpired": 0,
        "lastConsumedTimestamp": moved_ms,
        "lastAckedTimestamp": moved_ms,
        "lastMarkDeleteAdvancedTimestamp": moved_ms,
        "consumers": [
            {
                "consumerName": f"c-{index}",
                "address": f"/10.0.1.{index % 250}:5000",
                "connectedSince": _SINCE,
                "availablePermits": sub.permits,
                "unackedMessages": sub.unacked // sub.consumers,
                "blockedConsumerOnUnackedMsgs": sub.is_blocked,
                "msgOutCounter": sent // sub.consumers,
                "avgMessagesPerEntry": 1,
            }
            for index in range(sub.consumers)
        ],
    }
    if cluster.is_numbered:
        fields |= {
            name: amount(per_s, at_ns) for name, per_s in zip(_EVENTS, sub.events, strict=True)
        }
    return fields


def internal_stats(topic: FakeTopic, at_ns: int) -> dict[str, Any]:
    """``GET .../{topic}/internalStats``: one ledger, in which an entry is a message."""
    published = amount(topic.published_per_s, at_ns)
    cursors = {}
    for sub in topic.subscriptions:
        acked = _acked(topic, sub, at_ns)
        read = min(published, acked + sub.unacked)
        is_at_end = read >= published
        cursors[sub.name] = {
            "markDeletePosition": f"8:{acked - 1}",
            "readPosition": f"8:{read}",
            "waitingReadOp": is_at_end,
            "pendingReadOps": 0,
            "subscriptionHavePendingRead": is_at_end or sub.is_stuck,
            "subscriptionHavePendingReplayRead": False,
        }
    return {
        "numberOfEntries": published,
        "lastConfirmedEntry": f"8:{published - 1}",
        "cursors": cursors,
    }


def survey(cluster: FakeCluster, broker: str, at_ns: int) -> dict[str, Any]:
    """``GET broker-stats/topics``: the loaded topics of one broker."""
    found: dict[str, Any] = {}
    for topic in cluster.by_owner.get(broker, ()):
        namespace = str(parse_topic(topic.name).namespace)
        bundle = found.setdefault(namespace, {}).setdefault(cluster.bundle(topic.name), {})
        stats = topic_stats(cluster, topic, at_ns)
        for name in _NOT_IN_SURVEYS:
            del stats[name]
        stats["msgInCount"], stats["bytesInCount"] = stats["msgInCounter"], stats["bytesInCounter"]
        for sub in stats["subscriptions"].values():
            for name in _EVENTS:
                sub.pop(name, None)  # Pulsar leaves them out here
        bundle.setdefault("persistent", {})[topic.name] = stats
    return found


def backlog_of(topic: FakeTopic, sub: FakeSubscription, at_ns: int) -> int:
    """Messages that are not acknowledged."""
    return amount(topic.published_per_s, at_ns) - _acked(topic, sub, at_ns)


def _acked(topic: FakeTopic, sub: FakeSubscription, at_ns: int) -> int:
    return amount(min(sub.acked_per_s, topic.published_per_s), at_ns)


def _broker_ms(cluster: FakeCluster, topic: FakeTopic, at_ns: int) -> int:
    skew_ms = cluster.clock_skew_ms.get(cluster.owner(topic.name), 0)
    return cluster.epoch_ms + at_ns // NS_PER_MS + skew_ms
