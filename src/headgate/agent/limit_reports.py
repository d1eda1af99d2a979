"""The limits in force that the agent knows, in the JSON of a broker's limits.

Fields mean what :class:`headgate.explain.states.LimitState` says; a figure that looks do not tell
is null. What is used of a limit is the mean rate between the last looks, for one period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headgate.agent.inferred_subscription import UNKNOWN_RATES, InferredSubscription, Rates
from headgate.agent.inferred_topic import PUBLISHED_NS, InferredTopic
from headgate.base.instants import iso_time
from headgate.base.units import NS_PER_S
from headgate.explain.delivery import Instant
from headgate.flow.account.account import LABELS
from headgate.flow.account.verdict import INFERRED
from headgate.flow.limits.gate_node import LARGEST_WAITERS
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level, PerSecond, RateLimit
from headgate.flow.sentences.backlog import limit_text


def limits_report(
    cluster: str, topics: Iterable[InferredTopic], count: int, instant: Instant
) -> dict[str, Any]:
    """The limits of the topics whose policies were read: those that hold something first."""
    found: list[dict[str, Any]] = []
    of_broker: dict[str, dict[str, Any]] = {}
    unread = 0
    for topic in topics:
        if topic.is_gone(instant.now_ns):
            continue
        if topic.limits is None:
            unread += 1
            continue
        found += topic_limits(topic, instant.now_ns)
        found += (
            limit
            for each in topic.subscriptions.values()
            for limit in subscription_limits(topic, each, instant.now_ns)
        )
        found += publish_limits(topic, instant.now_ns)
        for limit in broker_limits(topic):
            _merge(of_broker.setdefault(topic.owner, limit), limit)
    found += of_broker.values()
    found.sort(key=lambda limit: (not limit["holds"], -(limit["waitingS"] or 0.0)))
    return {
        "at": iso_time(instant.now_ms),
        "broker": cluster,
        "limitsTotal": len(found),
        "limits": found[:count],
        "evidence": INFERRED,
        "notSeen": [
            f"the limits of {unread:,} of the topics and partitions: the agent reads those of "
            "topics with a backlog"
        ]
        if unread
        else [],
    }


def topic_limits(topic: InferredTopic, now_ns: int) -> list[dict[str, Any]]:
    """The dispatch limit of a topic or partition; empty if none is set, or it was not read."""
    if topic.limits is None:
        return []
    parts = list(topic.subscriptions.values())
    rates = _sum([each.rates for each in parts]) if _is_fresh(topic, now_ns) else UNKNOWN_RATES
    effective = topic.limits.dispatch[Level.TOPIC]
    return _states(
        "topic", topic.name, effective, rates, topic, _waiters(topic, parts, Level.TOPIC)
    )


def subscription_limits(
    topic: InferredTopic, subscription: InferredSubscription, now_ns: int
) -> list[dict[str, Any]]:
    """The dispatch limit of a subscription itself; empty as for a topic."""
    if topic.limits is None or subscription.limits is None:
        return []
    rates = subscription.rates if _is_fresh(topic, now_ns) else UNKNOWN_RATES
    effective = subscription.limits[Level.SUBSCRIPTION]
    subject = f"{topic.name} / {subscription.name}"
    waiters = _waiters(topic, [subscription], Level.SUBSCRIPTION)
    return _states("subscription", subject, effective, rates, topic, waiters)


def publish_limits(topic: InferredTopic, now_ns: int) -> list[dict[str, Any]]:
    """The publish limit of a topic or partition; empty as for dispatch. How many producers wait is
    not known."""
    if topic.limits is None:
        return []
    rates = topic.publish_rates() if _is_fresh(topic, now_ns) else UNKNOWN_RATES
    effective = topic.limits.publish
    found = _states(
        f"publish_{Level.TOPIC.name.lower()}", topic.name, effective, rates, topic, None
    )
    return [limit | {"holds": bool(topic.held_publishing(now_ns))} for limit in found]


def broker_limits(topic: InferredTopic) -> list[dict[str, Any]]:
    """The dispatch limit of the broker that has a topic, with what of this topic waits for it."""
    if topic.limits is None:
        return []
    waiters = _waiters(topic, list(topic.subscriptions.values()), Level.BROKER)
    effective = topic.limits.dispatch[Level.BROKER]
    found = _states("broker", "", effective, UNKNOWN_RATES, topic, waiters)
    return [limit | {"broker": topic.owner} for limit in found]


def _states(
    level: str,
    subject: str,
    effective: EffectiveLimit,
    rates: Rates,
    topic: InferredTopic,
    waiters: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """The state of a limit; empty if none is set. ``waiters`` is None if they are not known."""
    if not effective.source:
        return []
    limit = effective.limit
    held = waiters or {"waiters": None, "waitingS": None, "longestWaiting": []}
    return [
        {
            "level": level,
            "subject": subject,
            "source": effective.source,
            "unlimited": limit is None,
            "relative": limit is not None and limit.relative,
            "budgets": [] if limit is None else _budgets(limit, effective, rates, topic),
            "waitersMax": None,
            "holds": bool(held["waiters"]),
            "evidence": INFERRED,
            **held,
        }
    ]


def _budgets(
    limit: RateLimit, effective: EffectiveLimit, rates: Rates, topic: InferredTopic
) -> list[dict[str, Any]]:
    present = _present(limit, topic)
    found = []
    for dimension in Dimension:
        own = limit.amount(dimension)
        if own is None:
            continue
        rate = rates[dimension]
        period_s = limit.period_ns / NS_PER_S
        text = limit_text(limit if present is None else present, dimension)
        found.append(
            {
                "dimension": dimension.name.lower(),
                "limit": None if present is None else present.amount(dimension),
                "periodS": period_s,
                "inWindow": None if rate is None else round(rate * period_s),
                "debt": None,
                "granted": None,
                "abovePublishRate": own if limit.relative else None,
                "publishRateTimes": 1 if limit.relative else None,
                "text": text if present is not None else f"{text} above the publish rate",
                "source": effective.source_of(dimension),
            }
        )
    return found


def _present(limit: RateLimit, topic: InferredTopic) -> RateLimit | None:
    """A limit with its present amounts; None for a relative one while the publish rate is not
    known."""
    if not limit.relative:
        return limit
    messages, size = topic.publish_rates()
    return None if messages is None or size is None else limit.above(PerSecond(messages, size))


def _waiters(
    topic: InferredTopic, subscriptions: Iterable[InferredSubscription], level: Level
) -> dict[str, Any]:
    """How many subscriptions a limiter of a level holds at their last look, the names of the first,
    and for how long it has held any, summed over them. Since when each waits is not known."""
    waiting_ns = 0
    names = []
    for each in subscriptions:
        waiting_ns += sum(
            ns for ns, labels in zip(each.cells_ns, LABELS, strict=True) if labels.level is level
        )
        track = each.track
        if track is not None and LABELS[track.phase.last.cell].level is level:
            names.append(each.name)
    return {
        "waiters": len(names),
        "waitingS": waiting_ns / NS_PER_S,
        "longestWaiting": [
            {"topic": topic.name, "subscription": name, "waitingS": None}
            for name in names[:LARGEST_WAITERS]
        ],
    }


def _merge(into: dict[str, Any], limit: Mapping[str, Any]) -> None:
    """Add what another topic of the same broker waits for its limit."""
    if into is limit:
        return
    into["waiters"] += limit["waiters"]
    into["waitingS"] += limit["waitingS"]
    into["holds"] = bool(into["waiters"])
    into["longestWaiting"] = (into["longestWaiting"] + limit["longestWaiting"])[:LARGEST_WAITERS]


def _is_fresh(topic: InferredTopic, now_ns: int) -> bool:
    return now_ns - topic.at_ns <= PUBLISHED_NS


def _sum(rates: list[Rates]) -> Rates:
    """The sum; None in a dimension in which any is not known."""
    messages = [each for each, _ in rates]
    size = [each for _, each in rates]
    return _total(messages), _total(size)


def _total(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
