"""What the subscriptions of each tenant take of something that all share.

A bound for all that looks at subscriptions alone can be used up by one tenant with many small ones.
So the last part of each such bound is for tenants that take less than the others on average.
"""

from __future__ import annotations

from headgate.base.sparse_counter import SparseCounter


class TenantShares:
    """Amounts by tenant; any unit."""

    __slots__ = ("_by_tenant", "total")

    def __init__(self) -> None:
        self._by_tenant: SparseCounter[str] = SparseCounter()
        self.total = 0
        """What all take together."""

    def count(self, tenant: str, amount: int) -> None:
        """A tenant takes so much more, or less if it is negative."""
        self._by_tenant[tenant] += amount
        self.total += amount

    def takes_most(self, tenant: str) -> bool:
        """Whether a tenant takes at least as much as those that take anything do on average. One
        that is alone does."""
        return self._by_tenant.get(tenant, 0) * len(self._by_tenant) >= self.total
