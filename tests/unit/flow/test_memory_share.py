"""Who takes the memory when it runs short (law 5.3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import KIB, MIB
from headgate.flow.memory_share import HeldMemory, MemoryAttribution


class Topics:
    """Some topics and what each holds."""

    def __init__(self, count: int) -> None:
        self.attribution = MemoryAttribution()
        self.held = [HeldMemory() for _ in range(count)]

    def cycle(self, pressure: float, *held_bytes: int) -> list[float]:
        self.attribution.begin(pressure)
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
