"""Counts what a part of the rows of each tenant takes in memory, and bounds it.

Rows stay in memory as long as what they are about, and nobody is charged with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable
from typing import ClassVar, Final, Protocol

from headgate.base.memory_room import why_lower
from headgate.base.sparse_counter import SparseCounter
from headgate.metadata.errors import not_allowed
from headgate.metadata.rows import Kind, Row

_BEGIN_WITH_TENANT: Final = frozenset(
    {Kind.NAMESPACE, Kind.NAMESPACE_GRANTS, Kind.SUBSCRIPTION_GRANTS}
)
"""Kinds with keys ``TENANT/NAMESPACE...``. Those of topics are
``persistent://TENANT/NAMESPACE/...``."""


class _RowChange(Protocol):
    """A row before and after a change."""

    @property
    def kind(self) -> Kind:
        """Its kind."""

    @property
    def key(self) -> str:
        """Its key."""

    @property
    def before(self) -> Row | None:
        """None if there was none."""

    @property
    def after(self) -> Row | None:
        """None if it is removed."""


class TenantTotals(ABC):
    """Bytes by tenant, with all changes in flight."""

    what: ClassVar[str]
    """What is counted, as a refusal names it."""

    def __init__(self) -> None:
        self._by_tenant: SparseCounter[str] = SparseCounter()
        self._in_flight: SparseCounter[str] = SparseCounter()
        """What the staged view has more, or fewer, than the durable one."""
        self._changes: deque[Counter[str]] = deque()
        """The same of each change in flight, in their order."""

    @property
    @abstractmethod
    def bytes_max(self) -> int:
        """The bound of one tenant."""

    @abstractmethod
    def bytes_of(self, key: str, row: Row | None) -> int:
        """What a row counts; 0 for one that does not."""

    def of_tenant(self, tenant: str) -> int:
        """What a tenant has, with all changes in flight."""
        return self._by_tenant[tenant] + self._in_flight[tenant]

    @property
    def all_bytes(self) -> int:
        """What all tenants have, without changes in flight."""
        return sum(self._by_tenant.values())

    def stored(self, kind: Kind, key: str, row: Row) -> None:
        """A row is there at the start."""
        size_bytes = self.bytes_of(key, row)
        if size_bytes:
            self._by_tenant[_tenant_of(kind, key)] += size_bytes

    def grown(self, rows: Iterable[_RowChange], part: float = 1.0) -> Counter[str]:
        """How much more, or less, each tenant has with these rows, for :meth:`staged`. A tenant has
        ``part`` of its bound: less than 1 while the process nears the limit on its memory.

        Raises:
            RefusalError: 412, a tenant would get more, and have too much.
        """
        bytes_max = int(part * self.bytes_max)
        more: Counter[str] = Counter()
        for row in rows:
            grown = self.bytes_of(row.key, row.after) - self.bytes_of(row.key, row.before)
            if grown:
                more[_tenant_of(row.kind, row.key)] += grown
        for tenant, grown in more.items():
            size_bytes = self.of_tenant(tenant) + grown
            if grown > 0 and size_bytes > bytes_max:
                raise not_allowed(
                    f"{self.what} of tenant {tenant} would take {size_bytes} bytes of memory:"
                    f" {bytes_max} are allowed{why_lower(part)}"
                )
        return more

    def staged(self, grown: Counter[str]) -> None:
        """A change is in flight."""
        self._changes.append(grown)
        for tenant, more in grown.items():
            self._in_flight[tenant] += more

    def applied(self) -> None:
        """The first change in flight is durable."""
        for tenant, more in self._changes.popleft().items():
            self._in_flight[tenant] -= more
            self._by_tenant[tenant] += more

    def abandoned(self) -> None:
        """Nothing that was in flight comes."""
        self._changes.clear()
        self._in_flight.clear()


def _tenant_of(kind: Kind, key: str) -> str:
    return key.split("/", 3)[0 if kind in _BEGIN_WITH_TENANT else 2]
