"""The timers of a gate, of which tenants take turns.

A tenant may have tens of thousands of subscriptions and topics with limits of their own, whose
timers are due faster than the broker can serve them. In one line, ordered by time, a waiter of
another tenant would stand behind all of them at each slice of its limit, and a limit does not make
up for the slices that it lost.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

TIMERS_MIN: Final = 256
"""Timers that are kept in any case, beside two for each node that waits for one."""


class Timed(Protocol):
    """A node with a timer."""

    alarm: int
    """The number of the timer that is set; 0 if none is."""

    @property
    def tenant(self) -> str:
        """Whose turns it takes."""


N = TypeVar("N", bound=Timed)


class FairTimers(Generic[N]):
    """Timers of nodes, the earliest of each tenant first. A node that sets another timer, or needs
    none any more, leaves one behind that is dropped later."""

    __slots__ = ("_by_tenant", "_count", "_count_max", "_due", "_heads", "_now_ns", "_numbers")

    def __init__(self) -> None:
        self._by_tenant: dict[str, list[tuple[int, int, N]]] = {}
        """``(due at, number of the timer, node)`` of each tenant that has some."""
        self._due: OrderedDict[str, None] = OrderedDict()
        """The tenants whose first timer was due when they were last looked at, in turn."""
        self._heads: list[tuple[int, str]] = []
        """When the first timer of each other tenant is due. One that has gone leaves its entry."""
        self._count = 0
        self._count_max = TIMERS_MIN
        """At so many timers, or entries in ``_heads``, those that nobody needs are dropped."""
        self._now_ns = 0
        self._numbers = count(1)

    def __len__(self) -> int:
        return self._count

    def arm(self, node: N, at_ns: int) -> None:
        """Set the timer of ``node``, which replaces an earlier one."""
        node.alarm = alarm = next(self._numbers)
        tenant = node.tenant
        timers = self._by_tenant.get(tenant)
        if timers is None:
            timers = self._by_tenant[tenant] = []
        heappush(timers, (at_ns, alarm, node))
        self._count += 1
        if timers[0][1] == alarm and tenant not in self._due:
            heappush(self._heads, (at_ns, tenant))
        if self._count >= self._count_max or len(self._heads) >= self._count_max:
            # A period may be years long, and waiters come and go: what they left would stay.
            self._drop_unneeded()

    def pop_due(self, now_ns: int) -> N | None:
        """The node whose timer is due and whose tenant has its turn. It has no timer any more. None
        if no timer is due."""
        self._now_ns = now_ns
        heads, due = self._heads, self._due
        while heads and heads[0][0] <= now_ns:
            _, tenant = heappop(heads)
            if tenant in self._by_tenant:
                due.setdefault(tenant)
        while due:
            tenant = next(iter(due))
            if self._is_due(tenant):
                _, _, node = heappop(self._by_tenant[tenant])
                self._count -= 1
                node.alarm = 0
                due.move_to_end(tenant)
                return node
        return None

    def first_ns(self) -> int | None:
        """When :meth:`pop_due` has something next; None for never."""
        heads, due = self._heads, self._due
        while due:
            tenant = next(iter(due))
            if self._is_due(tenant):
                return self._by_tenant[tenant][0][0]
        while heads:
            at_ns, tenant = heads[0]
            first_ns = self._first_of(tenant)
            if first_ns == at_ns:
                return at_ns
            heappop(heads)
            if first_ns is not None and first_ns > at_ns:
                heappush(heads, (first_ns, tenant))
        return None

    def _is_due(self, tenant: str) -> bool:
        """Whether the first timer of a tenant in ``_due`` is still due; else it leaves these."""
        first_ns = self._first_of(tenant)
        if first_ns is not None and first_ns <= self._now_ns:
            return True
        del self._due[tenant]
        if first_ns is not None:
            heappush(self._heads, (first_ns, tenant))
        return False

    def _first_of(self, tenant: str) -> int | None:
        """When the first timer of a tenant is due that a node needs; None if there is none."""
        timers = self._by_tenant.get(tenant)
        if timers is None:
            return None
        while timers and timers[0][2].alarm != timers[0][1]:
            heappop(timers)
            self._count -= 1
        if timers:
            return timers[0][0]
        del self._by_tenant[tenant]
        return None

    def _drop_unneeded(self) -> None:
        self._count = 0
        for tenant, timers in list(self._by_tenant.items()):
            timers[:] = [timer for timer in timers if timer[2].alarm == timer[1]]
            heapify(timers)
            self._count += len(timers)
            if not timers:
                del self._by_tenant[tenant]
                self._due.pop(tenant, None)
        self._heads = [
            (t[0][0], name) for name, t in self._by_tenant.items() if name not in self._due
        ]
        heapify(self._heads)
        self._count_max = max(2 * self._count, TIMERS_MIN)
