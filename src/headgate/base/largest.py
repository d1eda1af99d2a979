"""The largest of many items, found one by one in bounded memory.

``heapq.nlargest`` holds its caller until the last item is looked at. Here the caller adds items
between pauses of its own.
"""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Largest(Generic[T]):
    """The ``count`` items with the largest keys; of equal keys those that were added first."""

    __slots__ = ("_added", "_count", "_heap")

    def __init__(self, count: int) -> None:
        self._count = count
        self._heap: list[tuple[Any, int, T]] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, key: Any, item: T) -> None:
        """Look at an item. Its key is compared with those of others, the item is not."""
        self._added += 1
        if len(self._heap) < self._count:
            heappush(self._heap, (key, -self._added, item))
        elif self._heap:
            heappushpop(self._heap, (key, -self._added, item))

    def keeps(self, key: Any) -> bool:
        """Whether an item with this key would be kept. Ask before you make an item that is dear."""
        if len(self._heap) < self._count:
            return True
        return bool(self._heap) and bool(self._heap[0][0] < key)

    def items(self) -> list[T]:
        """The largest found so far, the largest first."""
        # No two have the same number, so that items are not compared.
        return [item for _, _, item in sorted(self._heap, reverse=True)]

    def taken(self) -> list[T]:
        """:meth:`items`, which are forgotten here."""
        found = self.items()
        self._heap.clear()
        return found


class Reversed:
    """A key that is the larger, the smaller its value is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)
