"""What each owner, such as a tenant or a role, takes of something that all share.

A bound for all that looks at single objects can be used up by one owner with many small ones. So
the last part of such a bound is for owners that take less than the others on average.
"""

from __future__ import annotations

from headgate.base.sparse_counter import SparseCounter


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
