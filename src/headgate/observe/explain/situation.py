"""From the broker's history to a judgement: what explain says about one subscription now.

A subscription of a partitioned topic is judged as one over its partitions: amounts and seconds are
summed over a common window, and limits that each partition has by itself count as often as there
are partitions. The verdict is about the time since the backlog began, at most the last minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.broker.slices import Steps
from headgate.engine.subscription import Subscription
from headgate.flow.account.account import CELL_COUNT, difference
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
    blame_shares,
    judge,
)
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.flow.sentences.backlog import Circumstances, duration, sentence
from headgate.flow.sentences.quota import quota_text
from headgate.observe.history.backlog_phase import BacklogPhase, calm_phase
from headgate.observe.history.grid import HOUR_NS, MINUTE_NS
from headgate.observe.history.points import Point, changed_levels, later, look
from headgate.policy.limits_in_force import NO_LIMIT

if TYPE_CHECKING:
    from headgate.broker.service import Broker

SETTLED_NS = 3 * NS_PER_S
"""A verdict on less than this is called settling."""

STARTED_NS = 10 * NS_PER_S
"""For so long after the broker came to a backlog that was there already, as after a restart,
clients come back and what was in memory is fetched: that says nothing of what holds it."""

HALF = 0.5
NEARLY_ALL = 0.98

SUB_WINDOW_NS = 5 * NS_PER_S // 2
"""Least length of the parts that must agree: clients return permits in lots, seconds apart."""

SUB_WINDOWS = 12
"""At most so many."""


@dataclass(frozen=True, slots=True)
class Window:
    """What happened between two instants, summed over partitions."""

    start: Sequence[Point]
    end: Sequence[Point]
    cells_ns: tuple[int, ...]
    age_ns_max: int

    @property
    def length_ns(self) -> int:
        """The longest of the partitions' windows, at least 1."""
        return max(1, *(b.at_ns - a.at_ns for a, b in zip(self.start, self.end, strict=True)))

    def gained(self, field: str) -> int:
        """By how much a counter grew."""
        return self.total_end(field) - self.total_start(field)

    def total_start(self, field: str) -> int:
        """A figure at the start."""
        return sum(getattr(point, field) for point in self.start)

    def total_end(self, field: str) -> int:
        """A figure at the end."""
        return sum(getattr(point, field) for point in self.end)

    def per_second(self, field: str) -> float:
        """A counter's mean rate."""
        return self.gained(field) * NS_PER_S / self.length_ns


@dataclass(frozen=True, slots=True)
class Situation:
    """One subscription (or one over several partitions) and its judgement."""

    parts: Sequence[Subscription]
    window: Window
    judgement: Judgement
    settled: bool
    is_calm: bool
    known_since_ns: int
    """Monotonic instant from which on all of it is known, within the last hour."""
    backlog_since_ns: int | None
    """Monotonic instant at which the backlog began; None while it is calm."""
    verdict_since_ns: int | None
    limit_level: Level | None
    limit: EffectiveLimit
    demonstrated_ack_per_s: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Part:
    """One partition's part of a subscription: the last hour, and how it stands now."""

    subscription: Subscription
    hour: Sequence[Point]
    """What was kept of it, ending with the present; at least two points."""
    last: Point
    """The newest kept point."""
    seen_ns: int
    """Up to here nothing happened since ``last``."""
    phase: BacklogPhase

    @property
    def now(self) -> Point:
        """The present."""
        return self.hour[-1]

    def points(self, start_ns: int) -> Sequence[Point]:
        """From ``start_ns`` (less than an hour ago) on, ending with the present."""
        points = [point for point in self.hour if point.at_ns >= start_ns]
        if len(points) > 1:
            return points
        return [later(self.last, max(self.last.at_ns, min(start_ns, self.seen_ns))), self.now]


def part_of(broker: Broker, subscription: Subscription) -> Part:
    """What is known of one partition's part of a subscription, now."""
    now = look(subscription, broker.engine.now_ns, broker.engine.log_ms)
    track = broker.sweeps.history.track(subscription)
    if track is None:
        return Part(subscription, [now, now], now, now.at_ns, calm_phase(now))
    hour = [*track.since(broker.engine.now_ns - HOUR_NS), now]
    last = hour[-2]
    return Part(subscription, hour, last, track.seen_ns, track.phase.after(now))


def parts_of(broker: Broker, subscriptions: Sequence[Subscription]) -> Steps[list[Part]]:
    """What is known of each. One that is removed meanwhile is left out, unless all are."""
    parts: list[Part] = []
    for index, subscription in enumerate(subscriptions):
        if not subscription.removed or (not parts and index == len(subscriptions) - 1):
            parts.append(part_of(broker, subscription))
        yield
    return parts


def window(parts: Sequence[Part], length_ns: int) -> Window:
    """The last ``length_ns`` (at most an hour), or as much of it as is known."""
    begin_ns = max(part.now.at_ns for part in parts) - length_ns
    return _window([part.points(begin_ns) for part in parts])


def _window(runs: Sequence[Sequence[Point]]) -> Window:
    changes = [difference(run[-1].cells_ns, run[0].cells_ns) for run in runs]
    return Window(
        start=[run[0] for run in runs],
        end=[run[-1] for run in runs],
        cells_ns=tuple(sum(column) for column in zip(*changes, strict=True)),
        age_ns_max=max(max(point.age_ns_max for point in run[1:]) for run in runs),
    )


def situation(broker: Broker, parts: Sequence[Part]) -> Steps[Situation]:
    """Judge one subscription, given as its partitions' parts (at least one)."""
    now_ns = max(part.now.at_ns for part in parts)
    subscriptions = [part.subscription for part in parts]
    troubled = [part for part in parts if not part.phase.is_calm]
    begin_ns = min(part.phase.begin_ns for part in troubled or parts)
    runs = [part.points(max(begin_ns, now_ns - MINUTE_NS)) for part in parts]
    seen = _window(runs)
    limits = broker.in_force.on(subscriptions[0])
    hour = [part.hour for part in parts]
    demonstrated = yield from _demonstrated_ack_per_s(hour)
    chunks = yield from _chunks(runs, max(SUB_WINDOW_NS, seen.length_ns // SUB_WINDOWS))
    evidence = Evidence(
        window_ns=seen.length_ns,
        cells_ns=seen.cells_ns,
        backlog_start=seen.total_start("backlog"),
        backlog_end=seen.total_end("backlog"),
        oldest_age_ns_max=seen.age_ns_max,
        appended=seen.gained("appended"),
        delivered=seen.gained("sent"),
        acked=seen.gained("acked"),
        unacked_start=seen.total_start("in_flight"),
        unacked_end=seen.total_end("in_flight"),
        evicted=seen.gained("evicted"),
        delivered_bytes=seen.gained("sent_bytes"),
        limits=_facts(limits, len(parts), broker.engine.throttle_counts_entries),
        sub_windows_ns=[cells_ns for _, cells_ns in chunks] if len(chunks) > 1 else (),
        demonstrated_ack_per_s=demonstrated,
    )
    judgement = judge(evidence)
    began_ns = min((_began_ns(part) for part in troubled), default=None)
    known = _Known(max(run[0].at_ns for run in hour), began_ns, now_ns)
    needed_ns = SETTLED_NS
    if judgement.verdict is Verdict.BROKER and known.is_late:
        needed_ns = STARTED_NS
    settled = seen.length_ns >= SETTLED_NS and now_ns - known.since_ns >= needed_ns
    since_ns: int | None = max(part.phase.since_ns for part in parts)
    at_least = False
    if troubled:
        since_ns, at_least = yield from _blamed_since_ns(judgement, hour, known)
    named = named_level(judgement)
    level = named
    if level is None and judgement.verdict is Verdict.CONSUMER:
        level = next((level for level in Level if limits[level].limit is not None), None)
    limit = NO_LIMIT if level is None else limits[level]
    since_s = None if since_ns is None else (now_ns - since_ns) / NS_PER_S
    facts = replace(
        _circumstances(subscriptions, seen, level, limit),
        since_s=since_s,
        since_at_least=at_least,
        silent_s=_silent_s(hour),
        batches_count_as_one=broker.engine.throttle_counts_entries,
    )
    settling = _settling(seen.total_end("backlog"), known, needed_ns)
    return Situation(
        parts=subscriptions,
        window=seen,
        judgement=judgement,
        settled=settled,
        is_calm=not troubled,
        known_since_ns=known.since_ns,
        backlog_since_ns=began_ns,
        verdict_since_ns=since_ns,
        limit_level=named,
        limit=NO_LIMIT if named is None else limits[named],
        demonstrated_ack_per_s=demonstrated,
        sentence=sentence(judgement, facts) if settled else settling,
    )


class _Known(NamedTuple):
    """How far back a subscription is known, beside when its backlog began."""

    since_ns: int
    began_ns: int | None
    now_ns: int

    @property
    def is_late(self) -> bool:
        """Whether the backlog was there when the broker came to it, within the last hour."""
        # An hour's first point is up to five minutes younger.
        is_hour = self.now_ns - self.since_ns > HOUR_NS - 5 * MINUTE_NS
        return (
            self.began_ns is not None
            and self.began_ns < self.since_ns - SUB_WINDOW_NS
            and not is_hour
        )

    def is_start(self, at_ns: int) -> bool:
        """Whether that was when the broker had just come to a backlog that was there already."""
        return self.is_late and at_ns < self.since_ns + STARTED_NS


def _settling(waiting: int, known: _Known, needed_ns: int) -> str:
    what, are = (f"{waiting:,} messages wait", "are") if waiting != 1 else ("1 message waits", "is")
    text = f"settling: {what if waiting else 'nothing waits'}, "
    if known.began_ns is not None and known.is_late:
        waited_s = (known.now_ns - known.began_ns) / NS_PER_S
        watched_s = (known.now_ns - known.since_ns) / NS_PER_S
        text += f"for at least {duration(waited_s)}, and {are} watched for {duration(watched_s)}; "
    return f"{text}a verdict needs {needed_ns // NS_PER_S} s."


def named_level(judgement: Judgement) -> Level | None:
    """Whose limit the judgement names, first or second."""
    for verdict in (judgement.verdict, judgement.second):
        if verdict in THROTTLED:
            return Level(THROTTLED.index(verdict))
    return None


def _facts(
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


def _began_ns(part: Part) -> int:
    """When a backlog began: what was there before the broker looked counts by its age."""
    return min(part.phase.since_ns, part.now.at_ns - part.now.age_ns)


def _chunks(
    runs: Sequence[Sequence[Point]], length_ns: int
) -> Steps[list[tuple[int, tuple[int, ...]]]]:
    """Parts of at least ``length_ns`` from the common start on: (start, nanoseconds per cell).
    Coarse history makes longer ones; a short rest belongs to the last."""
    start_ns = min(run[0].at_ns for run in runs)
    end_ns = max(run[-1].at_ns for run in runs)
    count = max(1, (end_ns - start_ns) // length_ns)
    sums: dict[int, tuple[int, list[int]]] = {}
    for run in runs:
        for before, after in pairwise(run):
            index = min(count - 1, (before.at_ns - start_ns) // length_ns)
            chunk = sums.setdefault(index, (before.at_ns, [0] * CELL_COUNT))
            for cell, ns in enumerate(difference(after.cells_ns, before.cells_ns)):
                chunk[1][cell] += ns
        yield
    return [(begin_ns, tuple(cells)) for _, (begin_ns, cells) in sorted(sums.items())]


def _blamed_since_ns(
    judgement: Judgement, hour: Sequence[Sequence[Point]], known: _Known
) -> Steps[tuple[int | None, bool]]:
    """Back to when the account has blamed the same without a break, but not before the backlog
    began or the blamed limit became what it is; and whether it may be longer, because no more is
    known: what went on just after a restart is no break. None when it does not do so at present."""
    since_ns = None
    is_whole = True
    named = [verdict for verdict in (judgement.verdict, judgement.second) if verdict is not None]
    end_ns = max(run[-1].at_ns for run in hour)
    for begin_ns, cells_ns in reversed((yield from _chunks(hour, SUB_WINDOW_NS))):
        shares = blame_shares(cells_ns)
        blamed = min(1.0, sum(shares[verdict] for verdict in named))
        if max(shares, key=lambda blame: shares[blame]) not in named or blamed < HALF:
            is_whole = known.is_start(begin_ns)
            if since_ns is not None and since_ns <= end_ns:
                since_ns = end_ns - round((end_ns - begin_ns) * blamed)
            break
        # The older, the coarser is what is known: what else there was came before.
        since_ns = end_ns - round((end_ns - begin_ns) * blamed)
        end_ns = begin_ns
        is_whole = blamed > NEARLY_ALL or known.is_start(begin_ns)
    began_ns = known.began_ns
    if since_ns is None or began_ns is None:
        return since_ns, False
    changed_ns = _changed_ns(judgement.verdict, hour)
    if changed_ns is not None and changed_ns > since_ns:
        return max(changed_ns, began_ns), False
    return max(since_ns, began_ns), is_whole and began_ns < since_ns - SUB_WINDOW_NS


def _changed_ns(blamed: Verdict, hour: Sequence[Sequence[Point]]) -> int | None:
    """When the blamed limiter's limit last became another one; None: not within what is known."""
    if blamed not in THROTTLED:
        return None
    level = Level(THROTTLED.index(blamed))
    changes = (
        after.at_ns
        for run in hour
        for before, after in pairwise(run)
        if level in changed_levels(before, after)
    )
    return max(changes, default=None)


def _demonstrated_ack_per_s(hour: Sequence[Sequence[Point]]) -> Steps[float | None]:
    """What the consumers have shown to be able to: summed over partitions, None if any has not."""
    total = 0.0
    for run in hour:
        demonstrated = demonstrated_ack_per_s(_intervals(run))
        if demonstrated is None:
            return None
        total += demonstrated
        yield
    return total


def _intervals(run: Sequence[Point]) -> Iterator[Interval]:
    """The parts of a history that are long enough to prove a rate."""
    first = run[0]
    for point in run[1:]:
        elapsed_ns = point.at_ns - first.at_ns
        if elapsed_ns < SUB_WINDOW_NS:
            continue
        yield Interval(
            covered_ns=elapsed_ns,
            cells_ns=difference(point.cells_ns, first.cells_ns),
            acked=point.acked - first.acked,
            evicted=point.evicted - first.evicted,
            oldest_age_ns=min(first.age_ns, point.age_ns),
        )
        first = point


def _silent_s(hour: Sequence[Sequence[Point]]) -> float:
    """For how long none of the partitions' consumers has acknowledged anything, as far as known."""
    acked_ns = [
        next(
            (
                later.at_ns
                for later, earlier in pairwise(reversed(run))
                if later.acked > earlier.acked
            ),
            run[0].at_ns,
        )
        for run in hour
    ]
    return (max(run[-1].at_ns for run in hour) - max(acked_ns)) / NS_PER_S


def _evicted_by(subscriptions: Sequence[Subscription]) -> str:
    """The quota that evicted last; of several partitions that of the one that lost most."""
    quota = max(subscriptions, key=lambda part: part.evicted_messages).evicted_by
    if quota is None:
        return ""
    scale = 1 if quota.type is QuotaType.SIZE else MS_PER_S
    return quota_text(quota.type.label, quota.limit / scale, quota.source)


def _circumstances(
    subscriptions: Sequence[Subscription],
    seen: Window,
    level: Level | None,
    limit: EffectiveLimit,
) -> Circumstances:
    consumers = [c for subscription in subscriptions for c in subscription.consumers]
    lonely = sum(not subscription.consumers for subscription in subscriptions)
    waiting = 0
    if level is Level.TOPIC:
        # Each partition has a limit of its own.
        waiting = max(subscription.topic.gate.demand for subscription in subscriptions)
    elif level is Level.BROKER:
        waiting = subscriptions[0].topic.engine.gate.demand
    sent = seen.gained("sent")
    return Circumstances(
        backlog=seen.total_end("backlog"),
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
        partitions=len(subscriptions),
        partitions_without_consumer=lonely if consumers else 0,
    )
