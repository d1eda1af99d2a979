"""The delivering side of a topic in reports: its subscriptions and its dispatch limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.base.instants import iso_time
from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_MS, NS_PER_S
from headgate.broker.damage import damage_of, subscription_damage_sentence
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.account.account import LABELS
from headgate.flow.account.verdict import blame_shares
from headgate.flow.sentences.backlog import limit_text
from headgate.observe.explain.diagnosis import SubscriptionDiagnosis, diagnose
from headgate.observe.explain.reports import (
    AccountWindow,
    StateTime,
    SubscriptionAccount,
    SubscriptionReport,
)
from headgate.observe.explain.window import Part, Window, parts_of, window
from headgate.observe.history.tracks import History
from headgate.observe.states.fields import LimitRef, LimitState
from headgate.observe.states.limits import (
    broker_limit,
    subscription_limit,
    throttled_amounts,
    topic_limit,
)
from headgate.policy.current_limits import CurrentDispatchLimits

SETTLING = "SETTLING"
"""Replaces the verdict while there is none yet."""
HIGH_CONFIDENCE = 0.7
MEDIUM_CONFIDENCE = 0.3


class DeliveryReports:
    """Reports on delivery, from the subscriptions' history and the current dispatch limits."""

    def __init__(self, engine: Engine, history: History, limits: CurrentDispatchLimits) -> None:
        self._engine = engine
        self._history = history
        self._limits = limits

    def report(
        self, subscriptions: Sequence[Subscription], name: str = "", partitions: int = 0
    ) -> Sliced[SubscriptionReport]:
        """The report on one subscription, given as its partitions' parts (at least one).

        ``name`` is that of the topic in the report, by default the first part's. ``partitions`` is
        0 for a topic that is not partitioned.
        """
        parts = yield from parts_of(self._history, subscriptions)
        return SubscriptionReport(**(yield from self._fields(parts, name, partitions)))

    def broker_limit(self) -> LimitState | None:
        """The broker-wide dispatch limit; None if nothing is set."""
        return broker_limit(self._limits, self._engine)

    def limits(self, topics: Sequence[Topic], broker_limit: LimitState | None) -> list[LimitState]:
        """The dispatch limits of a topic, given as its partitions. ``broker_limit`` does not hold
        for system topics."""
        limits = [topic_limit(self._limits, topic) for topic in topics]
        if not all(topic.is_system for topic in topics):
            limits.append(broker_limit)
        return [limit for limit in limits if limit is not None]

    def account(
        self, subscriptions: Sequence[Subscription], name: str, partitions: int
    ) -> Sliced[SubscriptionAccount]:
        """The report on one subscription with its account in full; see :meth:`report`."""
        parts = yield from parts_of(self._history, subscriptions)
        fields = yield from self._fields(parts, name, partitions)
        minute = _window_report(window(parts, NS_PER_MINUTE))
        yield
        hour = _window_report(window(parts, NS_PER_HOUR))
        limits = []
        live = [part.subscription for part in parts if not part.subscription.removed]
        for subscription in live:
            limit = subscription_limit(self._limits, subscription)
            if limit is not None:
                limits.append(limit)
            yield
        return SubscriptionAccount(
            **fields,
            minute=minute,
            hour=hour,
            limits=limits,
            spared=bool(live) and all(s.gate.exempt and not s.topic.is_system for s in live),
            held_back=throttled_amounts(live),
        )

    def _fields(self, known: Sequence[Part], name: str, partitions: int) -> Sliced[dict[str, Any]]:
        found = yield from diagnose(self._limits, known)
        parts = found.parts
        judgement = found.judgement
        largest = max(parts, key=lambda part: part.backlog_messages)
        labels = LABELS[largest.account.cell]
        damage = next(filter(None, map(damage_of, parts)), "")
        consumers = [consumer for part in parts for consumer in part.consumers]
        began_at, began_s = _since(self._engine, found.backlog_since_ns)
        since_at, since_s = _since(self._engine, found.verdict_since_ns if found.settled else None)
        known_at, known_s = _instant(self._engine, found.known_since_ns)
        return {
            "topic": name or largest.topic.name.full,
            "subscription": largest.name,
            "partitions": partitions,
            "type": largest.type.label if largest.type_known else "",
            "consumers": len(consumers),
            "state": labels.state.value,
            "state_dimension": labels.dimension,
            "state_consumer": labels.consumer,
            "backlog_messages": found.window.total_end("backlog"),
            "backlog_bytes": sum(part.backlog_bytes for part in parts),
            "delayed_messages": found.window.total_end("delayed"),
            "unacked_messages": found.window.total_end("in_flight"),
            "permits": sum(consumer.permits for consumer in consumers),
            "permits_max": sum(consumer.window for consumer in consumers),
            "oldest_age_s": max(point.age_ns for point in found.window.end) / NS_PER_S,
            "backlog_since": began_at,
            "backlog_since_s": began_s,
            "known_since": known_at,
            "known_since_s": known_s,
            "verdict": judgement.verdict.value if found.settled else SETTLING,
            "second": judgement.second.value if found.settled and judgement.second else None,
            "bystander": found.settled and judgement.bystander,
            "verdict_since": since_at,
            "verdict_since_s": since_s,
            "confidence": judgement.confidence if found.settled else 0.0,
            "confidence_level": _confidence_level(found),
            "window_s": found.window.length_ns / NS_PER_S,
            "growth_messages": judgement.growth,
            "shares": {verdict.value: share for verdict, share in judgement.shares.items()},
            "would_have_grown": judgement.would_have_grown if found.settled else None,
            "proven_ack_per_s": found.demonstrated_ack_per_s,
            "limit": _limit_ref(found),
            "damage": damage or None,
            "sentence": subscription_damage_sentence(parts) if damage else found.sentence,
        }


def _window_report(seen: Window) -> AccountWindow:
    total_ns = sum(seen.cells_ns) or 1
    states = [
        StateTime(
            state=labels.state.value,
            dimension=labels.dimension,
            consumer=labels.consumer,
            seconds=ns / NS_PER_S,
            share=ns / total_ns,
        )
        for ns, labels in zip(seen.cells_ns, LABELS, strict=True)
        if ns
    ]
    states.sort(key=lambda state: -state.seconds)
    return AccountWindow(
        window_s=seen.length_ns / NS_PER_S,
        states=states,
        shares={blame.value: share for blame, share in blame_shares(seen.cells_ns).items()},
        appended=seen.gained("appended"),
        delivered=seen.gained("sent"),
        acked=seen.gained("acked"),
        skipped=seen.gained("skipped"),
        rewound=seen.gained("rewound"),
        expired=seen.gained("expired"),
        evicted=seen.gained("evicted"),
        redelivered=seen.gained("redelivered"),
        backlog_start=seen.total_start("backlog"),
        backlog_end=seen.total_end("backlog"),
        oldest_age_max_s=seen.age_ns_max / NS_PER_S,
        appended_per_s=seen.per_second("appended"),
        delivered_per_s=seen.per_second("sent"),
        acked_per_s=seen.per_second("acked"),
    )


def _limit_ref(found: SubscriptionDiagnosis) -> LimitRef | None:
    dimension = found.judgement.dimension
    if (
        not found.settled
        or found.limit_level is None
        or found.limit.limit is None
        or dimension is None
    ):
        return None
    return LimitRef(
        level=found.limit_level.name.lower(),
        dimension=dimension.name.lower(),
        text=limit_text(found.limit.limit, dimension),
        source=found.limit.source_of(dimension),
    )


def _confidence_level(found: SubscriptionDiagnosis) -> str:
    if not found.settled:
        return SETTLING.lower()
    confidence = found.judgement.confidence
    if confidence >= HIGH_CONFIDENCE:
        return "high"
    return "medium" if confidence >= MEDIUM_CONFIDENCE else "low"


def _since(engine: Engine, since_ns: int | None) -> tuple[str | None, float | None]:
    """As :func:`_instant`; twice None for None."""
    return (None, None) if since_ns is None else _instant(engine, since_ns)


def _instant(engine: Engine, since_ns: int) -> tuple[str, float]:
    """A monotonic instant in wall-clock time, and how many seconds ago it was."""
    ago_ns = engine.now_ns - since_ns
    return iso_time(engine.now_ms - ago_ns // NS_PER_MS), ago_ns / NS_PER_S
