"""Diagnoses one subscription: its judgement, from the broker's history and the current limits.

A subscription of a partitioned topic is judged as one over its partitions: amounts and seconds are
summed over a common window, and a limit of each partition counts once for each partition. The
verdict is about the time since the backlog began, at most the last minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headgate.base.sliced import Sliced
from headgate.base.texts import duration
from headgate.base.units import MS_PER_S, NS_PER_MINUTE, NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.flow.account.account import difference
from headgate.flow.account.demonstrated import (
    Interval,
    demonstrated_ack_per_s,
    hungry_share,
    stopped_by,
)
from headgate.flow.account.verdict import (
    THROTTLED,
    Evidence,
    Judgement,
    LimitFact,
    Verdict,
    judge,
)
from headgate.flow.expiry import ttl_text
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.flow.sentences.backlog import Circumstances, sentence
from headgate.flow.sentences.quota import quota_text
from headgate.observe.explain.blamed_since import (
    RESTART_GRACE_NS,
    SUB_WINDOW_NS,
    KnownTime,
    backlog_began_ns,
    blamed_since_ns,
    sub_windows,
)
from headgate.observe.explain.window import Part, Window, window_over
from headgate.observe.history.points import Point
from headgate.policy.current_limits import CurrentDispatchLimits

SETTLED_NS = 3 * NS_PER_S
"""Least length of a verdict's window; below, the verdict is settling."""

SUB_WINDOWS_MAX = 12
"""Most sub-windows of a window."""


@dataclass(frozen=True, slots=True)
class SubscriptionDiagnosis:
    """The judgement of one subscription, summed over its partitions, and its sentence."""

    parts: Sequence[Subscription]
    window: Window
    judgement: Judgement
    settled: bool
    has_backlog: bool
    known_since_ns: int
    """Monotonic instant since when all of it is known, at most an hour ago."""
    backlog_since_ns: int | None
    """Monotonic instant at which the backlog began; None while there is none."""
    verdict_since_ns: int | None
    limit_level: Level | None
    limit: EffectiveLimit
    demonstrated_ack_per_s: float | None
    sentence: str


def diagnose(
    current_limits: CurrentDispatchLimits, parts: Sequence[Part]
) -> Sliced[SubscriptionDiagnosis]:
    """Judge one subscription, given as its partitions' parts (at least one)."""
    now_ns = max(part.now.at_ns for part in parts)
    subscriptions = [part.subscription for part in parts]
    with_backlog = [part for part in parts if part.phase.has_backlog]
    begin_ns = min(part.phase.begin_ns for part in with_backlog or parts)
    series = [part.points(max(begin_ns, now_ns - NS_PER_MINUTE)) for part in parts]
    seen = window_over(series)
    batches_count_as_one = subscriptions[0].topic.batches_count_as_one
    limits = current_limits.limits_of(subscriptions[0])
    hour = [part.hour for part in parts]
    demonstrated = yield from _demonstrated_ack_per_s(hour)
    pieces = yield from sub_windows(series, max(SUB_WINDOW_NS, seen.length_ns // SUB_WINDOWS_MAX))
    evidence = replace(
        _evidence(seen),
        limits=_limit_facts(limits, len(parts), batches_count_as_one),
        sub_windows_ns=[cells_ns for _, cells_ns in pieces] if len(pieces) > 1 else (),
        demonstrated_ack_per_s=demonstrated,
    )
    judgement = judge(evidence)
    began_ns = min((backlog_began_ns(part) for part in with_backlog), default=None)
    known = KnownTime(max(points[0].at_ns for points in hour), began_ns, now_ns)
    needed_ns = SETTLED_NS
    if judgement.verdict is Verdict.BROKER and known.is_backlog_older:
        needed_ns = RESTART_GRACE_NS
    settled = seen.length_ns >= SETTLED_NS and now_ns - known.since_ns >= needed_ns
    since_ns: int | None = max(part.phase.since_ns for part in parts)
    at_least = False
    if with_backlog:
        since_ns, at_least = yield from blamed_since_ns(judgement, hour, known)
    named = named_level(judgement)
    level = named
    if level is None and judgement.verdict is Verdict.CONSUMER:
        level = next((level for level in Level if limits[level].limit is not None), None)
    limit = NO_LIMIT if level is None else limits[level]
    since_s = None if since_ns is None else (now_ns - since_ns) / NS_PER_S
    circumstances = replace(
        _circumstances(subscriptions, seen, level, limit),
        since_s=since_s,
        since_at_least=at_least,
        silent_s=_silent_s(hour),
        batches_count_as_one=batches_count_as_one,
    )
    settling = _settling(seen.total_end("deliverable"), known, needed_ns)
    return SubscriptionDiagnosis(
        parts=subscriptions,
        window=seen,
        judgement=judgement,
        settled=settled,
        has_backlog=bool(with_backlog),
        known_since_ns=known.since_ns,
        backlog_since_ns=began_ns,
        verdict_since_ns=since_ns,
        limit_level=named,
        limit=NO_LIMIT if named is None else limits[named],
        demonstrated_ack_per_s=demonstrated,
        sentence=sentence(judgement, circumstances) if settled else settling,
    )


def _evidence(seen: Window) -> Evidence:
    """The evidence of a window, without limits, sub-windows and the demonstrated rate."""
    return Evidence(
        window_ns=seen.length_ns,
        cells_ns=seen.cells_ns,
        backlog_start=seen.total_start("deliverable"),
        backlog_end=seen.total_end("deliverable"),
        oldest_age_ns_max=seen.age_ns_max,
        appended=max(0, seen.gained("arrived")),
        delivered=seen.gained("sent"),
        acked=seen.gained("acked"),
        unacked_start=seen.total_start("in_flight"),
        unacked_end=seen.total_end("in_flight"),
        evicted=seen.gained("evicted") + seen.gained("expired"),
        delivered_bytes=seen.gained("sent_bytes"),
    )


def _settling(waiting: int, known: KnownTime, needed_ns: int) -> str:
    subject, verb = (
        (f"{waiting:,} messages wait", "are") if waiting != 1 else ("1 message waits", "is")
    )
    text = f"settling: {subject if waiting else 'nothing waits'}, "
    if known.began_ns is not None and known.is_backlog_older:
        waited_s = (known.now_ns - known.began_ns) / NS_PER_S
        watched_s = (known.now_ns - known.since_ns) / NS_PER_S
        text += f"for at least {duration(waited_s)}, and {verb} watched for {duration(watched_s)}; "
    return f"{text}a verdict needs {needed_ns // NS_PER_S} s of history."


def named_level(judgement: Judgement) -> Level | None:
    """The level of the limit that the judgement names, first or second."""
    for verdict in (judgement.verdict, judgement.second):
        if verdict in THROTTLED:
            return Level(THROTTLED.index(verdict))
    return None


def _limit_facts(
    limits: Sequence[EffectiveLimit], partitions: int, batches_count_as_one: bool
) -> list[LimitFact]:
    facts = []
    for level, effective in zip(Level, limits, strict=True):
        limit = effective.limit
        if limit is None:
            continue
        times = 1 if level is Level.BROKER else partitions
        rates = [limit.per_second(dimension) for dimension in Dimension]
        if batches_count_as_one:
            rates[Dimension.MESSAGES] = None  # in another unit than all other amounts
        facts.append(LimitFact(level, *(None if rate is None else rate * times for rate in rates)))
    return facts


def _demonstrated_ack_per_s(hour: Sequence[Sequence[Point]]) -> Sliced[float | None]:
    """The rate that the consumers have demonstrated, summed over partitions; None if those of any
    partition have not."""
    total = 0.0
    for points in hour:
        demonstrated = demonstrated_ack_per_s(_intervals(points))
        if demonstrated is None:
            return None
        total += demonstrated
        yield
    return total


def _intervals(points: Sequence[Point]) -> Iterator[Interval]:
    """The intervals of a history that are long enough to demonstrate a rate."""
    first = points[0]
    for point in points[1:]:
        elapsed_ns = point.at_ns - first.at_ns
        if elapsed_ns < SUB_WINDOW_NS:
            continue
        yield Interval(
            covered_ns=elapsed_ns,
            cells_ns=difference(point.cells_ns, first.cells_ns),
            acked=point.acked - first.acked,
            evicted=point.evicted - first.evicted + point.expired - first.expired,
            oldest_age_ns=min(first.age_ns, point.age_ns),
        )
        first = point


def _silent_s(hour: Sequence[Sequence[Point]]) -> float:
    """Seconds since any consumer of any partition acknowledged something, as far as is known."""
    acked_ns = [
        next(
            (
                later.at_ns
                for later, earlier in pairwise(reversed(points))
                if later.acked > earlier.acked
            ),
            points[0].at_ns,
        )
        for points in hour
    ]
    return (max(points[-1].at_ns for points in hour) - max(acked_ns)) / NS_PER_S


def _evicted_by(subscriptions: Sequence[Subscription]) -> str:
    """The quota that evicted last, on the partition that lost most."""
    quota = max(subscriptions, key=lambda part: part.evicted_messages).evicted_by
    if quota is None:
        return ""
    scale = 1 if quota.type is QuotaType.SIZE else MS_PER_S
    return quota_text(quota.type.label, quota.limit / scale, quota.source)


def _expired_by(subscriptions: Sequence[Subscription]) -> str:
    """The TTL that expired messages last, on the partition that lost most by age; empty if a
    request did."""
    ttl = max(subscriptions, key=lambda part: part.expired_messages).expired_by
    return "" if ttl is None else ttl_text(ttl)


def _circumstances(
    subscriptions: Sequence[Subscription],
    seen: Window,
    level: Level | None,
    limit: EffectiveLimit,
) -> Circumstances:
    consumers = [c for subscription in subscriptions for c in subscription.consumers]
    without_consumer = sum(not subscription.consumers for subscription in subscriptions)
    waiting = 0
    if level is not None:
        # Each partition has its own limit.
        waiting = max(subscription.waiting_subscriptions(level) for subscription in subscriptions)
    sent = seen.gained("sent")
    return Circumstances(
        backlog=seen.total_end("deliverable"),
        delayed=seen.total_end("delayed"),
        limit=limit.limit,
        limit_source=limit.source,
        waiting_subscriptions=waiting,
        permits=sum(max(0, c.permits) for c in consumers) if consumers else None,
        permits_max=sum(c.window for c in consumers) if consumers else None,
        hungry_share=hungry_share(seen.cells_ns, level),
        appended_per_s=seen.per_second("appended"),
        delivered_per_s=seen.per_second("sent"),
        acked_per_s=seen.per_second("acked"),
        bytes_per_message=seen.gained("sent_bytes") / sent if sent else None,
        stopped_by=stopped_by(seen.cells_ns),
        evicted=seen.gained("evicted"),
        evicted_by=_evicted_by(subscriptions),
        expired=seen.gained("expired"),
        expired_by=_expired_by(subscriptions),
        partitions=len(subscriptions),
        partitions_without_consumer=without_consumer if consumers else 0,
    )
