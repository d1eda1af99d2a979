"""A count of everything against the state of a topic's quotas."""

from __future__ import annotations

import pytest

from headgate.engine.quota_check import is_consistent
from headgate.engine.topic_quota import TopicQuota
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, Quotas
from tests.unit.engine.quota_rig import EVICT, QuotaRig, size_quota, time_quota

TEN = bytes(10)


def rig_of(quotas: Quotas, entries: int) -> tuple[QuotaRig, TopicQuota]:
    """A topic with one subscription that has acknowledged none of its entries."""
    rig = QuotaRig(quotas)
    rig.subscribe()
    rig.publish(entries, body=TEN)
    assert rig.topic.quota is not None
    return rig, rig.topic.quota


@pytest.mark.parametrize("entries", [0, 9, 10])
@pytest.mark.parametrize("quotas", [size_quota(100), size_quota(100, EVICT), time_quota(1_000)])
def test_what_events_left_is_consistent(quotas: Quotas, entries: int) -> None:
    rig, quota = rig_of(quotas, entries)
    assert is_consistent(quota)
    rig.advance(5_000)
    assert is_consistent(quota)


def test_a_missed_size_is_found() -> None:
    _, quota = rig_of(size_quota(100), 10)
    quota.exceeded, quota.exceeded_by_type, quota.awaits_acks = None, NO_QUOTAS, False
    assert not is_consistent(quota)


def test_a_missed_age_is_found() -> None:
    rig, quota = rig_of(time_quota(1_000), 1)
    rig.engine.log_ms += 10_000  # and no timer that sees it
    assert not is_consistent(quota)


@pytest.mark.parametrize("beside", [NO_QUOTAS.size, size_quota(10).size])
def test_an_eviction_that_waits_for_the_disk_is_not_missed(
    beside: Quota | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, quota = rig_of(Quotas(beside, time_quota(1_000, EVICT).time), 1)
    rig.log.memory_first = rig.log.end
    monkeypatch.setattr(rig.effects, "is_looked_up", lambda *_: False, raising=False)
    rig.advance(5_000)
    assert is_consistent(quota)
    quota.exceeded, quota.exceeded_by_type, quota.awaits_acks = None, NO_QUOTAS, False
    assert is_consistent(quota) == (beside is None)


def test_a_hold_without_its_quota_is_found() -> None:
    _, quota = rig_of(size_quota(100), 10)
    quota.quotas = NO_QUOTAS
    assert not is_consistent(quota)


def test_a_bound_that_is_too_high_is_found() -> None:
    _, quota = rig_of(size_quota(100), 5)
    quota.safe_below += 1
    assert not is_consistent(quota)
