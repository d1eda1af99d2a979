"""The words of adaptive publish throttling: what settings are allowed, how long limits may live."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law, must_drop_limits


def test_defaults_are_the_documents() -> None:
    """Rule 5.1."""
    settings = AdaptiveSettings()
    assert (settings.memory_low, settings.memory_high) == (0.70, 0.85)
    assert (settings.backlog_low, settings.backlog_high) == (0.75, 0.90)
    assert (settings.min_rate_factor, settings.max_rate_change_factor) == (0.10, 0.25)
    assert settings.interval_ns == NS_PER_S
    assert settings.law is Law.PRESSURE
    assert not settings.observe_only
    assert (settings.drain_set_point, settings.drain_horizon_ns) == (0.70, 10 * NS_PER_S)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"memory_low": 0.85}, "memory_low is 0.85 and memory_high 0.85"),
        ({"memory_low": 0.0}, "memory_low is 0.0"),
        ({"memory_high": 1.01}, "memory_high 1.01"),
        ({"backlog_low": 0.95}, "backlog_low is 0.95 and backlog_high 0.9"),
        ({"backlog_high": 0.75}, "backlog_high 0.75"),
        ({"min_rate_factor": 0.0}, "min_rate_factor is 0.0"),
        ({"min_rate_factor": 1.5}, "min_rate_factor is 1.5"),
        ({"max_rate_change_factor": 0.0}, "max_rate_change_factor is 0.0"),
        ({"drain_set_point": float("nan")}, "drain_set_point is nan"),
        ({"drain_horizon_ns": 0}, "drain_horizon_ns is 0"),
        ({"interval_ns": 10 * NS_PER_MS - 1}, "interval_ns is 9999999"),
        ({"interval_ns": 600 * NS_PER_S + 1}, "interval_ns is 600000000001"),
    ],
)
def test_d13_settings_out_of_range_are_refused(wrong: dict[str, Any], named: str) -> None:
    """Rules 5.1 and 5.2."""
    with pytest.raises(InputError, match=named) as refused:
        AdaptiveSettings(**wrong)
    assert "allowed" in str(refused.value)


def test_the_ends_of_the_ranges_are_allowed() -> None:
    for interval_ns in (10 * NS_PER_MS, 600 * NS_PER_S):
        AdaptiveSettings(
            interval_ns=interval_ns, memory_low=0.999, memory_high=1.0, min_rate_factor=1.0,
            max_rate_change_factor=1.0, drain_set_point=1.0, drain_horizon_ns=1,
        )  # fmt: skip


def test_d18_limits_do_not_outlive_their_controller() -> None:
    """Rule 5.2: ten intervals, but never less than half a minute."""
    start_ns = -5 * NS_PER_S
    assert not must_drop_limits(start_ns, start_ns + 30 * NS_PER_S - 1, NS_PER_S)
    assert must_drop_limits(start_ns, start_ns + 30 * NS_PER_S, NS_PER_S)
    assert not must_drop_limits(start_ns, start_ns + 29 * NS_PER_S, 10 * NS_PER_MS)
    assert not must_drop_limits(start_ns, start_ns + 99 * NS_PER_S, 10 * NS_PER_S)
    assert must_drop_limits(start_ns, start_ns + 100 * NS_PER_S, 10 * NS_PER_S)


@given(st.integers(10 * NS_PER_MS, 600 * NS_PER_S), st.integers(-(1 << 62), 1 << 62))
def test_a_few_cycles_that_fail_or_are_late_lift_nothing(interval_ns: int, last_ns: int) -> None:
    assert not must_drop_limits(last_ns, last_ns + 3 * interval_ns, interval_ns)
    assert must_drop_limits(last_ns, last_ns + 6_000 * NS_PER_S, interval_ns)
