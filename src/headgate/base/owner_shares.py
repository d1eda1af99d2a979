"""What each owner, such as a tenant or a role, takes of something that all share.

A bound for all that looks at single objects can be used up by one owner with many small ones. So
the last part of such a bound is for owners that take less than the others on average.
"""

from __future__ import annotations

from typing import Final

from headgate.base.sparse_counter import SparseCounter

SMALL_BOUNDS: Final = 3 / 2
OWNERS_BOUNDS: Final = 2
"""So many times a bound is what small objects may take, and what those of owners may that take less
than the others on average: many small objects of one owner do not stop those of others."""


class OwnerShares:
    """Amounts by owner; any unit."""

    __slots__ = ("_by_owner", "total")

    def __init__(self) -> None:
        self._by_owner: SparseCounter[str] = SparseCounter()
        self.total = 0
        """What all take together."""

    def count(self, owner: str, amount: int) -> None:
        """An owner takes so much more, or less if it is negative."""
        self._by_owner[owner] += amount
        self.total += amount

    def takes_most(self, owner: str) -> bool:
        """Whether an owner takes at least as much as those that take anything do on average. One
        that is alone does."""
        return self._by_owner.get(owner, 0) * len(self._by_owner) >= self.total
