"""Since when the account has blamed a backlog's present cause."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from headgate.explain.points import Point, changed_levels
from headgate.explain.window import Past
from headgate.flow.account.account import CELL_COUNT, difference
from headgate.flow.account.verdict import THROTTLED, Judgement, Verdict, blame_shares
from headgate.flow.limits.rate_limit import Level

RESTART_GRACE_NS = 10 * NS_PER_S
"""How long clients reconnect, and data is read into memory, after the broker finds an older
backlog, as after a restart: this time says nothing about the cause of the backlog."""

BLAMED_SHARE_MIN = 0.5
"""Least share of a sub-window's blame with which the cause goes on."""

ONLY_SHARE_MIN = 0.98
"""Least share of a sub-window's blame with which the cause is the only one."""

SUB_WINDOW_NS = 5 * NS_PER_S // 2
"""Least length of a sub-window: clients return many permits at once, seconds apart."""


class KnownTime(NamedTuple):
    """Since when a subscription is known, and since when it has a backlog."""

    since_ns: int
    began_ns: int | None
    now_ns: int

    @property
    def is_backlog_older(self) -> bool:
        """Whether the backlog is older than what is known, and that is less than an hour."""
        # The first point of a full hour of history is up to five minutes younger.
        is_history_full = self.now_ns - self.since_ns > NS_PER_HOUR - 5 * NS_PER_MINUTE
        return (
            self.began_ns is not None
            and self.began_ns < self.since_ns - SUB_WINDOW_NS
            and not is_history_full
        )

    def is_just_found(self, at_ns: int) -> bool:
        """Whether the broker had only just found an older backlog at an instant."""
        return self.is_backlog_older and at_ns < self.since_ns + RESTART_GRACE_NS


def backlog_began_ns(part: Past) -> int:
    """When a backlog began. One that is older than what is known counts by the age that its oldest
    message had at first: the oldest of now came later, if the backlog drains."""
    began_ns = min(part.phase.since_ns, part.now.at_ns - part.now.age_ns)
    first = part.hour[0]
    if part.phase.since_ns > first.at_ns:
        return began_ns
    return min(began_ns, first.at_ns - first.age_ns)


def sub_windows(
    series: Sequence[Sequence[Point]], length_ns: int
) -> Sliced[list[tuple[int, tuple[int, ...]]]]:
    """Cut a history into sub-windows of at least ``length_ns``: the start of each, and its time in
    each state.

    Where the history is coarse they are longer; a short rest belongs to the last.
    """
    start_ns = min(points[0].at_ns for points in series)
    end_ns = max(points[-1].at_ns for points in series)
    count = max(1, (end_ns - start_ns) // length_ns)
    sums: dict[int, tuple[int, list[int]]] = {}
    for points in series:
        for before, after in pairwise(points):
            index = min(count - 1, (before.at_ns - start_ns) // length_ns)
            sub_window = sums.setdefault(index, (before.at_ns, [0] * CELL_COUNT))
            for cell, ns in enumerate(difference(after.cells_ns, before.cells_ns)):
                sub_window[1][cell] += ns
        yield
    return [(begin_ns, tuple(cells)) for _, (begin_ns, cells) in sorted(sums.items())]


def blamed_since_ns(
    judgement: Judgement, hour: Sequence[Sequence[Point]], known: KnownTime
) -> Sliced[tuple[int | None, bool]]:
    """The instant since when the account has blamed the same without a break, and whether it may be
    earlier, because no more is known.

    It is neither before the backlog began nor before the blamed limit became what it is. The time
    just after a restart counts as no break. None if the account does not blame the same at present.
    """
    since_ns = None
    may_be_earlier = True
    named = [verdict for verdict in (judgement.verdict, judgement.second) if verdict is not None]
    end_ns = max(points[-1].at_ns for points in hour)
    for begin_ns, cells_ns in reversed((yield from sub_windows(hour, SUB_WINDOW_NS))):
        shares = blame_shares(cells_ns)
        blamed = min(1.0, sum(shares[verdict] for verdict in named))
        if max(shares, key=lambda blame: shares[blame]) not in named or blamed < BLAMED_SHARE_MIN:
            may_be_earlier = known.is_just_found(begin_ns)
            if since_ns is not None and since_ns <= end_ns:
                since_ns = end_ns - round((end_ns - begin_ns) * blamed)
            break
        # Old sub-windows are long: whatever else the account blamed in this one came first.
        since_ns = end_ns - round((end_ns - begin_ns) * blamed)
        end_ns = begin_ns
        may_be_earlier = blamed > ONLY_SHARE_MIN or known.is_just_found(begin_ns)
    began_ns = known.began_ns
    if since_ns is None or began_ns is None:
        return since_ns, False
    changed_ns = _changed_ns(judgement.verdict, hour)
    if changed_ns is not None and changed_ns > since_ns:
        return max(changed_ns, began_ns), False
    may_be_earlier = may_be_earlier and began_ns < since_ns - SUB_WINDOW_NS
    return max(since_ns, began_ns), may_be_earlier


def _changed_ns(blamed: Verdict, hour: Sequence[Sequence[Point]]) -> int | None:
    """When the limit of the blamed limiter last changed; None if it did not in the known time."""
    if blamed not in THROTTLED:
        return None
    level = Level(THROTTLED.index(blamed))
    changes = (
        after.at_ns
        for points in hour
        for before, after in pairwise(points)
        if level in changed_levels(before, after)
    )
    return max(changes, default=None)
