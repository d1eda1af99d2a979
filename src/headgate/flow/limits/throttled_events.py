"""Throttled events and amounts of a subscription, the two forms of PIP-406 (law 2).

The final form counts events. An event is a period of a limiter in which it delayed something: at
most one for each limiter, dimension and period. Events are counted from waits, not from decisions:
a wait of ten periods is ten events, and the pauses of the pace inside a period add none.

The first form counts amounts: what backlog and permits allowed and a limiter held back, once for
each limiter and delivery attempt, however often the limiter is asked again.
"""

from __future__ import annotations

from headgate.base.units import safe_sum
from headgate.flow.limits.budget import Budget
from headgate.flow.limits.rate_limit import Dimension, Level


class ThrottledEvents:
    """The six event counters of a subscription."""

    __slots__ = ("_counted_until_ns", "counts")

    def __init__(self) -> None:
        self.counts = [[0, 0], [0, 0], [0, 0]]
        """By level, then dimension."""
        self._counted_until_ns: list[int | None] = [None] * 6

    def count_delay(self, budget: Budget, start_ns: int, end_ns: int) -> None:
        """Count a delay by ``budget`` from ``start_ns`` to ``end_ns``. One delay may be counted in
        several pieces, in the order of time; overlapping pieces count once."""
        index = 2 * budget.level + budget.dimension
        counted_ns = self._counted_until_ns[index]
        if counted_ns is not None and counted_ns > start_ns:
            start_ns = counted_ns
        if end_ns > start_ns:
            periods = -((start_ns - end_ns) // budget.period_ns)
            self._counted_until_ns[index] = start_ns + periods * budget.period_ns
            self.counts[budget.level][budget.dimension] += periods


class ThrottledAmounts:
    """The six amounts of a subscription: messages or bytes held back, by level, then dimension.

    The deliveries of a subscription form one line: everything ever sent, then what waits. A limiter
    holds back the part between what was sent and what could have gone. It counts the part beyond
    its high-water mark in that line. A redelivery is a new place in the line.
    """

    __slots__ = ("_counted_to", "counts")

    def __init__(self) -> None:
        self.counts = [[0, 0], [0, 0], [0, 0]]
        self._counted_to = [0] * 6

    def count(
        self, level: Level, dimension: Dimension, *, sent: int, allowed: int, waiting: int
    ) -> None:
        """Count what a limiter that refuses now holds back.

        ``sent`` is everything sent so far and ``waiting`` what waits; the first ``allowed`` of it
        could go without limits.
        """
        index = 2 * level + dimension
        # What was acknowledged or skipped before delivery has left the line; others move up.
        counted_to = max(sent, min(self._counted_to[index], sent + waiting))
        end = sent + min(allowed, waiting)
        if end > counted_to:
            counts = self.counts[level]
            counts[dimension] = safe_sum(counts[dimension], end - counted_to)
            counted_to = end
        self._counted_to[index] = counted_to
