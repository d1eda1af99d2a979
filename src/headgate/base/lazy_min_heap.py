"""A lazy min-heap: it finds the item whose figure is smallest (law 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

STALE_ENTRIES_MAX = 64
"""Stale heap entries that are kept at most, beside one for each valid entry."""

_SETTLED_AT_ONCE = 1_024


class LazyMinHeap(Generic[T]):
    """Finds the item with the least figure without looking at all items.

    The heap has each item's figure from the last time the item was at the top. Since figures grow,
    each is a lower bound: the top is right as soon as it is up to date, and updating it costs
    O(log n). A growing figure costs nothing. :meth:`changed` must be called when a figure falls.
    """

    __slots__ = ("_figure", "_heap", "_number", "_valid")

    def __init__(self, figure: Callable[[T], int], items: Iterable[T]) -> None:
        self._figure = figure
        self._number = 0
        """The number of the newest heap entry. Only one entry of each item is valid."""
        self._valid = dict.fromkeys(items, 0)
        self._heap: list[tuple[int, int, T]] = []
        self._build()

    def changed(self, item: T) -> None:
        """An item is new, or its figure fell."""
        self._number += 1
        self._valid[item] = self._number
        heappush(self._heap, (self._figure(item), self._number, item))
        if len(self._heap) > 2 * len(self._valid) + STALE_ENTRIES_MAX:
            self._build()

    def discard(self, item: T) -> None:
        """An item no longer counts; nothing happens if it never did."""
        self._valid.pop(item, None)

    def _build(self) -> None:
        # A new table: one from which most items were removed stays as large as it was.
        self._valid = dict(zip(self._valid, count(self._number + 1)))
        self._number += len(self._valid)
        self._heap = [(self._figure(item), number, item) for item, number in self._valid.items()]
        heapify(self._heap)

    def settle(self, items_max: int) -> bool:
        """Bring up to ``items_max`` items up to date; returns whether :meth:`top` has nothing left
        to do."""
        heap = self._heap
        for _ in range(items_max):
            if not heap:
                return True
            known, number, item = heap[0]
            if self._valid.get(item) != number:
                heappop(heap)
                continue
            figure = self._figure(item)
            if figure <= known:
                return True
            heapreplace(heap, (figure, number, item))
        return False

    def top(self) -> T | None:
        """The item with the least figure; None if there is no item."""
        while not self.settle(_SETTLED_AT_ONCE):
            pass
        return self._heap[0][2] if self._heap else None
