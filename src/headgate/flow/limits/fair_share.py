"""Max-min fair turns: the waiter with the smallest share of a limit is next (law 1.4).

A waiter's share is the part of the limit it was granted since it began to wait, as a fixed-point
integer, so that equal waiters with equal entries stay exactly equal. The smallest goes next and
ties go first come, first served. Nobody has credit for time in which it did not wait: a newcomer,
and a waiter that another budget held meanwhile, starts at the present minimum (but not below what
it already had while the same waiting goes on). Shares are of the limit as it was when that waiting
began: where it moves meanwhile, what one was granted before is not worth more or less than after.
Where limits come and go, or messages and bytes no longer stand to each other as they did, everybody
begins anew with the same share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

from headgate.flow.limits.budget import Budget

SHARE_UNIT_BITS = 40
"""One whole limit is 2^40 of share: limits up to 10^12 are told apart to the single message, and
above that equal shares simply take turns."""
_STALE_ENTRIES_MAX = 32


def share_of(budgets: Sequence[Budget], messages: int, size_bytes: int) -> int:
    """What an entry takes of these limits: the larger of messages/limit and bytes/limit."""
    share = 0
    amounts = (messages, size_bytes)
    for budget in budgets:
        part = (amounts[budget.dimension] << SHARE_UNIT_BITS) // budget.share_limit
        if part > share:
            share = part
    return share


class Queued(Protocol):
    """A waiter as the queue sees it: an entry counts while the tickets agree."""

    ticket: int
    """The number of its present place; 0 when it is in no queue."""


WaiterT = TypeVar("WaiterT", bound=Queued)


def _place(entry: tuple[int, int, object]) -> tuple[int, int]:
    return entry[0], entry[1]


class FairQueue(Generic[WaiterT]):
    """Waiters by (share, order of arrival). Leaving is lazy: the waiter drops its ticket and
    calls :meth:`forget`; O(log n) for all else."""

    __slots__ = ("_floor", "_heap", "waiting")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, WaiterT]] = []
        self._floor = 0
        self.waiting = 0
        """How many are in the queue now."""

    def push(self, share: int, ticket: int, waiter: WaiterT) -> None:
        """Put ``waiter``, whose ticket is ``ticket``, in its place."""
        heappush(self._heap, (share, ticket, waiter))
        self.waiting += 1

    def minimum(self) -> int:
        """The share a newcomer starts with: the smallest present one, or that of whoever went
        last when nobody is left in the queue."""
        first = self._first() if self.waiting else None
        return self._floor if first is None else first[0]

    def precedes(self, share: int) -> bool:
        """Whether somebody in the queue goes before one with ``share`` who arrives now."""
        first = self._first()
        return first is not None and first[0] <= share

    def pop(self) -> WaiterT | None:
        """Take out whoever goes next."""
        heap = self._heap
        while heap:
            share, ticket, waiter = heappop(heap)
            if waiter.ticket == ticket:
                self.waiting -= 1
                self._floor = share
                return waiter
        return None

    def served(self, share: int) -> None:
        """Someone was served and now has ``share``: with nobody queued that is the minimum."""
        if not self.waiting and share > self._floor:
            self._floor = share

    def forget(self) -> None:
        """One waiter has dropped its ticket."""
        self.waiting -= 1
        if len(self._heap) > 2 * self.waiting + _STALE_ENTRIES_MAX:
            self._heap = [entry for entry in self._heap if entry[2].ticket == entry[1]]
            heapify(self._heap)

    def reset(self) -> None:
        """Nobody waits any more: shares begin anew."""
        self._floor = 0
        self._heap.clear()

    def restart(self, tickets: Iterator[int]) -> None:
        """Give everybody the same share, 0, in the present order; ``tickets`` are new places."""
        waiters = [e[2] for e in sorted(self._heap, key=_place) if e[2].ticket == e[1]]
        self._floor = 0
        self._heap = []
        for waiter in waiters:
            waiter.ticket = next(tickets)
            self._heap.append((0, waiter.ticket, waiter))

    def waiters(self) -> list[WaiterT]:
        """All present waiters, in no order."""
        return [entry[2] for entry in self._heap if entry[2].ticket == entry[1]]

    def _first(self) -> tuple[int, int, WaiterT] | None:
        heap = self._heap
        while heap:
            first = heap[0]
            if first[2].ticket == first[1]:
                return first
            heappop(heap)
        return None
