"""Counts what the properties of namespaces and topics take, by tenant, and bounds it.

They stay in memory as long as their owners, and nobody is charged with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headgate.base.sparse_counter import SparseCounter
from headgate.base.text_memory import properties_bytes
from headgate.base.units import MIB
from headgate.metadata.errors import not_allowed
from headgate.metadata.rows import Kind, NamespaceRow, PartitionedRow, Row, TopicRow

if TYPE_CHECKING:
    from headgate.metadata.state import RowChange

PROPERTIES_OF_TENANT_BYTES_MAX: Final = 64 * MIB
"""The properties of all namespaces and topics of a tenant: 3 KiB for each of 20,000 topics."""


class PropertyTotals:
    """Bytes of properties by tenant, with all changes in flight."""

    def __init__(self) -> None:
        self._by_tenant: SparseCounter[str] = SparseCounter()
        self._in_flight: SparseCounter[str] = SparseCounter()
        """What the staged view has more, or fewer, than the durable one."""

    def of_tenant(self, tenant: str) -> int:
        """What a tenant has, with all changes in flight."""
        return self._by_tenant[tenant] + self._in_flight[tenant]

    def stored(self, kind: Kind, key: str, row: Row) -> None:
        """A row is there at the start."""
        _add(self._by_tenant, kind, key, _bytes_of(row))

    def check(self, rows: Iterable[RowChange]) -> None:
        """Check that rows may change.

        Raises:
            RefusalError: 412, a tenant would get more, and have too much.
        """
        more: Counter[str] = Counter()
        for row in rows:
            _add(more, row.kind, row.key, _bytes_of(row.after) - _bytes_of(row.before))
        for tenant, grown in more.items():
            size_bytes = self.of_tenant(tenant) + grown
            if grown > 0 and size_bytes > PROPERTIES_OF_TENANT_BYTES_MAX:
                raise not_allowed(
                    f"The properties of the namespaces and topics of tenant {tenant} would take"
                    f" {size_bytes} bytes of memory: {PROPERTIES_OF_TENANT_BYTES_MAX} are allowed"
                )

    def staged(self, row: RowChange) -> None:
        """A row changes."""
        more = _bytes_of(row.after) - _bytes_of(row.before)
        _add(self._in_flight, row.kind, row.key, more)

    def applied(self, row: RowChange) -> None:
        """The change of a row is durable."""
        more = _bytes_of(row.after) - _bytes_of(row.before)
        _add(self._in_flight, row.kind, row.key, -more)
        _add(self._by_tenant, row.kind, row.key, more)

    def abandoned(self) -> None:
        """Nothing that was in flight comes."""
        self._in_flight.clear()


def _bytes_of(row: Row | None) -> int:
    if isinstance(row, NamespaceRow | TopicRow | PartitionedRow) and row.properties:
        return properties_bytes(row.properties)
    return 0


def _add(totals: Counter[str], kind: Kind, key: str, more: int) -> None:
    if more:
        # TENANT/NAMESPACE, or persistent://TENANT/NAMESPACE/...
        tenant = key.split("/", 3)[0 if kind is Kind.NAMESPACE else 2]
        totals[tenant] += more
