"""Law pressure: the arithmetic of ramp, target, step and floor (law 5.1, 5.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Rule, TopicSignals
from headgate.flow.adaptive.natural_rate import NaturalRate
from headgate.flow.adaptive.pressure import (
    CLEAR_CYCLES,
    PressureLimit,
    backlog_pressure,
    floor_rate,
    linear_pressure,
    memory_pressure,
    quota_use,
    stepped_rate,
    target_rate,
)

SETTINGS = AdaptiveSettings()
settings_of_any_kind = st.builds(
    AdaptiveSettings,
    min_rate_factor=st.floats(0.01, 1.0),
    max_rate_change_factor=st.floats(0.01, 1.0),
)


def natural(messages: int = 1_000, message_bytes: int = 1_000) -> NaturalRate:
    """One that is known."""
    rate = NaturalRate()
    for second in range(3):
        rate.observe(
            messages * second, messages * message_bytes * second, False, second * NS_PER_S, 1
        )
    return rate


def signals(
    backlog: int = 0, size: int | None = None, age: int = -1, age_limit: int | None = None
) -> TopicSignals:
    return TopicSignals(
        0, 0, False, backlog_bytes=backlog, size_limit=size, age_ms=age, age_limit_ms=age_limit
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (-1.0, 0.0), (0.0, 0.0), (0.69, 0.0), (0.70, 0.0), (0.715, 0.1), (0.7375, 0.25),
        (0.775, 0.5), (0.82, 0.8), (0.85, 1.0), (0.86, 1.0), (5.0, 1.0),
    ],
)  # fmt: skip
def test_the_ramp(value: float, expected: float) -> None:
    """Rule 5.1: 0 up to the low watermark, 1 from the high one on."""
    assert linear_pressure(value, 0.70, 0.85) == pytest.approx(expected)


@given(st.floats(0, 2), st.floats(0, 2), st.floats(0.01, 0.98), st.floats(0.01, 1))
def test_the_ramp_never_falls(one: float, other: float, low: float, width: float) -> None:
    high = low + width
    lower, higher = sorted((one, other))
    assert 0 <= linear_pressure(lower, low, high) <= linear_pressure(higher, low, high) <= 1


def test_memory_presses_by_what_is_used_of_what_may_be() -> None:
    assert memory_pressure(700, 1_000, SETTINGS) == 0
    assert memory_pressure(775, 1_000, SETTINGS) == pytest.approx(0.5)
    assert memory_pressure(2_000, 1_000, SETTINGS) == 1


@pytest.mark.parametrize(
    ("backlog", "limit", "expected"),
    [(50, 100, 0.5), (0, 100, 0.0), (150, 100, 1.5), (50, None, 0.0), (-1, 100, 0.0), (0, 0, 1.0)],
)
def test_the_use_of_a_quota(backlog: int, limit: int | None, expected: float) -> None:
    assert quota_use(backlog, limit) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (signals(75, 100), 0.0),
        (signals(80, 100), 1 / 3),
        (signals(82, 100), 7 / 15),
        (signals(95, 100), 1.0),
        (signals(age=82_500, age_limit=100_000), 0.5),
        (signals(80, 100, 82_500, 100_000), 0.5),
        (signals(82, 100, 80_000, 100_000), 7 / 15),
        (signals(age=-1, age_limit=100), 0.0),
    ],
)
def test_d11_the_quota_that_presses_harder_counts(found: TopicSignals, expected: float) -> None:
    """Rule 5.1: the time quota as well as the size quota."""
    assert backlog_pressure(found, SETTINGS) == pytest.approx(expected)


def test_d11_a_quota_that_evicts_slows_nobody() -> None:
    """The caller has no limit to tell then."""
    assert backlog_pressure(signals(10**12, None, 10**9, None), SETTINGS) == 0


@pytest.mark.parametrize(
    ("pressure", "expected"), [(0.0, 1_000), (0.1, 910), (0.5, 550), (0.9, 190), (1.0, 100)]
)
def test_the_target(pressure: float, expected: float) -> None:
    assert target_rate(1_000, pressure, SETTINGS) == pytest.approx(expected)


@pytest.mark.parametrize(("rate", "expected"), [(1_000, 100), (10, 1), (3, 1), (0, 1)])
def test_the_floor_is_a_tenth_and_at_least_one(rate: float, expected: float) -> None:
    assert floor_rate(rate, SETTINGS) == pytest.approx(expected)
    assert target_rate(rate, 1.0, SETTINGS) == pytest.approx(expected)


def test_full_pressure_goes_down_in_four_steps() -> None:
    """Rule 5.1: 1000/s at full pressure."""
    rate, seen = 1_000.0, []
    for _ in range(5):
        rate = stepped_rate(rate, target_rate(1_000, 1.0, SETTINGS), 1_000, SETTINGS)
        seen.append(round(rate))
    assert seen == [750, 500, 250, 100, 100]


def test_and_back_up_in_four() -> None:
    rate, seen = 100.0, []
    for _ in range(5):
        rate = stepped_rate(rate, 1_000, 1_000, SETTINGS)
        seen.append(round(rate))
    assert seen == [350, 600, 850, 1_000, 1_000]


@pytest.mark.parametrize(
    ("present", "target", "expected"),
    [(1_000, 900, 900), (1_000, 700, 750), (100, 300, 300), (100, 400, 350), (500, 500, 500)],
)
def test_a_step_ends_at_the_target(present: float, target: float, expected: float) -> None:
    assert stepped_rate(present, target, 1_000, SETTINGS) == expected


@given(st.floats(1, 1e12), st.floats(0, 1), st.floats(1, 1e12), settings_of_any_kind)
def test_steps_and_targets_keep_their_bounds(
    rate: float, pressure: float, present: float, settings: AdaptiveSettings
) -> None:
    """Rule 5.1: a step is at most its part of the natural rate, and never beyond the target."""
    target = target_rate(rate, pressure, settings)
    assert floor_rate(rate, settings) <= target <= max(rate, 1.0) * (1 + 1e-9)
    moved = stepped_rate(present, target, rate, settings)
    slack = 1e-6 * max(rate, present)
    assert abs(moved - present) <= settings.max_rate_change_factor * rate + slack
    assert min(present, target) <= moved <= max(present, target)


@given(st.floats(0, 1), st.floats(0, 1))
def test_harder_pressure_never_allows_more(one: float, other: float) -> None:
    lower, higher = sorted((one, other))
    assert target_rate(1e6, higher, SETTINGS) <= target_rate(1e6, lower, SETTINGS)


def test_a_limit_begins_at_the_natural_rate() -> None:
    rate = natural()
    limit = PressureLimit(rate)
    assert (limit.messages, limit.bytes) == (rate.messages, rate.bytes)
    assert limit.follow(1.0, rate, False, SETTINGS) is Rule.STEP
    assert (round(limit.messages), round(limit.bytes)) == (750, 750_000)
    assert limit.follow(0.5, rate, False, SETTINGS) is Rule.TARGET
    assert round(limit.messages) == 550


def test_the_rule_says_what_bound_it() -> None:
    """Rule 5.6."""
    rate = natural()
    limit = PressureLimit(rate)
    rules = [limit.follow(1.0, rate, False, SETTINGS) for _ in range(5)]
    assert rules == [Rule.STEP, Rule.STEP, Rule.STEP, Rule.FLOOR, Rule.FLOOR]


def test_d9_a_limit_stays_until_the_pressure_was_clear_for_three_cycles() -> None:
    """Rule 5.2."""
    rate = natural()
    limit = PressureLimit(rate)
    for _ in range(4):
        limit.follow(1.0, rate, False, SETTINGS)
    seen = []
    for pressure in (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        rule = limit.follow(pressure, rate, False, SETTINGS)
        seen.append((round(limit.messages), rule))
    assert [messages for messages, _ in seen] == [100] * 5 + [350, 600, 850, 1_000]
    assert [rule for _, rule in seen][-3:] == [Rule.RAMP, Rule.RAMP, Rule.CLEAR]
    assert CLEAR_CYCLES == 3


def test_a_limit_probes_upward_where_it_is_used_up_and_does_no_harm() -> None:
    """Rule 5.4."""
    rate = natural()
    limit = PressureLimit(rate)
    limit.follow(0.2, rate, True, SETTINGS)
    before = rate.messages
    limit.follow(0.2, rate, True, SETTINGS)
    assert rate.messages == pytest.approx(1.01 * before)
    grown = rate.messages
    limit.follow(0.3, rate, True, SETTINGS)  # it rises
    limit.follow(0.3, rate, False, SETTINGS)  # not used up
    limit.follow(1.0, rate, True, SETTINGS)  # on its way down
    assert rate.messages == grown
