"""Rates cover between one and two sample periods and are never stale."""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.engine.rate_meter import RateMeter


def test_zero_before_the_first_sample() -> None:
    assert RateMeter(2).per_second((10, 20), NS_PER_S) == (0.0, 0.0)


def test_a_rate_covers_up_to_two_periods() -> None:
    meter = RateMeter(1)
    meter.sample((0,), 0)
    assert meter.per_second((50,), 5 * NS_PER_S) == (10.0,)
    meter.sample((50,), 5 * NS_PER_S)
    assert meter.per_second((150,), 10 * NS_PER_S) == (15.0,)
    meter.sample((150,), 10 * NS_PER_S)
    assert meter.per_second((150,), 15 * NS_PER_S) == (10.0,)


def test_an_idle_subject_reads_zero_after_two_samples() -> None:
    meter = RateMeter(1)
    assert meter.sample((0,), 0) is False
    assert meter.sample((7,), NS_PER_S) is True
    assert meter.sample((7,), 2 * NS_PER_S) is False
    assert meter.per_second((7,), 3 * NS_PER_S) == (0.0,)
