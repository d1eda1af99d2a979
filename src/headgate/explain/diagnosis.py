"""Diagnoses one subscription by its last hour: the judgement, and since when it holds.

A subscription of a partitioned topic is judged as one over its partitions: amounts and seconds are
summed over a common window, and a limit of each partition counts once for each partition. The
verdict is about the time since the backlog began, usually at most the last minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headgate.base.sliced import Sliced
from headgate.base.texts import duration
from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.explain.blamed_since import (
    RESTART_GRACE_NS,
    SUB_WINDOW_NS,
    KnownTime,
    backlog_began_ns,
    blamed_since_ns,
    sub_windows,
)
from headgate.explain.points import Point
from headgate.explain.window import Past, Window, window_over
from headgate.flow.account.account import Cell, difference
from headgate.flow.account.demonstrated import (
    Interval,
    demonstrated_ack_per_s,
    hungry_share,
    stopped_by,
    stuck_share,
)
from headgate.flow.account.verdict import (
    THROTTLED,
    Evidence,
    Judgement,
    LimitFact,
    Verdict,
    judge,
)
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.sentences.backlog import Circumstances, sentence

SETTLED_NS = 3 * NS_PER_S
"""Least length of a verdict's window; below, the verdict is settling."""

SUB_WINDOWS_MAX = 12
"""Most sub-windows of a window."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The judgement of one subscription, summed over its partitions."""

    window: Window
    judgement: Judgement
    settled: bool
    has_backlog: bool
    known: KnownTime
    needed_ns: int
    """The history that a verdict needs."""
    verdict_since_ns: int | None
    """Monotonic instant."""
    since_at_least: bool
    level: Level | None
    """The limit that the judgement names, or else one that a sentence about a consumer mentions."""
    limit: EffectiveLimit
    """The limit at ``level``."""
    demonstrated_ack_per_s: float | None
    silent_s: float
    """Seconds since anything was acknowledged, as far as is known."""
    batches_count_as_one: bool
    unknown: frozenset[str] = frozenset()
    """Counters of :class:`Point` that are not known for all of the window."""

    @property
    def known_since_ns(self) -> int:
        """Monotonic instant since when all of it is known, at most an hour ago."""
        return self.known.since_ns

    @property
    def backlog_since_ns(self) -> int | None:
        """Monotonic instant at which the backlog began; None while there is none."""
        return self.known.began_ns

    @property
    def named_level(self) -> Level | None:
        """The level of the limit that the judgement names, first or second."""
        return named_level(self.judgement)

    @property
    def named_limit(self) -> EffectiveLimit:
        """The limit at that level."""
        return NO_LIMIT if self.named_level is None else self.limit

    def sentence(self, circumstances: Circumstances) -> str:
        """The verdict in words, with ``circumstances`` that only the caller knows; :meth:`known`
        figures are filled in. While it settles: what is missing."""
        if not self.settled:
            waiting = self.window.total_end("deliverable")
            return _settling(waiting, self.known, self.needed_ns)
        return sentence(self.judgement, self._circumstances(circumstances))

    def _circumstances(self, circumstances: Circumstances) -> Circumstances:
        seen, since_ns = self.window, self.verdict_since_ns
        sent = seen.gained("sent")
        is_stuck = any(point.cell is Cell.STUCK for point in seen.end)
        return replace(
            circumstances,
            backlog=seen.total_end("deliverable"),
            delayed=seen.total_end("delayed"),
            limit=self.limit.limit,
            limit_source=self.limit.source,
            hungry_share=hungry_share(seen.cells_ns, self.level),
            appended_per_s=self._per_second("appended"),
            delivered_per_s=self._per_second("sent"),
            acked_per_s=self._per_second("acked"),
            bytes_per_message=seen.gained("sent_bytes") / sent if sent else None,
            stopped_by=stopped_by(seen.cells_ns),
            # A dispatcher that is stuck now was so before looks could prove it.
            stuck_share=1.0 if is_stuck else stuck_share(seen.cells_ns),
            evicted=seen.gained("evicted"),
            expired=seen.gained("expired"),
            partitions=len(seen.end),
            since_s=None if since_ns is None else (self.known.now_ns - since_ns) / NS_PER_S,
            since_at_least=self.since_at_least,
            silent_s=None if "acked" in self.unknown else self.silent_s,
            batches_count_as_one=self.batches_count_as_one,
        )

    def _per_second(self, field: str) -> float | None:
        return None if field in self.unknown else self.window.per_second(field)


def diagnose(
    parts: Sequence[Past],
    limits: Sequence[EffectiveLimit],
    *,
    batches_count_as_one: bool = False,
    is_inferred: bool = False,
    completeness: float = 1.0,
    window_ns: int = NS_PER_MINUTE,
    window_min_ns: int = 0,
) -> Sliced[Diagnosis]:
    """Judge one subscription, given as its partitions' parts (at least one).

    ``limits`` are those in force at each level, ``batches_count_as_one`` says that those in
    messages count a batch as one. ``is_inferred`` and ``completeness`` are those of the
    evidence. The verdict is about the last ``window_ns`` at most, and the last
    ``window_min_ns`` at least, however young the backlog is.
    """
    now_ns = max(part.now.at_ns for part in parts)
    with_backlog = [part for part in parts if part.phase.has_backlog]
    begin_ns = min(part.phase.begin_ns for part in with_backlog or parts)
    begin_ns = min(begin_ns, now_ns - window_min_ns)
    series = [part.points(max(begin_ns, now_ns - window_ns)) for part in parts]
    seen = window_over(series)
    hour = [part.hour for part in parts]
    demonstrated = yield from _demonstrated_ack_per_s(hour)
    pieces = yield from sub_windows(series, max(SUB_WINDOW_NS, seen.length_ns // SUB_WINDOWS_MAX))
    judgement = judge(
        replace(
            evidence_of(seen),
            limits=_limit_facts(limits, len(parts), batches_count_as_one),
            sub_windows_ns=[cells_ns for _, cells_ns in pieces] if len(pieces) > 1 else (),
            demonstrated_ack_per_s=demonstrated,
            is_inferred=is_inferred,
            completeness=completeness,
        )
    )
    began_ns = min((backlog_began_ns(part) for part in with_backlog), default=None)
    known = KnownTime(max(points[0].at_ns for points in hour), began_ns, now_ns)
    needed_ns = SETTLED_NS
    if judgement.verdict is Verdict.BROKER and known.is_backlog_older:
        needed_ns = RESTART_GRACE_NS
    since_ns: int | None = max(part.phase.since_ns for part in parts)
    at_least = False
    if with_backlog:
        since_ns, at_least = yield from blamed_since_ns(judgement, hour, known)
    level = named_level(judgement)
    if level is None and judgement.verdict is Verdict.CONSUMER:
        level = next((level for level in Level if limits[level].limit is not None), None)
    return Diagnosis(
        window=seen,
        judgement=judgement,
        settled=seen.length_ns >= SETTLED_NS and now_ns - known.since_ns >= needed_ns,
        has_backlog=bool(with_backlog),
        known=known,
        needed_ns=needed_ns,
        verdict_since_ns=since_ns,
        since_at_least=at_least,
        level=level,
        limit=NO_LIMIT if level is None else limits[level],
        demonstrated_ack_per_s=demonstrated,
        silent_s=_silent_s(hour),
        batches_count_as_one=batches_count_as_one,
    )


def evidence_of(seen: Window) -> Evidence:
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
