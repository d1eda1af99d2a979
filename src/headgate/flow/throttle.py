"""Counting throttled events as PIP-406's final form means them (law 2).

An event is a period of a limiter in which it delayed something: at most one per limiter,
dimension and period, at least one if anything was delayed, none without delay. So events are
counted from waits, not from decisions: the pauses of the pace inside a period add nothing, and a
wait of ten periods is ten events. Counters belong to a subscription.
"""

from __future__ import annotations

from headgate.flow.budget import Budget


class ThrottledEvents:
    """The six counters of a subscription, and up to when each limiter's periods are counted."""

    __slots__ = ("_counted_until_ns", "counts")

    def __init__(self) -> None:
        self.counts = [[0, 0], [0, 0], [0, 0]]
        """By level, then dimension."""
        self._counted_until_ns: list[int | None] = [None] * 6

    def delayed(self, budget: Budget, start_ns: int, end_ns: int) -> None:
        """``budget`` delayed something from ``start_ns`` to ``end_ns``. May be told in pieces, in
        the order of time; overlapping pieces count once."""
        index = 2 * budget.level + budget.dimension
        counted_ns = self._counted_until_ns[index]
        if counted_ns is not None and counted_ns > start_ns:
            start_ns = counted_ns
        if end_ns > start_ns:
            periods = -((start_ns - end_ns) // budget.period_ns)
            self._counted_until_ns[index] = start_ns + periods * budget.period_ns
            self.counts[budget.level][budget.dimension] += periods
