"""Law drain: the estimate of the drain, the target, the limit's way (law 5.5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law, Rule, TopicSignals
from headgate.flow.adaptive.drain import (
    DRAIN_FALL,
    DRAIN_RISE,
    DrainLimit,
    DrainRate,
    drain_target,
    seconds_to_breach,
)

SETTINGS = AdaptiveSettings(law=Law.DRAIN)
SIZE = 12_000


def drained(*per_second: int, backlog: int = 10_000) -> DrainRate:
    """After so many seconds with that much done in each, and a backlog left."""
    rate, done = DrainRate(), 0
    rate.observe(done, backlog, 0)
    for second, amount in enumerate(per_second, 1):
        done += amount
        rate.observe(done, backlog, second * NS_PER_S)
    return rate


def signals(
    backlog: int = 0, size: int | None = SIZE, age_ms: int = -1, age_limit_ms: int | None = None
) -> TopicSignals:
    return TopicSignals(
        0, 0, False, backlog_bytes=backlog, size_limit=size, age_ms=age_ms,
        age_limit_ms=age_limit_ms,
    )  # fmt: skip


def test_the_first_sample_is_the_drain() -> None:
    assert drained().bytes_per_s is None
    assert drained(1_000).bytes_per_s == 1_000


def test_it_falls_at_once_and_rises_slowly() -> None:
    """Rule 5.5."""
    assert drained(1_000, 2_000).bytes_per_s == pytest.approx(1_000 + DRAIN_RISE * 1_000)
    assert drained(1_000, 0).bytes_per_s == pytest.approx(1_000 * (1 - DRAIN_FALL))
    assert DRAIN_FALL > 3 * DRAIN_RISE


def test_consumers_without_work_say_nothing_about_what_they_can() -> None:
    assert drained(0, backlog=0).bytes_per_s is None
    assert drained(1_000, 10, backlog=0).bytes_per_s == 1_000
    assert drained(1_000, 2_000, backlog=0).bytes_per_s == pytest.approx(1_200)


def test_who_never_did_anything_drains_nothing() -> None:
    assert drained(0).bytes_per_s == 0


def test_a_seek_back_is_no_sample() -> None:
    rate = drained(1_000)
    rate.observe(0, 10_000, 2 * NS_PER_S)
    assert rate.bytes_per_s == 1_000
    rate.observe(1_000, 10_000, 3 * NS_PER_S)
    assert rate.bytes_per_s == 1_000


def test_a_backlog_that_is_skipped_was_not_drained() -> None:
    rate = drained(*[1_000] * 5, 1_000_000_000)
    assert rate.bytes_per_s == pytest.approx(1_000 + DRAIN_RISE * 3_000)
    assert rate.typical_bytes_per_s < 2_000


def test_who_comes_back_is_believed_with_the_second_sample() -> None:
    rate = drained(*[1_000] * 5, *[0] * 300, 800)
    assert rate.bytes_per_s is not None
    assert rate.bytes_per_s < 1
    rate = drained(*[1_000] * 5, *[0] * 300, *[800] * 11)
    assert rate.bytes_per_s is not None
    assert rate.bytes_per_s > 700


def test_short_cycles_are_gathered() -> None:
    rate = drained(1_000)
    for part in range(1, 10):
        rate.observe(1_000 + 100 * part, 10_000, NS_PER_S + 50 * part * NS_PER_MS)
    assert rate.bytes_per_s == 1_000
    rate.observe(2_000, 10_000, NS_PER_S + 500 * NS_PER_MS)
    assert rate.bytes_per_s == pytest.approx(1_200)


def test_the_typical_drain_outlasts_a_pause() -> None:
    rate = drained(*[1_000] * 30, 0, 0, 0)
    assert rate.bytes_per_s is not None
    assert rate.bytes_per_s < 30
    assert rate.typical_bytes_per_s > 850


@pytest.mark.parametrize(
    ("backlog", "expected"),
    [(8_400, 1_000), (0, 1_840), (4_400, 1_400), (12_000, 640), (18_400, 0), (28_400, -1_000)],
)
def test_the_target_leads_to_the_set_point(backlog: int, expected: float) -> None:
    """Rule 5.5: the drain, and a tenth of what is missing to 70 % of the quota."""
    steady = drained(*[1_000] * 6)
    assert drain_target(signals(backlog), steady, SETTINGS) == pytest.approx(expected)


def test_a_topic_that_begins_is_slowed_only_where_half_of_the_room_is_taken() -> None:
    """Consumers that acknowledge in lumps look stopped at first."""
    begun = drained(0)
    assert drain_target(signals(4_199), begun, SETTINGS) == float("inf")
    assert drain_target(signals(4_200), begun, SETTINGS) == pytest.approx(420)
    assert drain_target(signals(4_199), drained(*[0] * 6), SETTINGS) == pytest.approx(420.1)


def test_a_time_quota_counts_as_the_bytes_that_are_drained_in_it() -> None:
    """Rule 5.5: 12 s of 1,000 B/s."""
    by_age = signals(4_400, size=None, age_limit_ms=12_000)
    steady = drained(*[1_000] * 6)
    assert drain_target(by_age, steady, SETTINGS) == pytest.approx(1_400)
    both = signals(4_400, size=1_000_000, age_limit_ms=12_000)
    assert drain_target(both, steady, SETTINGS) == pytest.approx(1_400)
    roomy = signals(4_400, size=SIZE, age_limit_ms=3_600_000)
    assert drain_target(roomy, steady, SETTINGS) == pytest.approx(1_400)


def test_a_time_quota_asks_nothing_of_consumers_that_pause_until_it_is_near() -> None:
    pausing = drained(*[1_000] * 10, 0, 0, 0, 0)
    far = signals(4_000, size=None, age_ms=5_000, age_limit_ms=3_600_000)
    assert drain_target(far, pausing, SETTINGS) == float("inf")
    gone = drained(0, 0)
    assert drain_target(far, gone, SETTINGS) == float("inf")
    near = signals(4_000, size=None, age_ms=1_300_000, age_limit_ms=3_600_000)
    assert drain_target(near, gone, SETTINGS) < 0


@pytest.mark.parametrize(
    ("backlog", "published", "drain", "expected"),
    [
        (6_000, 3_000, 1_000.0, 3.0),
        (12_000, 0, 1_000.0, 0.0),
        (6_000, 1_000, 1_000.0, None),
        (6_000, 500, 1_000.0, None),
        (6_000, 1_000, None, 6.0),
        (0, 1_000.1, 1_000.0, None),
    ],
)
def test_seconds_to_breach(
    backlog: int, published: float, drain: float | None, expected: float | None
) -> None:
    """Rule 5.5."""
    assert seconds_to_breach(signals(backlog), published, drain) == expected
    assert seconds_to_breach(signals(backlog, size=None), published, drain) is None


def follow(limit: DrainLimit, target: float | None, needed: bool = True) -> tuple[int, Rule]:
    rule = limit.follow(target, 1_000, needed, SETTINGS)
    return round(limit.bytes), rule


def test_a_limit_falls_at_once_and_rises_in_steps() -> None:
    """Rule 5.5: the step bounds only the rise, and no floor holds it."""
    limit = DrainLimit(900)
    assert limit.bytes == 900
    assert follow(limit, 20) == (20, Rule.TARGET)
    assert follow(limit, -500) == (1, Rule.MINIMUM)
    assert follow(limit, 1_000) == (251, Rule.STEP)
    assert follow(limit, 1_000) == (501, Rule.STEP)
    assert follow(limit, 600) == (600, Rule.TARGET)


def test_a_limit_never_begins_below_one() -> None:
    assert DrainLimit(-77).bytes == 1


def test_a_limit_ends_over_a_ramp_when_nothing_has_waited_for_it() -> None:
    limit = DrainLimit(100)
    seen = [follow(limit, 100, needed=False) for _ in range(6)]
    assert seen == [
        (100, Rule.TARGET), (100, Rule.TARGET), (350, Rule.RAMP), (600, Rule.RAMP),
        (850, Rule.RAMP), (1_100, Rule.CLEAR),
    ]  # fmt: skip


def test_a_ramp_ends_when_something_waits_again() -> None:
    limit = DrainLimit(100)
    for _ in range(4):
        follow(limit, 100, needed=False)
    assert follow(limit, 120) == (120, Rule.TARGET)


def test_without_a_target_the_ramp_begins_at_once() -> None:
    limit = DrainLimit(800)
    assert follow(limit, None) == (1_050, Rule.CLEAR)


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.booleans()), min_size=1, max_size=50),
    st.floats(1, 1e9),
)
def test_limits_keep_their_bounds(story: list[tuple[float, bool]], natural: float) -> None:
    """Rule 5.5: at least 1, risen by a step at most, above the target only on the ramp."""
    limit = DrainLimit(story[0][0])
    for target, needed in story:
        before = limit.bytes
        rule = limit.follow(target, natural, needed, SETTINGS)
        assert limit.bytes >= 1
        assert limit.bytes <= before + natural * SETTINGS.max_rate_change_factor + 1e-6
        if rule in (Rule.CLEAR, Rule.RAMP):
            assert not needed
        else:
            assert limit.bytes <= max(1, target)
        if rule is Rule.CLEAR:
            return
