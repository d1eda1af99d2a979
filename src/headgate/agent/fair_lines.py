"""Lines of a bounded size altogether, of which owners with much leave room to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from headgate.base.lazy_min_heap import LazyMinHeap


class Owner(NamedTuple):
    """Whose lines they are."""

    cluster: str
    tenant: str


class FairLines:
    """Texts of owners, each of whole lines. When they are too large together, the owner with most
    loses its last one, so that none takes the place of another that has less."""

    def __init__(self, texts_max: int, bytes_max: int) -> None:
        """The most texts, and the most bytes of all of them."""
        self._texts_max = texts_max
        self._bytes_max = bytes_max
        self._by_owner: dict[Owner, list[tuple[str, int]]] = {}
        """Each text with its bytes."""
        self._sizes = sizes = Counter[Owner]()
        self._owners = LazyMinHeap[Owner](lambda owner: -sizes[owner], ())
        """Finds the owner with most."""
        self._count = self._bytes = 0
        self.left_out: Counter[str] = Counter()
        """Texts that are not among them, by cluster."""

    def __iter__(self) -> Iterator[tuple[Owner, str]]:
        for owner, found in self._by_owner.items():
            for text, _ in found:
                yield owner, text

    def add(self, owner: Owner, text: str) -> None:
        """Add a text, if there is room or another owner has more."""
        size = len(text.encode())
        while self._count >= self._texts_max or self._bytes + size > self._bytes_max:
            largest = self._owners.top()
            if largest is None or self._sizes[largest] <= self._sizes[owner] + size:
                self.left_out[owner.cluster] += 1
                return
            _, dropped = self._by_owner[largest].pop()
            self._note(largest, -1, -dropped)
            self.left_out[largest.cluster] += 1
        self._by_owner.setdefault(owner, []).append((text, size))
        self._note(owner, 1, size)

    def _note(self, owner: Owner, count: int, size: int) -> None:
        self._count += count
        self._bytes += size
        self._sizes[owner] += size
        if size > 0:
            self._owners.changed(owner)
