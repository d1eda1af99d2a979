"""Figures for the telemetry, from what a cluster's history knows of one topic.

A history infers what happened to subscriptions. What was published to a topic, and evicted from it,
its broker counts; ``TopicTotals`` adds that up over the topic's loads.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.agent.figures import SubjectFigures
from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.looks import LimitsLook, SubscriptionLook, TopicLook
from headgate.base.units import NS_PER_S
from headgate.explain.points import Point
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.record.codec import Value
from headgate.record.fields import DIMENSIONS, STATE_FIELD_NAMES, THROTTLE_REASONS

_COUNTERS: Final = {
    "msgs_in": "published",
    "bytes_in": "published_bytes",
    "eviction_size_acts": "size_evictions",
    "eviction_time_acts": "age_evictions",
}
"""Fields of a topic's row, by the figure of a look that counts since the topic was loaded."""


_EVENT_FIELDS: Final = tuple(
    f"throttled_{reason}_{unit}_events" for reason in THROTTLE_REASONS for unit in DIMENSIONS
)
"""By level, then dimension, as looks have events."""


@dataclass(slots=True)
class _Totals:
    since_ns: int
    at_ns: int
    is_survey: bool
    sums: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    per_ns: dict[str, float] = field(default_factory=dict)
    """Rates of the last period."""


class TopicTotals:
    """What was counted of each topic since it was first seen."""

    def __init__(self) -> None:
        self._topics: dict[str, _Totals] = {}

    def note_look(self, look: TopicLook) -> None:
        """Add what was counted since the look before. A counter that fell counts from zero; what
        was counted before it fell, after the last look, is lost.

        The figures of a survey are up to a minute old. So from a survey to a close look a counter
        grows by more than in the time between: what it grows by at the last known rate counts.
        """
        known = self._topics.get(look.topic)
        if known is None:
            known = self._topics[look.topic] = _Totals(look.at_ns, look.at_ns, look.is_survey)
        elif look.at_ns <= known.at_ns:
            return
        elapsed_ns, known.at_ns = look.at_ns - known.at_ns, look.at_ns
        is_fresher, known.is_survey = known.is_survey and not look.is_survey, look.is_survey
        for name, figure in _COUNTERS.items():
            now: int | None = getattr(look, figure)
            if now is None:
                continue
            before = known.last.get(name)
            grown = 0 if before is None else now - before if now >= before else now
            if is_fresher:
                grown = min(grown, round(known.per_ns.get(name, 0.0) * elapsed_ns))
            elif before is not None and elapsed_ns:
                known.per_ns[name] = grown / elapsed_ns
            known.sums[name] = known.sums.get(name, 0) + grown
            known.last[name] = now

    def forget(self, before_ns: int, known: Container[str] | None = None) -> None:
        """Forget the topics that were not seen since an instant, and those not in ``known``."""
        for topic in [
            name
            for name, each in self._topics.items()
            if each.at_ns < before_ns or (known is not None and name not in known)
        ]:
            del self._topics[topic]

    def of(self, topic: str) -> tuple[int, Mapping[str, int]] | None:
        """Since when a topic is counted, and its counts by field; None if it is not known."""
        known = self._topics.get(topic)
        return None if known is None else (known.since_ns, known.sums)


def figures_of(topic: InferredTopic, totals: TopicTotals) -> list[SubjectFigures]:
    """The figures of a topic or partition and of its subscriptions."""
    found = []
    counted = totals.of(topic.name)
    if topic.look is not None and counted is not None:
        since_ns, counts = counted
        values = {**_topic_values(topic.look, topic.limits), **counts}
        found.append(SubjectFigures(topic.name, None, since_ns, topic.at_ns, topic.owner, values))
    for each in topic.subscriptions.values():
        if each.look is None or each.track is None:
            continue
        point = each.track.phase.last
        values = _subscription_values(point, each.look)
        if each.events is not None:
            values |= zip(_EVENT_FIELDS, each.events, strict=True)
        if each.limits is not None:
            values |= _dispatch_limits(each.limits)
        found.append(
            SubjectFigures(topic.name, each.name, each.opened_ns, point.at_ns, topic.owner, values)
        )
    return found


def _topic_values(look: TopicLook, limits: LimitsLook | None) -> dict[str, Value]:
    age_s = look.oldest_age_s
    values: dict[str, Value] = {
        "storage_bytes": look.storage_bytes,
        "backlog_bytes": look.backlog_bytes,
        "oldest_age_ns": None if age_s is None or age_s < 0 else round(age_s * NS_PER_S),
        "oldest_subscription": look.oldest_subscription or None,
    }
    if not look.is_survey:
        values["producers"] = len(look.publisher_addresses)
    if limits is not None and (limit := limits.publish.limit) is not None:
        values |= {
            "publish_limit_messages_per_s": limit.per_second(Dimension.MESSAGES),
            "publish_limit_bytes_per_s": limit.per_second(Dimension.BYTES),
            "publish_limit_source": limits.publish.source,
        }
    return values


def _subscription_values(point: Point, look: SubscriptionLook) -> dict[str, Value]:
    permits = [each.permits for each in look.consumers if each.permits is not None]
    values: dict[str, Value] = {
        "type": look.type or None,
        "consumers": len(look.consumers),
        "appended": point.appended,
        # Surveys do not tell what was sent.
        "msgs_out": None if look.sent is None else point.sent,
        "bytes_out": None if look.sent_bytes is None else point.sent_bytes,
        "acked": point.acked,
        "skipped": point.skipped,
        "rewound": point.rewound,
        "expired": point.expired,
        "evicted": point.evicted,
        "backlog_messages": point.backlog,
        "backlog_bytes": look.backlog_bytes,
        "oldest_age_ns": point.age_ns if point.deliverable > 0 else None,
        "delayed": point.delayed,
        "unacked": point.in_flight,
        "permits": sum(permits) if len(permits) == len(look.consumers) else None,
    }
    values |= zip(STATE_FIELD_NAMES, point.cells_ns, strict=True)
    return values


def _dispatch_limits(limits: Sequence[EffectiveLimit]) -> dict[str, Value]:
    """The limits in force, by level."""
    values: dict[str, Value] = {}
    for level, effective in zip(Level, limits, strict=True):
        limit = effective.limit
        if limit is None:
            continue
        name = f"limit_{level.name.lower()}"
        values[f"{name}_messages"] = limit.messages
        values[f"{name}_bytes"] = limit.bytes
        values[f"{name}_period_ns"] = limit.period_ns
        is_moving = limit.relative or limit.base is not None
        values[f"{name}_source"] = effective.source + ABOVE_PUBLISH_RATE * is_moving
    return values
