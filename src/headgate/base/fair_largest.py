"""The largest of many items, of which owners with many leave room to others."""

from __future__ import annotations

from heapq import heappop, heappush, heappushpop
from typing import Any, Generic, TypeVar, cast

from headgate.base.lazy_min_heap import LazyMinHeap

T = TypeVar("T")


class FairLargest(Generic[T]):
    """At most ``count`` items with the largest keys. While owners would have more together, the one
    with most keeps fewer; of equal keys those that were added first."""

    __slots__ = ("_added", "_by_owner", "_count", "_owners", "_total")

    def __init__(self, count: int) -> None:
        self._count = count
        by_owner: dict[str, list[tuple[Any, int, T]]] = {}
        self._by_owner = by_owner
        """A heap for each owner, the smallest first."""
        self._owners = LazyMinHeap[str](lambda owner: -len(by_owner[owner]), ())
        """Finds the owner with most."""
        self._total = self._added = 0

    def __len__(self) -> int:
        """Items that are kept now."""
        return self._total

    def has_room(self, owner: str) -> bool:
        """Whether an item of an owner is kept beside its others, whatever its key."""
        if self._total < self._count:
            return True
        return self._total > 0 and len(self._by_owner.get(owner, ())) + 1 < len(self._most())

    def add(self, owner: str, key: Any, item: T) -> None:
        """Look at an item. Its key is compared with those of others, the item is not."""
        self._added += 1
        own, entry = self._by_owner.setdefault(owner, []), (key, -self._added, item)
        if not self.has_room(owner):
            if own:
                heappushpop(own, entry)
            return
        if self._total < self._count:
            self._total += 1
        else:
            heappop(self._most())
        heappush(own, entry)
        self._owners.changed(owner)

    def _most(self) -> list[tuple[Any, int, T]]:
        """The items of the owner with most."""
        return self._by_owner[cast(str, self._owners.top())]

    def taken(self) -> dict[str, list[tuple[Any, T]]]:
        """The keys and items of each owner that has some, the largest first. They are forgotten
        here."""
        found = {
            owner: [(key, item) for key, _, item in sorted(heap, reverse=True)]
            for owner, heap in self._by_owner.items()
            if heap
        }
        for owner in self._by_owner:
            self._owners.discard(owner)
        self._by_owner.clear()
        self._total = 0
        return found
