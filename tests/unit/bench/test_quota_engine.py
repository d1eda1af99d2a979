"""What the bench of backlog quotas drives does what it says."""

from __future__ import annotations

import pytest

from bench.quota_engine import BATCH_ENTRIES, Rig
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, QuotaPolicy, Quotas, QuotaType

FAR = Quotas(Quota(QuotaType.SIZE, 1 << 40, QuotaPolicy.HOLD, "topic policy"), None)


def test_a_cycle_publishes_and_acknowledges_everything() -> None:
    rig = Rig(FAR)
    rig.cycle(3 * BATCH_ENTRIES)
    assert rig.topic.log.end == 3 * BATCH_ENTRIES
    assert rig.subscription.backlog_bytes == 0


def test_each_topic_owes_one_entry_and_is_followed() -> None:
    rig = Rig(FAR, topics=5)
    rig.one_each()
    for topic in rig.engine.topics.values():
        assert topic.quota is not None
        assert topic.quota.is_active
        assert topic.backlog_bytes() == rig.entry_bytes


def test_every_other_entry_is_a_hole() -> None:
    rig = Rig(NO_QUOTAS, body_bytes=100, retain_bodies=False)
    rig.publish_only(2 * BATCH_ENTRIES)
    rig.ack_every_other()
    assert rig.subscription.acks.ranges_count == BATCH_ENTRIES
    assert rig.subscription.backlog_bytes == BATCH_ENTRIES * 100


def test_it_does_not_go_on_where_a_quota_holds() -> None:
    rig = Rig(Quotas(Quota(QuotaType.SIZE, 1, QuotaPolicy.HOLD, "topic policy"), None))
    with pytest.raises(RuntimeError, match="held"):
        rig.cycle(BATCH_ENTRIES)
