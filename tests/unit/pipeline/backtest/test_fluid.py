"""The fluid model, case by case."""

from __future__ import annotations

from math import inf

import pytest

from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.pipeline.backtest.fluid import FlowConditions, FluidModel, QuotaRule

HOLD, EXCEPTION, EVICTION = QuotaPolicy.HOLD, QuotaPolicy.EXCEPTION, QuotaPolicy.EVICTION


def conditions(
    arrivals: float,
    capacity: float,
    *,
    limit: float = inf,
    adaptive: float = inf,
    size: QuotaRule | None = None,
    time: QuotaRule | None = None,
) -> FlowConditions:
    return FlowConditions(arrivals, capacity, limit, adaptive, size, time)


def fluid(backlog: float = 0.0, age_s: float = 0.0, *, tracks_age: bool = False) -> FluidModel:
    return FluidModel(backlog, age_s, tracks_age)


def test_without_limits_the_backlog_is_what_consumers_leave() -> None:
    flow = fluid()
    flow.run(10, conditions(100, 60))
    assert (flow.published, flow.backlog, flow.parked) == (1_000, 400, 0)
    flow.run(10, conditions(10, 60))
    assert flow.backlog == 0
    assert flow.totals.backlog_max == 400
    assert flow.totals.parked_s == 0
    assert flow.done == 1_100


def test_a_limit_parks_the_excess_and_admits_it_later() -> None:
    flow = fluid()
    flow.run(10, conditions(100, 1_000, limit=80))
    assert (flow.published, flow.parked) == (800, 200)
    assert flow.totals.offered_bytes == 10_000
    assert flow.totals.wasted_bytes == 10_000 - 800
    # 200 wait and 40 a second come: at 80 they are gone after 5 s.
    flow.run(10, conditions(40, 1_000, limit=80))
    assert flow.published == 800 + 5 * 80 + 5 * 40
    assert flow.parked == 0
    assert flow.totals.parked_s == 15
    assert flow.totals.parked_max == 200


def test_a_limit_that_ends_admits_all_parked_bytes_at_once() -> None:
    flow = fluid()
    flow.run(10, conditions(100, 10, limit=50))
    flow.run(1, conditions(100, 10))
    assert (flow.parked, flow.published) == (0, 1_100)
    assert flow.totals.parked_s == 10


def test_at_a_quota_that_holds_producers_add_what_consumers_take() -> None:
    rule = QuotaRule(1_000, HOLD)
    flow = fluid()
    flow.run(30, conditions(100, 50, size=rule))
    # Full after 20 s; then 50 of 100 a second wait.
    assert (flow.backlog, flow.parked) == (1_000, 500)
    assert flow.totals.over_s == 10
    assert flow.totals.quota_s == 30
    assert flow.published == 20 * 100 + 10 * 50
    flow.run(20, conditions(0, 50, size=rule))
    # What waits goes first; the backlog falls after that.
    assert (flow.parked, flow.backlog) == (0, 500)
    assert flow.totals.over_s == 20


def test_a_backlog_above_the_quota_has_to_shrink_first() -> None:
    flow = fluid(2_000)
    flow.run(10, conditions(100, 200, size=QuotaRule(1_000, HOLD)))
    # 5 s of nothing; then 500 wait, and 200 of them go each second.
    assert flow.published == 5 * 200
    assert (flow.backlog, flow.parked) == (1_000, 0)
    assert flow.totals.over_s == 10


def test_a_quota_of_zero_always_stops_producers() -> None:
    flow = fluid()
    flow.run(10, conditions(100, 200, size=QuotaRule(0, HOLD)))
    assert (flow.published, flow.parked, flow.totals.over_s) == (0, 1_000, 10)


def test_a_refused_producer_parks_nothing() -> None:
    flow = fluid()
    flow.run(30, conditions(100, 50, size=QuotaRule(1_000, EXCEPTION)))
    assert (flow.backlog, flow.parked) == (1_000, 0)
    assert flow.published == 2_500
    assert flow.totals.parked_s == 10


@pytest.mark.parametrize(("seconds", "acts"), [(9, 0), (10, 1), (11, 2), (12, 3), (20, 11)])
def test_eviction_takes_a_tenth_each_time(seconds: float, acts: int) -> None:
    flow = fluid()
    flow.run(seconds, conditions(200, 100, size=QuotaRule(1_000, EVICTION)))
    assert flow.totals.evicted_bytes == acts * 100
    assert flow.backlog == seconds * 100 - acts * 100
    assert flow.totals.over_s == 0


def test_the_age_is_that_of_the_oldest_byte() -> None:
    flow = fluid(1_000, 10, tracks_age=True)
    assert flow.age_s == 10
    flow.run(4, conditions(100, 100))
    # 400 of 1,000 bytes that were stored evenly over 10 s are gone.
    assert flow.age_s == pytest.approx(10 + 4 - 4)
    flow.run(7, conditions(0, 100))
    assert flow.age_s == pytest.approx(10 + 1 - 1)
    flow.run(20, conditions(0, 100))
    assert flow.age_s == -1


def test_a_time_quota_holds_until_the_oldest_is_younger_than_its_mark() -> None:
    rule = QuotaRule(10_000, HOLD)
    flow = fluid(tracks_age=True)
    flow.run(30, conditions(100, 0, time=rule))
    assert flow.published == 1_000
    assert flow.totals.over_s == 20
    flow.run(30, conditions(100, 1_000, time=rule))
    assert flow.published > 5_000
    assert flow.parked == 0


@pytest.mark.parametrize("after", [None, QuotaRule(10_000, EVICTION)])
def test_a_removed_time_quota_holds_no_producer(after: QuotaRule | None) -> None:
    flow = fluid(tracks_age=True)
    flow.run(30, conditions(100, 0, time=QuotaRule(10_000, HOLD)))
    assert (flow.published, flow.totals.over_s, flow.totals.quota_s) == (1_000, 20, 30)
    flow.run(5, conditions(100, 0, time=after))
    assert flow.published == 3_500
    assert flow.totals.over_s == 20


def test_a_time_quota_refuses_with_its_own_policy() -> None:
    flow = fluid(tracks_age=True)
    flow.run(30, conditions(100, 0, time=QuotaRule(10_000, EXCEPTION)))
    assert (flow.published, flow.parked) == (1_000, 0)


def test_time_eviction_leaves_nine_tenths_of_the_limit() -> None:
    flow = fluid(tracks_age=True)
    flow.run(10, conditions(100, 0, time=QuotaRule(10_000, EVICTION)))
    assert flow.totals.evicted_bytes == pytest.approx(100)
    assert flow.age_s == pytest.approx(9)
    flow.run(10, conditions(100, 0, time=QuotaRule(10_000, EVICTION)))
    assert flow.backlog == pytest.approx(900)


def test_only_the_limit_that_binds_slows() -> None:
    flow = fluid()
    flow.run(1, conditions(100, 50, limit=80, adaptive=90))
    assert (flow.was_parked, flow.was_slowed) == (True, False)
    flow.run(1, conditions(100, 50, limit=80, adaptive=70))
    assert flow.was_slowed


def test_the_quota_counts_for_a_wait_while_it_is_reached() -> None:
    flow = fluid(1_000)
    flow.run(1, conditions(100, 50, adaptive=70, size=QuotaRule(1_000, HOLD)))
    assert (flow.was_parked, flow.was_slowed) == (True, False)
    flow.run(1, conditions(100, 50, adaptive=30, size=QuotaRule(1_000, HOLD)))
    assert flow.was_slowed
