"""The base of the gate's three levels: up to two budgets, one timer, figures."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from headgate.flow.limits.budget import Budget, BudgetStatistics
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit

LARGEST_WAITERS = 5


@dataclass(frozen=True, slots=True)
class GateStatistics:
    """The figures of one node of the gate.

    ``waiters`` wait for it now, ``waiters_max`` is the largest number so far, and ``waiting_ns`` is
    the time in which at least one waited. ``largest_waiters`` are the owners that have wanted to
    send for longest, each with its waiting time in nanoseconds.
    """

    budgets: tuple[BudgetStatistics, ...]
    waiters: int
    waiters_max: int
    waiting_ns: int
    largest_waiters: tuple[tuple[object, int], ...]


NO_STATISTICS: Final = GateStatistics((), 0, 0, 0, ())
"""The figures of a limit that was never set."""


class GateNode:
    """One node of the gate: up to two budgets and one timer."""

    __slots__ = (
        "_budget_by_dimension",
        "_level",
        "alarm",
        "budgets",
        "charged_ns",
        "owner",
        "waiters_max",
    )

    def __init__(self, level: Level, owner: object) -> None:
        self._level = level
        self._budget_by_dimension: list[Budget | None] = [None, None]
        self.budgets: tuple[Budget, ...] = ()
        self.alarm = 0
        """The number of the timer that is set; 0 if none is."""
        self.owner = owner
        self.waiters_max = 0
        self.charged_ns = 0
        """When something was last charged; only publish limits maintain it."""

    def _install(self, limit: RateLimit | None, now_ns: int) -> bool:
        """Put ``limit`` in force; returns whether the set of budgets changed.

        The budget of a removed limit is kept, so that its window counts if the limit is set again.
        It is a copy: nothing is charged to it until then.
        """
        active = []
        for dimension in Dimension:
            amount = None if limit is None else limit.amount(dimension)
            budget = self._budget_by_dimension[dimension]
            if limit is None or amount is None:
                if budget is not None:
                    budget.end_waiting(now_ns)
                    if budget in self.budgets:
                        # Waiters that keep to it until their path is refreshed charge the old one.
                        self._budget_by_dimension[dimension] = deepcopy(budget)
                continue
            if budget is None:
                budget = Budget(amount, limit.period_ns, self._level, dimension, now_ns)
                self._budget_by_dimension[dimension] = budget
            else:
                budget.change(amount, limit.period_ns, now_ns)
            active.append(budget)
        changed = len(active) != len(self.budgets) or any(
            a is not b for a, b in zip(active, self.budgets, strict=True)
        )
        self.budgets = tuple(active)
        return changed

    def forgive_raised(self, limit: RateLimit | None, now_ns: int) -> None:
        """Forgive the debt in each dimension that ``limit``, the next one, raises or removes.

        A raised or removed publish limit releases at once (law 3.3), and a limit that is set later
        finds no old debt.
        """
        for budget in self.budgets:
            amount = None if limit is None else limit.amount(budget.dimension)
            if amount is None or amount > budget.limit:
                budget.forgive_debt(now_ns, self.charged_ns)

    def _restart_shares(self) -> None:
        """Count shares as parts of the present limits; no waiter is left."""
        for budget in self._budget_by_dimension:
            if budget is not None:
                budget.share_limit = budget.limit

    def _shares_drifted(self) -> bool:
        """Whether the ratio of the two limits more than doubled or halved since shares began."""
        if len(self.budgets) < len(Dimension):
            return False
        messages, size = self.budgets
        now, before = messages.limit * size.share_limit, size.limit * messages.share_limit
        return now > 2 * before or before > 2 * now

    def is_clear(self, now_ns: int) -> bool:
        """Whether no past delivery counts any more in any budget, present or kept."""
        return all(
            budget is None or budget.is_clear(now_ns) for budget in self._budget_by_dimension
        )

    def _refuse(self, now_ns: int) -> int:
        """The instant at which its own budgets allow the next entry; ``now_ns`` if they do now.

        A budget that refuses begins to count waiting time.
        """
        latest_ns = now_ns
        for budget in self.budgets:
            at_ns = budget.release_ns(now_ns)
            if at_ns > now_ns:
                budget.refused_until_ns = at_ns
                if not budget.paced:
                    budget.begin_waiting(now_ns, at_ns)
                if at_ns > latest_ns:
                    latest_ns = at_ns
        return latest_ns

    def _end_waiting(self, now_ns: int) -> None:
        for budget in self.budgets:
            budget.end_waiting(now_ns)

    def _gate_statistics(
        self, now_ns: int, waiters: int, waits: Iterable[tuple[object, int]]
    ) -> GateStatistics:
        """The figures; ``waits`` has owner and waiting time of each waiter at this node."""
        figures = tuple(budget.statistics(now_ns) for budget in self.budgets)
        return GateStatistics(
            budgets=figures,
            waiters=waiters if any(budget.paced for budget in self.budgets) else 0,
            waiters_max=self.waiters_max,
            waiting_ns=max((figure.waiting_ns for figure in figures), default=0),
            largest_waiters=tuple(nlargest(LARGEST_WAITERS, waits, key=lambda wait: wait[1])),
        )
