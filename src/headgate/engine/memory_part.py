"""What clients may leave behind while the process nears the limit on its memory.

Nobody is charged with it: topics, durable subscriptions, what these acknowledged in part, out of
order or have put aside until it is due, and the properties, schemas, grants and names of producers
that are stored. Each kind has a bound of its own, and all of them together may be more than the
process may take. So near the limit the tenants with the most get a part of these bounds, and nearer
to it no more topics and durable subscriptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sized
from typing import Final, Protocol

from headgate.base.owner_shares import level_of
from headgate.base.stored_total import RUN_BYTES
from headgate.base.units import KIB
from headgate.engine.ack_budget import AckBudget
from headgate.engine.deduplication import SequenceTotals
from headgate.engine.delay_schedule import DelaySchedule
from headgate.engine.property_budget import PropertyBudget
from headgate.engine.remembered_budget import RememberedBudget
from headgate.engine.tenant_storage import TenantStorage

TOPIC_BYTES: Final = 5 * KIB
SUBSCRIPTION_BYTES: Final = 15 * KIB
"""What a loaded topic takes, and a durable subscription with its history while messages come and
go."""

CREATING_PART: Final = 1 / 2
"""At this part of the bounds tenants with the most get no more topics and subscriptions."""

KEPT_MIN: Final = 1_000
"""Topics and durable subscriptions that a tenant may have in any case."""


class BoundedEngine(Protocol):
    """An engine, as far as its memory is bounded here."""

    remembered: RememberedBudget
    delays: DelaySchedule
    sequence_totals: SequenceTotals
    tenant_storage: TenantStorage

    @property
    def partials(self) -> AckBudget:
        """What partly acknowledged batches take."""

    @property
    def ack_blocks(self) -> AckBudget:
        """What is acknowledged out of order."""

    @property
    def properties(self) -> PropertyBudget:
        """What the properties of subscriptions take."""

    @property
    def durable_by_tenant(self) -> Mapping[str, int]:
        """Durable subscriptions of each tenant that has some."""

    @property
    def by_namespace(self) -> Mapping[str, Sized]:
        """The loaded topics of each namespace."""


class MemoryPart:
    """The part of the bounds that is there now."""

    def __init__(self, engine: BoundedEngine) -> None:
        self._engine = engine
        self.part = 1.0
        """The part of the bounds that is there, as of the last measurement."""
        self._largest: frozenset[str] = frozenset()
        """The tenants that may have no more topics and subscriptions."""

    def use(self, part: float, limit_bytes: int = 0) -> None:
        """The process, which may take ``limit_bytes``, leaves this part, of 1, to those that have
        the most. Call it at each measurement."""
        engine = self._engine
        self.part = part
        engine.sequence_totals.use_part(part)
        engine.partials.part = engine.ack_blocks.part = engine.remembered.part = part
        engine.delays.use_part(part)
        is_short = part <= CREATING_PART
        self._largest = self._found_largest() if is_short else frozenset()
        engine.tenant_storage.spare_memory(is_short=is_short, limit_bytes=limit_bytes)

    @property
    def kept_bytes(self) -> int:
        """What all tenants together leave in memory, about, without their metadata."""
        engine = self._engine
        topics = sum(map(len, engine.by_namespace.values()))
        runs = sum(stored.runs for stored in engine.tenant_storage.tenants())
        return (
            engine.partials.held_bytes
            + engine.ack_blocks.held_bytes
            + engine.remembered.held_bytes
            + engine.delays.held_bytes
            + engine.sequence_totals.all_bytes
            + engine.properties.by_tenant.total()
            + TOPIC_BYTES * topics
            + SUBSCRIPTION_BYTES * sum(engine.durable_by_tenant.values())
            + RUN_BYTES * runs
        )

    def _found_largest(self) -> frozenset[str]:
        counts = Counter(self._engine.durable_by_tenant)
        for namespace, topics in self._engine.by_namespace.items():
            counts[namespace.partition("/")[0]] += len(topics)
        least = max(level_of(counts.values()), KEPT_MIN)
        return frozenset(tenant for tenant, count in counts.items() if count >= least)

    def may_keep_more(self, tenant: str) -> bool:
        """Whether a tenant may have more topics and durable subscriptions, as of the last
        measurement."""
        return tenant not in self._largest
