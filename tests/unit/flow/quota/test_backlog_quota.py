"""The law of backlog quotas: marks, precedence, the speed of an approach (law 4)."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.quota.backlog_quota import (
    BREACH_S_MAX,
    NO_QUOTAS,
    Approach,
    Quota,
    QuotaPolicy,
    Quotas,
    QuotaSetting,
    QuotaType,
    SlowedBy,
    age_evicted_ms,
    age_exceeded,
    age_ms,
    age_released,
    due_ns,
    effective_quota,
    size_after_eviction,
    size_exceeded,
    size_released,
)

HOLD, EVICT = QuotaPolicy.HOLD, QuotaPolicy.EVICTION


def test_names_are_pulsars() -> None:
    assert [kind.label for kind in QuotaType] == ["size", "time"]
    assert [kind.pulsar_name for kind in QuotaType] == ["destination_storage", "message_age"]
    assert [policy.stops_producers for policy in QuotaPolicy] == [True, True, False]
    assert not NO_QUOTAS.any
    assert Quotas(None, Quota(QuotaType.TIME, 1, HOLD, "topic policy")).any


def test_the_most_specific_setting_decides_as_a_whole() -> None:
    """Rule 4.8."""
    found = effective_quota(
        QuotaType.SIZE,
        topic=QuotaSetting(10, EVICT),
        namespace=QuotaSetting(20, HOLD),
        namespace_name="acme/ns",
        broker=QuotaSetting(30, HOLD),
        broker_key="backlogQuotaDefaultLimitBytes",
    )
    assert found.quota == Quota(QuotaType.SIZE, 10, EVICT, "topic policy")
    found = effective_quota(
        QuotaType.SIZE, namespace=QuotaSetting(20, HOLD), namespace_name="acme/ns"
    )
    assert found.quota == Quota(QuotaType.SIZE, 20, HOLD, "namespace policy acme/ns")
    found = effective_quota(QuotaType.TIME, broker=QuotaSetting(7, HOLD), broker_key="some.key")
    assert found.quota == Quota(QuotaType.TIME, 7_000, HOLD, "broker setting some.key")
    assert effective_quota(QuotaType.TIME).quota is None


@pytest.mark.parametrize("limit", [None, -1, -(1 << 63)])
def test_a_setting_without_a_limit_ends_the_search(limit: int | None) -> None:
    for kind in QuotaType:
        found = effective_quota(
            kind, topic=QuotaSetting(limit, HOLD), namespace=QuotaSetting(5, HOLD)
        )
        assert found.quota is None
        assert found.source == "topic policy"


def test_a_limit_of_zero_blocks_by_size_and_is_none_by_time() -> None:
    zero = QuotaSetting(0, HOLD)
    assert effective_quota(QuotaType.TIME, topic=zero).quota is None
    quota = effective_quota(QuotaType.SIZE, topic=zero).quota
    assert quota is not None
    assert size_exceeded(0, quota.limit)
    assert not size_released(0, quota.limit, 0)


def test_a_hold_ends_at_95_percent_or_an_entry_below_the_limit() -> None:
    assert size_released(950, 1_000, 10)
    assert not size_released(951, 1_000, 10)
    assert size_released(800, 1_000, 200)
    assert not size_released(801, 1_000, 200)
    # An entry that is larger than the limit goes when nothing is owed.
    assert size_released(0, 1_000, 5_000)
    assert not size_released(1, 1_000, 5_000)


@given(st.integers(1, 1 << 62), st.integers(0, 1 << 23), st.integers(0, 1 << 62))
def test_who_is_released_is_not_over(limit: int, entry: int, backlog: int) -> None:
    if size_released(backlog, limit, entry):
        assert not size_exceeded(backlog, limit)
    assert size_released(0, limit, entry)
    if not size_released(backlog, limit, entry):
        assert backlog > 0
        assert backlog * 100 > limit * 95 - 100 or backlog > limit - entry


@given(st.integers(1, 1 << 40), st.integers(0, 1 << 40))
def test_ages_are_released_below_the_limit_and_evicted_from_90_percent_on(
    limit_ms: int, age: int
) -> None:
    if age_released(age, limit_ms):
        assert not age_exceeded(age, limit_ms)
    assert age_released(-1, limit_ms)
    going = age_evicted_ms(limit_ms)
    assert going * 10 >= limit_ms * 9 > (going - 1) * 10
    assert age_exceeded(going, limit_ms) == (going >= limit_ms)


def test_eviction_leaves_90_percent() -> None:
    assert size_after_eviction(1_000) == 900
    assert size_after_eviction(1) == 0


def test_ages_and_due_times() -> None:
    assert age_ms(5_000, None) == -1
    assert age_ms(5_000, 3_000) == 2_000
    assert age_ms(5_000, 6_000) == 0  # the wall clock stepped back
    assert due_ns(3_000, 10_000, 5_000, 77) == 77 + 8_000 * NS_PER_MS


def test_a_steady_approach_is_reported_exactly() -> None:
    approach = Approach(0, 0)
    assert approach.seconds_to(1_000, 0) is None
    for second in range(1, 11):
        approach.observe(10 * second, second * NS_PER_S)
    assert approach.seconds_to(1_000, 100) == pytest.approx(90)
    assert approach.seconds_to(1_000, 120) == pytest.approx(88)
    assert approach.seconds_to(100, 100) == 0.0


def test_the_first_look_counts_no_more_than_those_that_follow() -> None:
    """A producer that is slowed after a second: what it did before is soon the least of it."""
    approach, level = Approach(0, 0), 300
    approach.observe(level, NS_PER_S)
    for second in range(2, 20):
        level += 20
        approach.observe(level, second * NS_PER_S)
    speed = 300 / approach.seconds_to(level + 300, level)  # type: ignore[operator]
    assert speed == pytest.approx(level / 19, rel=0.15)


def test_who_stands_or_falls_does_not_approach() -> None:
    approach = Approach(100, 0)
    for second in range(1, 30):
        approach.observe(100, second * NS_PER_S)
    assert approach.seconds_to(1_000, 100) is None
    for second in range(30, 40):
        approach.observe(100 - second, second * NS_PER_S)
    assert approach.seconds_to(1_000, 61) is None


def test_a_change_of_speed_is_followed_smoothly() -> None:
    approach = Approach(0, 0)
    level = 0.0
    for second in range(1, 11):
        level += 10
        approach.observe(level, second * NS_PER_S)
    for second in range(11, 14):
        level += 100
        approach.observe(level, second * NS_PER_S)
    after_3 = approach.seconds_to(10_000, level)
    for second in range(14, 114):
        level += 100
        approach.observe(level, second * NS_PER_S)
    assert after_3 is not None
    assert 100 < after_3 < 1_000  # between the two speeds
    assert approach.seconds_to(level + 500, level) == pytest.approx(5, rel=0.02)


def test_what_is_a_day_away_or_hardly_observed_is_not_told() -> None:
    approach = Approach(0, 0)
    approach.observe(1, NS_PER_S)
    assert approach.seconds_to(2, 1) is None  # one second is no observation
    approach.observe(2, 2 * NS_PER_S)
    approach.observe(1, 2 * NS_PER_S)  # no time passed: no look
    assert approach.seconds_to(2 + BREACH_S_MAX, 2) == pytest.approx(BREACH_S_MAX)
    assert approach.seconds_to(3 + BREACH_S_MAX, 2) is None


def test_an_approach_ends_with_what_drove_it() -> None:
    approach = Approach(0, 0)
    for second in range(1, 31):
        approach.observe(10 * second, second * NS_PER_S)
    assert approach.seconds_to(1_000, 300) == pytest.approx(70)
    for second in range(31, 36):
        approach.observe(300, second * NS_PER_S)
    assert approach.seconds_to(1_000, 300) is None
    for second in range(36, 40):
        approach.observe(300 + 5 * (second - 35), second * NS_PER_S)
    assert approach.seconds_to(1_000, 320) == pytest.approx(680 / 5)


def told(
    slowed_by: SlowedBy, level_at: Callable[[int], float], seconds: int, limit: float = 1_000_000
) -> list[float | None]:
    """The seconds to a breach, told each second of a level."""
    approach, found = Approach(level_at(0), 0), []
    for second in range(1, seconds + 1):
        level = level_at(second)
        approach.observe(level, second * NS_PER_S, slowed_by if second % 3 else SlowedBy.NOTHING)
        found.append(approach.seconds_to(limit, level))
    return found


def controlled(seconds: int) -> float:
    """A backlog that adaptive throttling slows until it stands at 69 % of the quota, with a noise
    of some entries: consumers acknowledge many at once."""
    return 690_000 * (1 - exp(-seconds / 120)) + Random(seconds).randrange(2_000)


def test_who_is_slowed_by_the_controller_has_no_forecast_that_comes_and_goes() -> None:
    assert set(told(SlowedBy.CONTROLLER, controlled, 3_600)) == {None}
    without = told(SlowedBy.NOTHING, controlled, 3_600)[1_800:]
    assert None in without
    assert set(without) != {None}


def test_who_stands_still_at_a_publish_limit_has_no_forecast_either() -> None:
    def level(second: int) -> float:
        return 500_000 + Random(second).randrange(2_000)

    assert set(told(SlowedBy.LIMIT, level, 1_800)[60:]) == {None}


@pytest.mark.parametrize("slowed_by", [SlowedBy.LIMIT, SlowedBy.CONTROLLER])
def test_a_level_that_goes_on_to_rise_has_a_forecast_whatever_holds_the_producers(
    slowed_by: SlowedBy,
) -> None:
    found = told(slowed_by, lambda second: 300 * second + Random(second).randrange(100), 1_800)
    assert None not in found[60:]
    assert found[-1] == pytest.approx(460_000 / 300, rel=0.1)


def test_a_hold_that_is_over_counts_for_as_long_as_the_speed_does() -> None:
    approach = Approach(0, 0)
    approach.observe(10, NS_PER_S, SlowedBy.CONTROLLER)
    for second in range(2, 21):
        approach.observe(10 * second, second * NS_PER_S)
    assert approach.seconds_to(1_000, 200) is None
    approach.observe(210, 21 * NS_PER_S)
    assert approach.seconds_to(1_000, 210) == pytest.approx(79)


def test_a_backlog_that_was_cleared_is_measured_anew() -> None:
    approach = Approach(0, 0)
    for second in range(1, 31):
        approach.observe(100 * second, second * NS_PER_S)
    approach.observe(1, 31 * NS_PER_S)
    assert approach.seconds_to(4_000, 1) is None
    for second in range(32, 36):
        approach.observe(second - 30, second * NS_PER_S)
    assert approach.seconds_to(3_605, 5) == pytest.approx(3_600)
