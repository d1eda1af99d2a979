"""What tenants have of something is counted with the changes in flight, in their order."""

from __future__ import annotations

import pytest

from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import IdleSubscriptionsRow, Kind, Row
from headgate.metadata.state import RowChange
from headgate.metadata.tenant_totals import TenantTotals

KEY = "persistent://t/ns/topic"


class Names(TenantTotals):
    what = "The names"
    bytes_max = 10

    def bytes_of(self, key: str, row: Row | None) -> int:
        return len(row.since_ms) if isinstance(row, IdleSubscriptionsRow) else 0


def row(count: int) -> IdleSubscriptionsRow:
    return IdleSubscriptionsRow({f"{number}": 0 for number in range(count)})


def change(before: int, after: int, key: str = KEY) -> list[RowChange]:
    return [RowChange(Kind.IDLE_SUBSCRIPTIONS, key, row(before), row(after))]


def test_changes_in_flight_count_until_they_are_durable_or_abandoned() -> None:
    totals = Names()
    totals.stored(Kind.IDLE_SUBSCRIPTIONS, KEY, row(2))
    totals.staged(totals.grown(change(2, 9)))
    totals.staged(totals.grown(change(9, 4)))
    assert totals.of_tenant("t") == 4
    totals.applied()
    assert (totals.of_tenant("t"), totals._by_tenant) == (4, {"t": 9})
    totals.abandoned()
    assert totals.of_tenant("t") == 9
    assert not totals._in_flight


def test_a_tenant_with_too_much_gets_no_more_and_may_have_less() -> None:
    totals = Names()
    totals.stored(Kind.IDLE_SUBSCRIPTIONS, KEY, row(12))  # of an earlier release
    with pytest.raises(RefusalError, match="The names of tenant t would take 13 bytes") as caught:
        totals.grown(change(12, 13))
    assert caught.value.status == 412
    totals.staged(totals.grown(change(12, 11)))
    totals.staged(totals.grown(change(11, 0)))
    totals.applied()
    totals.applied()
    assert not totals._by_tenant
    assert totals.grown(change(0, 10, "persistent://u/ns/topic")) == {"u": 10}


def test_near_the_limit_on_the_memory_a_tenant_has_a_part_of_the_bound() -> None:
    totals = Names()
    assert totals.grown(change(4, 5), part=0.5) == {"t": 1}
    totals.stored(Kind.IDLE_SUBSCRIPTIONS, KEY, row(5))
    with pytest.raises(RefusalError, match="5 are allowed, because the broker is near the limit"):
        totals.grown(change(5, 6), part=0.5)
    assert totals.grown(change(5, 4), part=0.5) == {"t": -1}
