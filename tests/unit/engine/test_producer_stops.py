"""How often and how long quotas stopped producers."""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.engine.producer_stops import ProducerStops
from headgate.flow.quota.backlog_quota import QuotaType

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
