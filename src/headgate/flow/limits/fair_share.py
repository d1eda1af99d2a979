"""Max-min fair turns: the waiter with the smallest share of a limit is next (law 1.4).

A waiter's share is the part of the limit that it was granted since it began to wait. It is a
fixed-point integer, so that equal waiters with equal entries stay exactly equal. The smallest share
goes next; ties go first come, first served.

A waiter gets no credit for time in which it did not wait: a newcomer, and a waiter that another
budget held meanwhile, starts at the present minimum, but not below its own share in the same wait.

Shares are parts of the limit as it was when the wait began, so a later change of the limit does not
revalue what was granted before. When a limit is set or removed, or when the ratio of messages to
bytes changes, all shares restart equal. A restart visits no waiter: it sets a new base, which is at
least every share that was queued before, and a share from before it counts as the base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

from headgate.flow.limits.budget import Budget

SHARE_UNIT_BITS = 40
"""One whole limit is 2^40 of share. Up to a limit of 10^12 each message makes a difference; beyond
it, equal shares take turns."""
_STALE_ENTRIES_MAX = 32


def share_of(budgets: Sequence[Budget], messages: int, size_bytes: int) -> int:
    """The share that an entry takes: the larger of messages/limit and bytes/limit."""
    share = 0
    amounts = (messages, size_bytes)
    for budget in budgets:
        part = (amounts[budget.dimension] << SHARE_UNIT_BITS) // budget.share_limit
        if part > share:
            share = part
    return share


class Queued(Protocol):
    """A waiter in the queue. A heap entry is valid while it has the waiter's ticket."""

    ticket: int
    """The number of its present heap entry; 0 while it is in no queue."""


WaiterT = TypeVar("WaiterT", bound=Queued)


class FairQueue(Generic[WaiterT]):
    """Waiters by share, then by order of arrival.

    Leaving is lazy: the waiter clears its ticket and calls :meth:`forget`. Everything else is
    O(log n).
    """

    __slots__ = ("_floor", "_heap", "_highest", "base", "waiting")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, WaiterT]] = []
        self._floor = 0
        self._highest = 0
        """The largest share that was ever queued."""
        self.base = 0
        """The share of everybody at the last restart."""
        self.waiting = 0
        """How many are in the queue now."""

    def push(self, share: int, ticket: int, waiter: WaiterT) -> None:
        """Queue ``waiter``, whose ticket is ``ticket``."""
        if share > self._highest:
            self._highest = share
        heappush(self._heap, (share, ticket, waiter))
        self.waiting += 1

    def minimum(self) -> int:
        """The share of a newcomer: the smallest in the queue, or, in an empty queue, that of the
        waiter that was served last."""
        first = self._first() if self.waiting else None
        share = self._floor if first is None else first[0]
        return share if share > self.base else self.base

    def precedes(self, share: int) -> bool:
        """Whether a queued waiter is served before one that arrives now with ``share``."""
        first = self._first()
        return first is not None and first[0] <= share

    def pop(self) -> WaiterT | None:
        """Remove and return the next waiter; None if the queue is empty."""
        heap = self._heap
        while heap:
            share, ticket, waiter = heappop(heap)
            if waiter.ticket == ticket:
                self.waiting -= 1
                self._floor = share
                return waiter
        return None

    def served(self, share: int) -> None:
        """A waiter was served and now has ``share``: the minimum if the queue is empty."""
        if not self.waiting and share > self._floor:
            self._floor = share

    def forget(self) -> None:
        """A waiter left the queue: it has cleared its ticket."""
        self.waiting -= 1
        if len(self._heap) > 2 * self.waiting + _STALE_ENTRIES_MAX:
            self._heap = [entry for entry in self._heap if entry[2].ticket == entry[1]]
            heapify(self._heap)

    def reset(self) -> None:
        """Start over with an empty queue."""
        self._floor = self._highest = self.base = 0
        self._heap.clear()

    def restart(self) -> None:
        """Make all shares equal to :attr:`base` and keep the order. O(1): the queued entries keep
        their shares, which are at most the new base, so they go before whoever comes later."""
        self._floor = self.base = self._highest

    def waiters(self) -> Iterator[WaiterT]:
        """All queued waiters, in no order."""
        return (entry[2] for entry in self._heap if entry[2].ticket == entry[1])

    def _first(self) -> tuple[int, int, WaiterT] | None:
        heap = self._heap
        while heap:
            first = heap[0]
            if first[2].ticket == first[1]:
                return first
            heappop(heap)
        return None
