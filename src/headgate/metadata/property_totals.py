"""Counts what the properties of namespaces and topics take, by tenant, and bounds it."""

from __future__ import annotations

from typing import ClassVar, Final

from headgate.base.text_memory import properties_bytes
from headgate.base.units import MIB
from headgate.metadata.rows import NamespaceRow, PartitionedRow, Row, TopicRow
from headgate.metadata.tenant_totals import TenantTotals

PROPERTIES_OF_TENANT_BYTES_MAX: Final = 64 * MIB
"""The properties of all namespaces and topics of a tenant: 3 KiB for each of 20,000 topics."""


class PropertyTotals(TenantTotals):
    """Bytes of properties by tenant."""

    what: ClassVar = "The properties of the namespaces and topics"

    @property
    def bytes_max(self) -> int:
        return PROPERTIES_OF_TENANT_BYTES_MAX

    def bytes_of(self, key: str, row: Row | None) -> int:  # noqa: ARG002
        if isinstance(row, NamespaceRow | TopicRow | PartitionedRow) and row.properties:
            return properties_bytes(row.properties)
        return 0
