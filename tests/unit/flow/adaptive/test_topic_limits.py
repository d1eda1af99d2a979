"""Both laws on one topic: each by itself, and the tighter of both (law 5.5)."""

from __future__ import annotations

import pytest

from headgate.base.units import NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law, PublishLimit, Rule
from headgate.flow.adaptive.natural_rate import NaturalRate
from headgate.flow.adaptive.topic_limits import TopicLimits, differs

SETTINGS = AdaptiveSettings(law=Law.DRAIN)


def natural(messages: int = 1_000) -> NaturalRate:
    """Of messages of 1,000 bytes; not known with 0."""
    rate = NaturalRate()
    for second in range(2):
        rate.observe(
            messages * second, messages * second * 1_000, False, second * NS_PER_S, NS_PER_S
        )
    return rate


def test_nothing_asked_is_no_limit() -> None:
    limits = TopicLimits()
    assert limits.follow_pressure(0.0, natural(), False, SETTINGS) is None
    assert limits.follow_pressure(1.0, natural(0), False, SETTINGS) is None
    assert limits.follow_drain(None, 900.0, 1_000.0, False, SETTINGS) is None
    assert limits.follow_drain(900.0, 900.0, 1_000.0, True, SETTINGS) is None
    assert limits.tightest() == (None, False)


def test_the_tighter_of_both_counts() -> None:
    """Rule 5.5."""
    limits, rate = TopicLimits(), natural()
    assert limits.follow_drain(900_000.0, 1e6, 1e6, False, SETTINGS) is Rule.TARGET
    assert limits.tightest() == (PublishLimit(None, 900_000), True)
    assert limits.follow_pressure(1.0, rate, False, SETTINGS) is Rule.STEP
    assert limits.tightest() == (PublishLimit(750, 750_000), False)
    assert limits.follow_drain(500_000.0, 1e6, 1e6, True, SETTINGS) is Rule.TARGET
    assert limits.tightest() == (PublishLimit(750, 500_000), True)


def test_each_ends_separately() -> None:
    limits, rate = TopicLimits(), natural()
    limits.follow_drain(-5.0, 1e6, 1e6, False, SETTINGS)
    limits.follow_pressure(0.1, rate, False, SETTINGS)
    rules = [limits.follow_pressure(0.0, rate, False, SETTINGS) for _ in range(4)]
    assert rules == [Rule.RAMP, Rule.RAMP, Rule.CLEAR, None]
    assert limits.tightest() == (PublishLimit(None, 1), True)
    for _ in range(4):
        limits.follow_drain(None, 0.0, 1e6, False, SETTINGS)
    assert limits.tightest() == (None, False)


@pytest.mark.parametrize(
    ("published", "was_slowed", "ends"),
    [(0.0, False, True), (0.0, True, False), (0.0, None, True), (5e5, None, False)],
)
def test_what_is_only_simulated_is_needed_while_more_is_published(
    published: float, was_slowed: bool | None, ends: bool
) -> None:
    """Rule 5.2: nothing waits for a limit that is not in force."""
    limits = TopicLimits()
    limits.follow_drain(1e5, 1e6, 1e6, was_slowed, SETTINGS)
    for _ in range(8):
        limits.follow_drain(1e5, published, 1e6, was_slowed, SETTINGS)
    assert (limits.tightest()[0] is None) is ends


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (PublishLimit(100, 100), None, True),
        (PublishLimit(100, 100), PublishLimit(100, 100), False),
        (PublishLimit(102, 98), PublishLimit(100, 100), False),
        (PublishLimit(100, 97), PublishLimit(100, 100), True),
        (PublishLimit(103, 100), PublishLimit(100, 100), True),
        (PublishLimit(None, 100), PublishLimit(100, 100), True),
        (PublishLimit(2, None), PublishLimit(1, None), True),
    ],
)
def test_hardly_any_difference_is_none(
    new: PublishLimit, old: PublishLimit | None, expected: bool
) -> None:
    """Rule 5.6."""
    assert differs(new, old) is expected
