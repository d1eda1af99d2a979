"""The last hour of one subscription, minute by minute: what waited, and who was to blame.

A page draws it as a strip. Each minute is judged by itself, by the law of the account, so that a
minute in which messages were only in flight blames nobody.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from msgspec import Struct

from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.explain.diagnosis import evidence_of
from headgate.explain.points import Point
from headgate.explain.window import Past, window_over
from headgate.flow.account.verdict import judge

MINUTES: Final = 60
"""Length of a timeline, which ends now."""

COVERED_MIN_NS: Final = NS_PER_S
"""A minute of which less is known has no verdict."""

PARTS_PER_YIELD: Final = 4
"""Partitions whose points of a minute are looked up without a pause: a topic may have thousands."""

_AMOUNTS: Final = (
    "appended", "done", "sent", "sent_bytes", "acked", "skipped", "rewound", "expired", "evicted",
    "redelivered", "in_flight", "delayed", "age_ns",
)  # fmt: skip


class Timeline(Struct, frozen=True, kw_only=True, rename="camel"):
    """A subscription's last hour; the newest minute is the last."""

    step_s: float
    """Length of a step: a minute. The last step ends now."""
    verdicts: list[str | None]
    """Of each minute; null where nothing is known."""
    backlog: list[int | None]
    """Messages not acknowledged at the end of each minute."""
    oldest_age_s: list[float | None]
    """The largest age of the oldest message in each minute."""


def timeline(parts: Sequence[Past], *, is_inferred: bool = False) -> Sliced[Timeline]:
    """The timeline of one subscription, given as its partitions' parts (at least one)."""
    now_ns = max(part.now.at_ns for part in parts)
    verdicts: list[str | None] = []
    backlog: list[int | None] = []
    ages_s: list[float | None] = []
    for minute in range(MINUTES, 0, -1):
        begin_ns = now_ns - minute * NS_PER_MINUTE
        known = []
        for number, part in enumerate(parts):
            if number % PARTS_PER_YIELD == 0:
                yield
            if series := _between(part.hour, begin_ns, begin_ns + NS_PER_MINUTE):
                known.append(series)
        if not known:
            verdicts.append(None)
            backlog.append(None)
            ages_s.append(None)
            continue
        seen = window_over(known)
        evidence = replace(evidence_of(seen), is_inferred=is_inferred)
        verdicts.append(judge(evidence).verdict.value)
        backlog.append(seen.total_end("backlog"))
        ages_s.append(seen.age_ns_max / NS_PER_S)
    return Timeline(
        step_s=NS_PER_MINUTE / NS_PER_S, verdicts=verdicts, backlog=backlog, oldest_age_s=ages_s
    )


def _between(points: Sequence[Point], begin_ns: int, end_ns: int) -> list[Point]:
    """The points of a minute, with its two ends; empty if less than a second of it is known."""
    begin_ns, end_ns = max(begin_ns, points[0].at_ns), min(end_ns, points[-1].at_ns)
    if end_ns - begin_ns < COVERED_MIN_NS:
        return []
    first = bisect_right(points, begin_ns, key=_at_ns)
    stop = bisect_right(points, end_ns, key=_at_ns)
    inside = points[first:stop]
    if inside and inside[-1].at_ns == end_ns:
        inside = inside[:-1]
    return [_at(points, begin_ns), *inside, _at(points, end_ns)]


def _at_ns(point: Point) -> int:
    return point.at_ns


def _at(points: Sequence[Point], at_ns: int) -> Point:
    """The point at an instant between the first and the last, if everything went evenly between the
    two that are known."""
    after = bisect_right(points, at_ns, key=_at_ns)
    if after == len(points):
        return points[-1]
    low, high = points[after - 1], points[after]
    part = (at_ns - low.at_ns) / (high.at_ns - low.at_ns)

    def even(begin: int, end: int) -> int:
        return begin + round((end - begin) * part)

    amounts: dict[str, Any] = {
        name: even(getattr(low, name), getattr(high, name)) for name in _AMOUNTS
    }
    return replace(
        low,
        at_ns=at_ns,
        cells_ns=tuple(even(a, b) for a, b in zip(low.cells_ns, high.cells_ns, strict=True)),
        age_ns_max=max(amounts["age_ns"], high.age_ns_max if part else low.age_ns_max),
        **amounts,
    )
