"""Items in the order in which they were added, for walks with pauses.

A walk over a dictionary that changes meanwhile needs a copy of it. To copy and free 100,000 items
takes tens of milliseconds, because each is touched. Here a walk copies one chunk at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

CHUNK_ITEMS: Final = 64
"""Items that are added to one chunk; it has fewer when some of them are removed."""


class Chunks(Generic[T]):
    """Items that come and go. They are compared by ``==``, so give each an identity of its own."""

    __slots__ = ("_added_count", "_chunks")

    def __init__(self) -> None:
        self._added_count = 0
        self._chunks: dict[int, list[T]] = {}

    def add(self, item: T) -> int:
        """Add an item behind the others; returns the number that :meth:`remove` needs."""
        number = self._added_count // CHUNK_ITEMS
        self._added_count += 1
        self._chunks.setdefault(number, []).append(item)
        return number

    def remove(self, item: T, number: int) -> None:
        """Remove an item, which :meth:`add` gave this number."""
        chunk = self._chunks[number]
        chunk.remove(item)
        if not chunk:
            del self._chunks[number]

    def walk(self) -> Iterator[list[T]]:
        """The items that are there at the start, chunk by chunk, each as it is when its turn comes.

        The caller may let others run between two chunks. An item that is removed before the walk
        reaches its chunk is left out; one that is added meanwhile is not part of the walk.
        """
        numbers = list(self._chunks)
        last = list(self._chunks[numbers[-1]]) if numbers else []
        for number in numbers[:-1]:
            chunk = self._chunks.get(number)
            if chunk is not None:
                yield list(chunk)
        # Items may have been added to the last chunk since.
        present = self._chunks.get(numbers[-1], []) if numbers else []
        if left := [item for item in last if item in present]:
            yield left
