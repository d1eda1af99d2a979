"""The order in which the views of namespaces are worked on: tenants take turns.

A client may watch namespaces that do not exist, so their number has no bound but the memory of
clients: no look goes through all of them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Final

from headgate.base.fair_queue import FairSet
from headgate.broker.watched_names import WatchedNamespace

RESTED_MAX: Final = 256
"""Namespaces whose rest is over that one look finds."""


class NamespaceTurns:
    """Namespaces that wait. Tenants take turns, and in each its namespaces."""

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        self._turns: FairSet[WatchedNamespace] = FairSet()

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, watched: WatchedNamespace) -> None:
        """Add one behind the others of its tenant, unless it waits already."""
        self._turns.add(watched.name.tenant, watched)

    def discard(self, watched: WatchedNamespace) -> None:
        """It needs no turn any more."""
        self._turns.discard(watched.name.tenant, watched)

    def take(self) -> WatchedNamespace | None:
        """Remove and return the one whose turn it is; None if none waits."""
        return self._turns.take() if self._turns else None


class DueNamespaces:
    """Namespaces with views that are due. Those that rest have no turn until their rest is over,
    which does not change while they wait here."""

    __slots__ = ("_count", "_members", "_rested", "_resting")

    def __init__(self) -> None:
        self._members: set[WatchedNamespace] = set()
        self._rested = NamespaceTurns()
        self._resting: list[tuple[float, int, WatchedNamespace]] = []
        """The one whose rest is over next is the first. Those that wait no more go when they are
        the first, so after a rest at the latest."""
        self._count = count()

    def __bool__(self) -> bool:
        return bool(self._members)

    def add(self, watched: WatchedNamespace, now_s: float) -> None:
        """Add one behind the others, unless it waits already."""
        if watched in self._members:
            return
        self._members.add(watched)
        if watched.rests_until_s <= now_s:
            self._rested.add(watched)
        else:
            heappush(self._resting, (watched.rests_until_s, next(self._count), watched))

    def discard(self, watched: WatchedNamespace) -> bool:
        """It waits no more; returns whether it did."""
        if watched not in self._members:
            return False
        self._members.remove(watched)
        self._rested.discard(watched)
        return True

    def take(self, now_s: float) -> WatchedNamespace | None:
        """Remove and return the one whose turn it is; None if all rest."""
        self._wake(now_s)
        watched = self._rested.take()
        if watched is not None:
            self._members.remove(watched)
        return watched

    def are_any_rested(self, now_s: float) -> bool:
        """Whether :meth:`take` would return one."""
        self._wake(now_s)
        return bool(self._rested)

    @property
    def first_rests_until_s(self) -> float:
        """When the first rest is over, of some that rest."""
        return self._resting[0][0]

    def _wake(self, now_s: float) -> None:
        resting = self._resting
        for _ in range(RESTED_MAX):
            if not resting:
                return
            until_s, _, watched = resting[0]
            # One that waits no more may have come again, with another rest.
            is_meant = watched in self._members and until_s == watched.rests_until_s
            if is_meant and until_s > now_s:
                return
            heappop(resting)
            if is_meant:
                self._rested.add(watched)
