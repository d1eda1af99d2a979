"""What each tenant stores, and who is refused beyond the bound."""

from __future__ import annotations

import gc

import pytest

from headgate.base.names import parse_topic
from headgate.base.stored_total import StoredTotal
from headgate.engine.errors import ProducersRefusedError
from headgate.engine.tenant_storage import TenantStorage, full_text


class Log:
    """What the log keeps of a topic."""

    def __init__(self, size_bytes: int = 0) -> None:
        self.stored_total = StoredTotal(44)
        self.stored_total.bytes = size_bytes


def test_the_topics_of_a_tenant_count_together_once_each() -> None:
    storage, first, second, other = TenantStorage(1_000), Log(5), Log(7), Log(1)
    storage.join(first, parse_topic("persistent://a/b/t1"))
    storage.join(second, parse_topic("persistent://a/c/t2"))
    storage.join(other, parse_topic("persistent://b/b/t1"))
    storage.join(first, parse_topic("persistent://a/b/t1"))
    assert {each.owner: each.bytes for each in storage.tenants()} == {"a": 12, "b": 1}
    assert first.stored_total is second.stored_total
    storage.set_max(2_000)
    assert {each.bytes_max for each in storage.tenants()} == {2_000}


def test_a_tenant_without_topics_is_forgotten() -> None:
    storage, log = TenantStorage(), Log()
    storage.join(log, parse_topic("persistent://a/b/t"))
    log.stored_total = StoredTotal()
    gc.collect()
    assert storage.tenants() == []


def test_new_producers_are_refused_until_95_percent_or_room_for_the_largest() -> None:
    storage, log = TenantStorage(1_000), Log(1_000)
    storage.join(log, parse_topic("persistent://a/b/t"))
    total = log.stored_total
    storage.check_newcomer(total)  # nobody was refused yet
    storage.refuse(total, 56)
    assert full_text(total) == (
        "tenant a stores 1,000 bytes of 1,000, and has to come down to 95 % of it "
        "(headgateMaxStoragePerTenantMB)"
    )
    with pytest.raises(ProducersRefusedError, match="tenant a stores 1,000 bytes"):
        storage.check_newcomer(total)
    total.bytes = 901
    assert list(storage.full_tenants()) == [total]
    total.bytes = 900  # an entry of 100 fits
    assert list(storage.full_tenants()) == []
    total.bytes = 1_000
    storage.check_newcomer(total)


def test_a_raised_bound_lets_new_producers_in() -> None:
    storage, log = TenantStorage(1_000), Log(1_000)
    storage.join(log, parse_topic("persistent://a/b/t"))
    storage.refuse(log.stored_total, 10)
    storage.set_max(2_000)
    storage.check_newcomer(log.stored_total)
