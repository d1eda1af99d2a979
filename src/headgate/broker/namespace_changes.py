"""What happened to the topics of one namespace that is watched, once for all patterns.

Each view has a place in it, and takes in what came behind that. A view that is too far behind finds
its topics anew instead, so what is kept has a bound whatever the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from headgate.base.text_memory import text_bytes
from headgate.base.units import MIB

CHANGES_MAX: Final = 8_192
"""Changes of one namespace that are kept at most: those of two topics with very many partitions."""

NAMES_BYTES_MAX: Final = 2 * MIB
"""Their names, which stay in memory with them when the topics are gone. Usual ones are 1 MB; with
the longest ones so many changes would be 50 MB for each namespace."""


class TopicChange(NamedTuple):
    """A topic came or left."""

    name: str
    is_created: bool


class NamespaceChanges:
    """The latest changes of one namespace, numbered from 0."""

    __slots__ = ("_changes", "_first", "names_bytes")

    def __init__(self) -> None:
        self._changes: list[TopicChange] = []
        self._first = 0
        self.names_bytes = 0
        """What their names take. Read only."""

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def end(self) -> int:
        """The number of the next change."""
        return self._first + len(self._changes)

    def add(self, changes: Iterable[TopicChange]) -> None:
        """Add changes, and forget the oldest beyond a bound: half of what may be kept, so that
        few of many additions do."""
        before = len(self._changes)
        self._changes += changes
        self.names_bytes += _names_bytes(self._changes[before:])
        if len(self._changes) > CHANGES_MAX:
            self.forget_before(self.end - CHANGES_MAX // 2)
        if self.names_bytes > NAMES_BYTES_MAX:
            left_bytes, number = self.names_bytes, self._first
            for change in self._changes:
                if left_bytes <= NAMES_BYTES_MAX // 2:
                    break
                left_bytes -= text_bytes(change.name)
                number += 1
            self.forget_before(number)

    def since(self, number: int) -> list[TopicChange] | None:
        """The changes from ``number`` on; None if the first of them are forgotten."""
        if number < self._first:
            return None
        return self._changes[number - self._first :]

    def forget_before(self, number: int) -> None:
        """Forget what all have taken in."""
        count = max(number - self._first, 0)
        self.names_bytes -= _names_bytes(self._changes[:count])
        del self._changes[:count]
        self._first += count


def _names_bytes(changes: Iterable[TopicChange]) -> int:
    return sum([text_bytes(change.name) for change in changes])
