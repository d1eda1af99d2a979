"""The fields of a subscription's report, from its diagnosis and its present figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from headgate.base.instants import iso_time
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.explain.diagnosis import Diagnosis
from headgate.explain.reports import AccountWindow, StateTime
from headgate.explain.states import LimitRef
from headgate.explain.window import Window
from headgate.flow.account.account import LABELS, Cell
from headgate.flow.account.verdict import BLAME, blame_shares
from headgate.flow.quota.outlook import emptying_s, outlook
from headgate.flow.sentences.backlog import limit_text

SETTLING = "SETTLING"
"""Replaces the verdict while there is none yet."""
HIGH_CONFIDENCE = 0.7
MEDIUM_CONFIDENCE = 0.3


class Instant(NamedTuple):
    """The present, on both clocks."""

    now_ns: int
    """Monotonic."""
    now_ms: int
    """Since the epoch."""

    def at(self, since_ns: int) -> tuple[str, float]:
        """A monotonic instant in wall-clock time, and how many seconds ago it was."""
        ago_ns = self.now_ns - since_ns
        return iso_time(self.now_ms - ago_ns // NS_PER_MS), ago_ns / NS_PER_S

    def at_or_none(self, since_ns: int | None) -> tuple[str | None, float | None]:
        """As :meth:`at`; twice None for None."""
        return (None, None) if since_ns is None else self.at(since_ns)


@dataclass(frozen=True, slots=True)
class SubscriptionNow:
    """The present figures of a subscription beside its history; summed over partitions. None: not
    known."""

    topic: str
    subscription: str
    partitions: int
    """0 for a topic that is not partitioned."""
    type: str
    consumers: int
    cell: Cell
    """Of the partition with the largest backlog."""
    backlog_bytes: int | None
    permits: int | None
    permits_max: int | None
    damage: str = ""
    breaches_s: tuple[float | None, float | None] = (None, None)
    """Seconds until it fills each backlog quota, indexed by ``QuotaType``; 0 while one is full."""


def subscription_fields(
    found: Diagnosis, sentence: str, now: SubscriptionNow, instant: Instant
) -> dict[str, Any]:
    """The fields of a :class:`headgate.explain.reports.SubscriptionReport`."""
    judgement, settled = found.judgement, found.settled
    labels = LABELS[now.cell]
    began_at, began_s = instant.at_or_none(found.backlog_since_ns)
    since_at, since_s = instant.at_or_none(found.verdict_since_ns if settled else None)
    known_at, known_s = instant.at(found.known_since_ns)
    return {
        "topic": now.topic,
        "subscription": now.subscription,
        "partitions": now.partitions,
        "type": now.type,
        "consumers": now.consumers,
        "state": labels.state.value,
        "state_dimension": labels.dimension,
        "state_consumer": labels.consumer,
        "backlog_messages": found.window.total_end("backlog"),
        "backlog_bytes": now.backlog_bytes,
        "delayed_messages": found.window.total_end("delayed"),
        "unacked_messages": found.window.total_end("in_flight"),
        "permits": now.permits,
        "permits_max": now.permits_max,
        "oldest_age_s": max(point.age_ns for point in found.window.end) / NS_PER_S,
        "backlog_since": began_at,
        "backlog_since_s": began_s,
        "known_since": known_at,
        "known_since_s": known_s,
        "verdict": judgement.verdict.value if settled else SETTLING,
        "second": judgement.second.value if settled and judgement.second else None,
        "bystander": settled and judgement.bystander,
        "verdict_since": since_at,
        "verdict_since_s": since_s,
        "confidence": judgement.confidence if settled else 0.0,
        "confidence_level": _confidence_level(found),
        "window_s": found.window.length_ns / NS_PER_S,
        "growth_messages": judgement.growth,
        **_ahead(found, now),
        "shares": {verdict.value: share for verdict, share in judgement.shares.items()},
        "would_have_grown": judgement.would_have_grown if settled else None,
        "proven_ack_per_s": found.demonstrated_ack_per_s,
        "limit": _limit_ref(found),
        "damage": now.damage or None,
        "sentence": sentence,
    }


def _ahead(found: Diagnosis, now: SubscriptionNow) -> dict[str, Any]:
    """What left the backlog without being consumed, and what becomes of it without such losses."""
    seen = found.window
    lost = {name: seen.gained(name) for name in ("evicted", "expired", "skipped")}
    empty_s = emptying_s(
        seen.total_end("backlog"),
        -(found.judgement.growth + sum(lost.values())),
        seen.gained("appended"),
        seen.length_ns / NS_PER_S,
    )
    ahead = outlook(empty_s, now.breaches_s)
    return {f"{name}_messages": amount for name, amount in lost.items()} | {
        "drains_in_s": ahead.empty_s,
        "breaks_in_s": ahead.breach_s,
        "breaks_quota": None if ahead.breached is None else ahead.breached.label,
    }


def window_report(seen: Window) -> AccountWindow:
    """A window in full."""
    total_ns = sum(seen.cells_ns) or 1
    states = [
        StateTime(
            state=labels.state.value,
            dimension=labels.dimension,
            consumer=labels.consumer,
            seconds=ns / NS_PER_S,
            share=ns / total_ns,
            verdict=blame.value,
        )
        for ns, labels, blame in zip(seen.cells_ns, LABELS, BLAME, strict=True)
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


def _limit_ref(found: Diagnosis) -> LimitRef | None:
    dimension, level, limit = found.judgement.dimension, found.named_level, found.named_limit
    if not found.settled or level is None or limit.limit is None or dimension is None:
        return None
    return LimitRef(
        level=level.name.lower(),
        dimension=dimension.name.lower(),
        text=limit_text(limit.limit, dimension),
        source=limit.source_of(dimension),
    )


def _confidence_level(found: Diagnosis) -> str:
    if not found.settled:
        return SETTLING.lower()
    confidence = found.judgement.confidence
    if confidence >= HIGH_CONFIDENCE:
        return "high"
    return "medium" if confidence >= MEDIUM_CONFIDENCE else "low"
