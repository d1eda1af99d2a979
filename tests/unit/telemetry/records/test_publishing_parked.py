"""What waits, as the telemetry record tells it."""

from __future__ import annotations

from headgate.base.units import NS_PER_MS
from headgate.flow.quota.backlog_quota import NO_QUOTAS
from headgate.telemetry.records.publishing import PARKED_COLUMNS, parked_values
from tests.unit.engine.quota_rig import QuotaRig, size_quota


def values(rig: QuotaRig) -> dict[str, int]:
    found = zip(PARKED_COLUMNS, parked_values(rig.topic), strict=True)
    return {name: value for name, value in found if value}


def test_what_waits_by_its_cause() -> None:
    rig = QuotaRig()
    assert values(rig) == {}
    rig.subscribe()
    rig.set_quotas(size_quota(0))
    rig.send(1, body=b"0123456789", messages=3)
    rig.advance(1_500)
    assert values(rig) == {
        "parked_backlog_quota_ns": 1_500 * NS_PER_MS,
        "parked_backlog_quota_messages": 3,
        "parked_backlog_quota_bytes": 10,
    }
    rig.topic.publishing.pause_reading(rig.producer)
    rig.advance(500)
    rig.set_quotas(NO_QUOTAS)
    rig.commit()
    rig.topic.publishing.resume_reading(rig.producer)
    rig.advance(100)
    assert values(rig) == {
        "parked_backlog_quota_ns": 2_000 * NS_PER_MS,
        "parked_memory_ns": 500 * NS_PER_MS,
    }
