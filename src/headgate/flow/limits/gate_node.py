"""What the three levels of the gate have in common: up to two budgets, one timer, figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING

from headgate.flow.limits.budget import Budget, BudgetStatistics
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit

if TYPE_CHECKING:
    from headgate.flow.limits.waiter_gate import WaiterGate

LARGEST_WAITERS = 5


@dataclass(frozen=True, slots=True)
class GateStatistics:
    """One level of one subject.

    ``waiters`` subscriptions wait for it now, ``waiters_max`` at most since it was made, for
    ``waiting_ns`` in all somebody did. ``largest_waiters``: owners of the subscriptions that want
    to send for longest, with nanoseconds since each began.
    """

    budgets: tuple[BudgetStatistics, ...]
    waiters: int
    waiters_max: int
    waiting_ns: int
    largest_waiters: tuple[tuple[object, int], ...]


class GateNode:
    """What the three levels have in common: up to two budgets and one timer."""

    __slots__ = ("_kept", "_level", "alarm", "budgets", "charged_ns", "owner", "waiters_max")

    def __init__(self, level: Level, owner: object) -> None:
        self._level = level
        self._kept: list[Budget | None] = [None, None]
        self.budgets: tuple[Budget, ...] = ()
        self.alarm = 0
        """Number of the timer that is set for it; 0 when none is."""
        self.owner = owner
        self.waiters_max = 0
        self.charged_ns = 0
        """Of publish limits: when anything was last charged."""

    def wake(self, now_ns: int) -> WaiterGate | None:  # noqa: ARG002
        """Its timer went off. Who may go now, unless it has to take its turn among others."""
        return None

    def _install(self, limit: RateLimit | None, now_ns: int) -> bool:
        """Put ``limit`` in force; whether the set of budgets changed. A budget whose limit is
        removed is kept, so that the same limit set again finds its window as it was."""
        active = []
        for dimension in Dimension:
            amount = None if limit is None else limit.amount(dimension)
            budget = self._kept[dimension]
            if limit is None or amount is None:
                if budget is not None:
                    budget.end_waiting(now_ns)
                continue
            if budget is None:
                budget = Budget(amount, limit.period_ns, self._level, dimension, now_ns)
                self._kept[dimension] = budget
            else:
                budget.change(amount, limit.period_ns, now_ns)
            active.append(budget)
        changed = len(active) != len(self.budgets) or any(
            a is not b for a, b in zip(active, self.budgets, strict=True)
        )
        self.budgets = tuple(active)
        return changed

    def forgive_raised(self, limit: RateLimit | None, now_ns: int) -> None:
        """Of dimensions in which ``limit``, which is put in force next, is above the present one or
        none, forgive debts: a raise or a removal of a publish limit releases at once (law 3.3), and
        who sets another one afterwards does not find the old debt."""
        for budget in self.budgets:
            amount = None if limit is None else limit.amount(budget.dimension)
            if amount is None or amount > budget.limit:
                budget.forgive_debt(now_ns, self.charged_ns)

    def _restart_shares(self) -> None:
        """Nobody waits: shares begin anew, and are of the limits as they are now."""
        for budget in self._kept:
            if budget is not None:
                budget.share_limit = budget.limit

    def _shares_drifted(self) -> bool:
        """Whether messages and bytes weigh against each other more than twice as they did when
        shares began."""
        if len(self.budgets) < len(Dimension):
            return False
        messages, size = self.budgets
        now, before = messages.limit * size.share_limit, size.limit * messages.share_limit
        return now > 2 * before or before > 2 * now

    def is_clear(self, now_ns: int) -> bool:
        """Whether nothing counts any more of what was delivered under its limits, past ones
        included."""
        return all(budget is None or budget.is_clear(now_ns) for budget in self._kept)

    def _refuse(self, now_ns: int) -> int:
        """The instant at which its own budgets let the next entry go; ``now_ns`` if now. Those
        that refuse know from here on that something waits for them."""
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
        """``waits``: owner and how long it has wanted, of everybody who waits here."""
        figures = tuple(budget.statistics(now_ns) for budget in self.budgets)
        return GateStatistics(
            budgets=figures,
            waiters=waiters if any(budget.paced for budget in self.budgets) else 0,
            waiters_max=self.waiters_max,
            waiting_ns=max((figure.waiting_ns for figure in figures), default=0),
            largest_waiters=tuple(nlargest(LARGEST_WAITERS, waits, key=lambda wait: wait[1])),
        )
