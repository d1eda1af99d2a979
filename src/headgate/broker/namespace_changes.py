"""What happened to the topics of one namespace that is watched, once for all patterns.

Each view has a place in it, and takes in what came behind that. A view that is too far behind finds
its topics anew instead, so what is kept has a bound whatever the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

CHANGES_MAX: Final = 8_192
"""Changes of one namespace that are kept at most: as those of two topics with very many partitions.
The names of topics that are gone stay in memory with them, which is 1 MB for usual ones."""


class TopicChange(NamedTuple):
    """A topic came or left."""

    name: str
    is_created: bool


class NamespaceChanges:
    """The latest changes of one namespace, numbered from 0."""

    __slots__ = ("_changes", "_first")

    def __init__(self) -> None:
        self._changes: list[TopicChange] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def end(self) -> int:
        """The number of the next change."""
        return self._first + len(self._changes)

    def add(self, changes: Iterable[TopicChange]) -> None:
        """Add changes, and forget the oldest beyond the bound: half of what may be kept, so that
        few of many additions do."""
        self._changes += changes
        if len(self._changes) > CHANGES_MAX:
            self.forget_before(self.end - CHANGES_MAX // 2)

    def since(self, number: int) -> list[TopicChange] | None:
        """The changes from ``number`` on; None if the first of them are forgotten."""
        if number < self._first:
            return None
        return self._changes[number - self._first :]

    def forget_before(self, number: int) -> None:
        """Forget what all have taken in."""
        del self._changes[: max(number - self._first, 0)]
        self._first = max(number, self._first)
