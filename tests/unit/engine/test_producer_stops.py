"""How often and how long quotas stopped producers, and how they close very many."""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.engine.producer import Producer
from headgate.engine.producer_stops import ENDED_IN_STEP, ProducerStops
from headgate.flow.quota.backlog_quota import QuotaType
from tests.unit.engine.quota_rig import REFUSE, QuotaRig, size_quota

SIZE, TIME = QuotaType.SIZE, QuotaType.TIME


def test_the_time_of_each_type_adds_up() -> None:
    stops = ProducerStops()
    assert (stops.stopped_ns(SIZE, 7), stops.ended_ns(SIZE)) == (0, None)
    stops.quota_state_changed(SIZE, NS_PER_S, exceeded=True)
    stops.quota_state_changed(TIME, 2 * NS_PER_S, exceeded=True)
    assert stops.stopped_ns(SIZE, 4 * NS_PER_S) == 3 * NS_PER_S
    stops.quota_state_changed(SIZE, 5 * NS_PER_S, exceeded=False)
    stops.quota_state_changed(SIZE, 7 * NS_PER_S, exceeded=True)
    assert stops.stopped_ns(SIZE, 8 * NS_PER_S) == 5 * NS_PER_S
    assert stops.stopped_ns(TIME, 8 * NS_PER_S) == 6 * NS_PER_S
    assert (stops.ended_ns(SIZE), stops.ended_ns(TIME)) == (5 * NS_PER_S, None)


def full_rig() -> QuotaRig:
    """A quota that refuses producers is reached on a topic with 301 of them."""
    rig = QuotaRig(size_quota(45, REFUSE))
    rig.subscribe()
    for number in range(2, 302):
        rig.topic.add_producer(Producer(number, f"p{number}", rig.port))
    rig.send(5, body=b"0123456789")
    rig.log.end = rig.log.staged_end
    rig.topic.publishing.entries_durable(0)
    return rig


def test_a_quota_that_refuses_producers_closes_very_many_in_steps() -> None:
    """50,000 at once held up the loop for 0.7 s."""
    rig = full_rig()
    assert len(rig.port.closed) == ENDED_IN_STEP
    rig.send(1, body=b"it is not stored")
    rig.engine.flush()
    assert len(rig.port.closed) <= 3 * ENDED_IN_STEP
    rig.flush()
    assert sorted(rig.port.closed) == list(range(1, 302))
    assert not rig.topic.producers
    assert rig.stored == 5


def test_no_more_are_closed_once_the_quota_releases_them() -> None:
    rig = full_rig()
    rig.set_quotas(size_quota(1_000, REFUSE))
    assert len(rig.topic.producers) == 301 - ENDED_IN_STEP
    rig.send(1, body=b"stored")
    rig.set_quotas(size_quota(50, REFUSE))
    rig.commit()
    assert not rig.topic.producers
