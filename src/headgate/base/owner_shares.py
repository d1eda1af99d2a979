"""What each owner, such as a tenant or a role, takes of something that all share.

A bound for all that looks at single objects can be used up by one owner with many small ones. So
the last part of such a bound is for owners that take less than the others on average. Where room is
made by taking something back, it is taken from the largest owners: an average falls with each owner
that takes next to nothing, so that above it stands many a one that is not the cause.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from headgate.base.sparse_counter import SparseCounter

SMALL_BOUNDS: Final = 3 / 2
OWNERS_BOUNDS: Final = 2
"""So many times a bound is what small objects may take, and what those of owners may that take less
than the others on average: many small objects of one owner do not stop those of others."""

KEPT_PART: Final = 2 / 3
"""Room is made by owners that would have to give something back if so much of all stayed."""

LEVEL_CHANGES: Final = 64
"""The level down to which they would have to is found anew after changes of so small a part."""


class OwnerShares:
    """Amounts by owner; any unit."""

    __slots__ = ("_by_owner", "_changed", "_level", "total")

    def __init__(self) -> None:
        self._by_owner: SparseCounter[str] = SparseCounter()
        self._level = 0.0
        self._changed = 0
        """All changes since the level was found."""
        self.total = 0
        """What all take together."""

    def count(self, owner: str, amount: int) -> None:
        """An owner takes so much more, or less if it is negative."""
        self._by_owner[owner] += amount
        self._changed += abs(amount)
        self.total += amount

    def of(self, owner: str) -> int:
        """What an owner takes."""
        return self._by_owner.get(owner, 0)

    def takes_most(self, owner: str) -> bool:
        """Whether an owner takes at least as much as those that take anything do on average. One
        that is alone does."""
        return self.of(owner) * len(self._by_owner) >= self.total

    def makes_room(self, owner: str) -> bool:
        """Whether an owner is one of the largest: those that would have to give something back, all
        down to the same amount, if a third of everything had to be freed. However many take next to
        nothing, that makes nobody else a large one. One that is alone is."""
        if self._changed * LEVEL_CHANGES >= self.total:
            self._level, self._changed = self._found_level(), 0
        return self.of(owner) >= self._level

    def _found_level(self) -> float:
        return level_of(self._by_owner.values())


def level_of(amounts: Collection[int]) -> float:
    """The amount down to which the largest would have to give something back, if a third of
    everything had to be freed."""
    left = KEPT_PART * sum(amounts)
    for number, amount in enumerate(sorted(amounts)):
        each = left / (len(amounts) - number)
        if amount >= each:
            return each
        left -= amount
    return 0.0
