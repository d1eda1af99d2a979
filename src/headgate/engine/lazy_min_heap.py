"""Which of many subscriptions has done least: found without looking at all of them (law 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.engine.subscription import Subscription


DEAD_MAX = 64
"""Entries that no longer count are kept up to so many, beside one for each that does."""


class LazyMinHeap:
    """The stored subscription with the least of a figure that seldom falls.

    A heap of figures as they were when last looked at. Since they grow, each is a lower bound: the
    top is right as soon as it is up to date, and bringing it up to date costs O(log k). What an
    acknowledgement costs is nothing. A figure that fell has to be told.
    """

    __slots__ = ("_figure", "_heap", "_number", "_valid")

    def __init__(
        self, figure: Callable[[Subscription], int], subscriptions: Iterable[Subscription]
    ) -> None:
        self._figure = figure
        self._number = 0
        """Given to the entry that was made last. Of each subscription only one counts."""
        self._valid = dict.fromkeys(subscriptions, 0)
        self._heap: list[tuple[int, int, Subscription]] = []
        self._build()

    def changed(self, subscription: Subscription) -> None:
        """A subscription is new, is gone, or its figure fell."""
        if subscription.removed or not subscription.is_durable:
            self._valid.pop(subscription, None)
            return
        self._number += 1
        self._valid[subscription] = self._number
        heappush(self._heap, (self._figure(subscription), self._number, subscription))
        if len(self._heap) > 2 * len(self._valid) + DEAD_MAX:
            self._build()

    def _build(self) -> None:
        for subscription in self._valid:
            self._number += 1
            self._valid[subscription] = self._number
        self._heap = [(self._figure(s), number, s) for s, number in self._valid.items()]
        heapify(self._heap)

    def top(self) -> Subscription | None:
        """The one with the least; None if there is none."""
        heap = self._heap
        while heap:
            known, number, subscription = heap[0]
            if self._valid.get(subscription) != number:
                heappop(heap)
                continue
            figure = self._figure(subscription)
            if figure <= known:
                return subscription
            heapreplace(heap, (figure, number, subscription))
        return None
