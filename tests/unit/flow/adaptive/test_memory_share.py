"""Who takes the memory when it runs short (law 5.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import KIB, MIB, NS_PER_MS, NS_PER_S
from headgate.flow.adaptive.cycle import MemoryRule
from headgate.flow.adaptive.memory_share import MemoryAttribution, MemoryBaseline


class Topics:
    """Some topics and what each holds."""

    def __init__(self, count: int) -> None:
        self.attribution = MemoryAttribution()
        self.held = [MemoryBaseline() for _ in range(count)]
        self.now_ns = 0
        self.used_share = 0.9
        self.is_enforced = True
        self.turned: MemoryRule | None = None

    def cycle(self, pressure: float, *held_bytes: int) -> list[float]:
        self.now_ns += NS_PER_S
        self.turned = self.attribution.begin_cycle(
            pressure, self.used_share, self.now_ns, is_enforced=self.is_enforced
        )
        return [
            self.attribution.pressure_on(held, size)
            for held, size in zip(self.held, held_bytes, strict=True)
        ]


def test_d10_who_does_not_grow_keeps_its_rate() -> None:
    """Rule 5.3."""
    topics = Topics(3)
    assert topics.cycle(0.0, 500 * MIB, MIB, 0) == [0, 0, 0]
    assert topics.cycle(0.4, 500 * MIB, 2 * MIB, 100) == [0, 0.4, 0]
    assert topics.cycle(0.6, 500 * MIB, 4 * MIB, 200) == [0, 0.6, 0]


def test_d10_a_trickle_takes_no_part_beside_a_flood() -> None:
    topics = Topics(2)
    topics.cycle(0.0, 0, 0)
    topics.cycle(0.5, 100 * MIB, 10)
    assert topics.cycle(0.5, 200 * MIB, MIB - 1) == [0.5, 0]  # below a hundredth of 100 MiB
    assert topics.cycle(0.5, 200 * MIB, 4 * MIB) == [0.5, 0.5]


def test_little_growth_is_none() -> None:
    topics = Topics(1)
    topics.cycle(0.0, 10)
    assert topics.cycle(1.0, 10 + 64 * KIB - 1) == [0]
    assert topics.cycle(1.0, 10 + 64 * KIB) == [1.0]


def test_who_took_part_does_so_until_the_pressure_is_over() -> None:
    """Rule 5.3: or a limit that works would end itself."""
    topics = Topics(1)
    topics.cycle(0.0, 0)
    assert topics.cycle(0.9, MIB) == [0.9]
    assert topics.cycle(0.3, 0) == [0.3]
    assert topics.cycle(0.0, 0) == [0]
    assert topics.cycle(0.3, 0) == [0]


def test_a_topic_first_seen_under_pressure_has_grown_nothing_yet() -> None:
    topics = Topics(1)
    assert topics.cycle(0.5, 900 * MIB) == [0]
    assert topics.cycle(0.5, 901 * MIB) == [0.5]


def test_growth_counts_from_the_lowest_since() -> None:
    topics = Topics(1)
    topics.cycle(0.0, 50 * MIB)
    assert topics.cycle(0.5, 0) == [0]
    assert topics.cycle(0.5, MIB) == [0.5]


@given(st.lists(st.integers(0, 1 << 30), min_size=2, max_size=20), st.floats(0.01, 1))
def test_the_one_that_grew_most_takes_part(sizes: list[int], pressure: float) -> None:
    """Rule 5.3: under pressure somebody is asked, if anybody grew."""
    topics = Topics(len(sizes))
    topics.cycle(0.0, *([0] * len(sizes)))
    topics.cycle(pressure, *sizes)
    found = topics.cycle(pressure, *sizes)
    largest = max(sizes)
    assert set(found) <= {0.0, pressure}
    if largest >= 64 * KIB:
        assert found[sizes.index(largest)] == pressure
    for size, asked in zip(sizes, found, strict=True):
        if size < 64 * KIB:
            assert not asked


# -- nobody is seen to take it -------------------------------------------------------------------


def unnamed(topics: Topics, cycles: int, pressure: float = 1.0) -> list[float]:
    """What is asked of a topic that never grows, cycle by cycle."""
    return [topics.cycle(pressure, 5)[0] for _ in range(cycles)]


def test_after_three_cycles_at_full_pressure_everybody_is_asked() -> None:
    """Rule 5.3; until the pressure is over."""
    topics = Topics(1)
    topics.cycle(0.0, 5)
    assert unnamed(topics, 3) == [0, 0, 0]
    assert topics.attribution.rule_on(0.0) is None
    assert topics.turned is None
    assert unnamed(topics, 1) == [1.0]
    assert topics.turned is MemoryRule.EVERYBODY
    assert topics.attribution.rule_on(1.0) is MemoryRule.EVERYBODY
    assert unnamed(topics, 2, 0.4) == [0.4, 0.4]
    assert topics.turned is None
    assert unnamed(topics, 4, 0.0) == [0, 0, 0, 0]
    assert unnamed(topics, 4) == [0, 0, 0, 1.0]


def test_pressure_that_is_not_full_asks_nobody_who_takes_nothing() -> None:
    topics = Topics(1)
    topics.cycle(0.0, 5)
    assert set(unnamed(topics, 50, 0.99)) == {0}
    assert unnamed(topics, 2) + unnamed(topics, 1, 0.99) + unnamed(topics, 3) == [0] * 6


def test_while_one_topic_takes_it_the_others_are_not_asked() -> None:
    topics = Topics(2)
    topics.cycle(0.0, 5, 5)
    assert topics.cycle(1.0, MIB, 5) == [1.0, 0]
    assert [topics.cycle(1.0, 0, 5) for _ in range(9)] == [[1.0, 0]] * 9
    assert topics.attribution.rule_on(1.0) is MemoryRule.SHARE


def test_what_waits_because_everybody_is_slowed_names_nobody() -> None:
    topics = Topics(1)
    topics.cycle(0.0, 5)
    unnamed(topics, 4)
    assert topics.cycle(1.0, 8 * MIB) == [1.0]
    topics.cycle(1.0, 8 * MIB)
    assert topics.attribution.slows_all_topics


def test_without_effect_it_is_given_up_after_a_minute() -> None:
    """Rule 5.3: and does not begin again before the pressure was over."""
    topics = Topics(1)
    topics.cycle(0.0, 5)
    assert unnamed(topics, 63) == [0] * 3 + [1.0] * 60
    assert unnamed(topics, 1) == [0]
    assert topics.turned is MemoryRule.NO_EFFECT
    assert topics.attribution.rule_on(0.0) is MemoryRule.NO_EFFECT
    assert set(unnamed(topics, 100) + unnamed(topics, 3, 0.2) + unnamed(topics, 100)) == {0}
    assert topics.cycle(1.0, MIB) == [1.0]  # who takes it then is named
    assert topics.attribution.rule_on(1.0) is MemoryRule.SHARE
    unnamed(topics, 1, 0.0)
    assert unnamed(topics, 4) == [0, 0, 0, 1.0]


def test_as_long_as_memory_comes_down_it_goes_on() -> None:
    topics = Topics(1)
    topics.cycle(0.0, 5)
    unnamed(topics, 4)
    for _ in range(5):
        topics.used_share -= 0.011
        assert unnamed(topics, 59) == [1.0] * 59
    assert unnamed(topics, 2) == [1.0, 0]


def test_memory_that_is_held_below_its_high_watermark_is_effect_enough() -> None:
    topics = Topics(1)
    topics.cycle(0.0, 5)
    unnamed(topics, 30)
    assert set(unnamed(topics, 500, 0.9)) == {0.9}
    assert unnamed(topics, 61) == [1.0] * 59 + [0, 0]


def test_where_nothing_is_enforced_no_effect_is_asked_for() -> None:
    """Observe-only: the minute begins when it goes live."""
    topics = Topics(1)
    topics.is_enforced = False
    topics.cycle(0.0, 5)
    assert unnamed(topics, 503) == [0] * 3 + [1.0] * 500
    topics.is_enforced = True
    assert unnamed(topics, 60) == [1.0] * 59 + [0]


def test_while_nobody_publishes_no_effect_is_asked_for() -> None:
    """The minute begins with the first topic that is slowed."""
    topics = Topics(1)
    topics.cycle(0.0, 5)
    unnamed(topics, 4)
    for _ in range(200):
        topics.now_ns += NS_PER_S
        assert topics.attribution.begin_cycle(1.0, 0.9, topics.now_ns) is None
    assert unnamed(topics, 61) == [1.0] * 60 + [0]


@pytest.mark.parametrize(("interval_ms", "cycles"), [(10, 201), (100, 21), (700, 4), (5_000, 4)])
def test_at_any_interval_a_topic_has_the_time_to_be_seen(interval_ms: int, cycles: int) -> None:
    """Three cycles, and two seconds."""
    attribution, now_ns = MemoryAttribution(), 10 * NS_PER_S
    held = MemoryBaseline()
    for cycle in range(1, cycles + 1):
        now_ns += interval_ms * NS_PER_MS
        turned = attribution.begin_cycle(1.0, 0.9, now_ns)
        assert (turned is MemoryRule.EVERYBODY) is (cycle == cycles)
        attribution.pressure_on(held, 5)
