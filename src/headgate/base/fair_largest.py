"""The largest of many items, of which owners with many leave room to others."""

from __future__ import annotations

from heapq import heappop, heappush, heappushpop
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class FairLargest(Generic[T]):
    """At most ``count`` items with the largest keys. While owners would have more together, the one
    with most keeps fewer; of equal keys those that were added first."""

    __slots__ = ("_added", "_by_owner", "_count", "_most_first", "_total")

    def __init__(self, count: int) -> None:
        self._count = count
        self._by_owner: dict[str, list[tuple[Any, int, T]]] = {}
        """A heap for each owner, the smallest first."""
        self._most_first: list[tuple[int, str]] = []
        """A heap of what owners have, negative. What they had before is passed over."""
        self._total = self._added = 0

    def add(self, owner: str, key: Any, item: T) -> None:
        """Look at an item. Its key is compared with those of others, the item is not."""
        self._added += 1
        own, entry = self._by_owner.setdefault(owner, []), (key, -self._added, item)
        if self._total < self._count:
            self._total += 1
        elif self._total:
            most = self._owner_with_most()
            if len(own) + 1 >= len(self._by_owner[most]):
                if own:
                    heappushpop(own, entry)
                return
            heappop(self._by_owner[most])
            self._note(most)
        else:
            return
        heappush(own, entry)
        self._note(owner)

    def _note(self, owner: str) -> None:
        heappush(self._most_first, (-len(self._by_owner[owner]), owner))

    def _owner_with_most(self) -> str:
        while True:
            count, owner = self._most_first[0]
            if len(self._by_owner[owner]) == -count:
                return owner
            heappop(self._most_first)

    def taken(self) -> dict[str, list[tuple[Any, T]]]:
        """The keys and items of each owner that has some, the largest first. They are forgotten
        here."""
        found = {
            owner: [(key, item) for key, _, item in sorted(heap, reverse=True)]
            for owner, heap in self._by_owner.items()
            if heap
        }
        self._by_owner.clear()
        self._most_first.clear()
        self._total = 0
        return found
