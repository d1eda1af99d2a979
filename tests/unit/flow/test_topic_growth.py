"""Which topics grow most, with bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.flow.topic_growth import TOPICS_MAX, TopicGrowths

MINUTE_NS = 60 * NS_PER_S


def rounds(growths: TopicGrowths, count: int, topics: dict[str, tuple[int, int, int]]) -> None:
    """Rounds a minute apart of ``topics`` by name: bytes received in the window, retained at the
    start, and growth a minute."""
    for at in range(count):
        growths.begin_round()
        for number, (name, (received, retained, grows)) in enumerate(topics.items()):
            growths.add(name, number, received, retained + grows * at, at * MINUTE_NS)
        growths.end_round()


def test_the_fastest_first_and_only_those_that_grow() -> None:
    growths = TopicGrowths()
    topics = {
        "slow": (600, 0, 600),
        "steady": (9_000, 50_000, 0),
        "fast": (6_000, 0, 6_000),
        "idle": (0, 70_000, 0),
        "shrinks": (100, 10_000, -100),
    }
    rounds(growths, 1, topics)
    assert growths.fastest(5) == []  # one sample shows no growth
    rounds(growths, 5, topics)
    fast, slow = growths.fastest(5)
    assert (fast.topic, fast.number, fast.bytes_per_s, fast.span_s) == ("fast", 2, 100, 240)
    assert (slow.topic, slow.bytes_per_s) == ("slow", 10)
    assert growths.fastest(1) == [fast]


def test_growth_counts_over_ten_minutes() -> None:
    growths = TopicGrowths()
    for at in range(30):
        growths.begin_round()
        retained = 60_000 * at if at < 20 else 60_000 * 19
        growths.add("t", 1, 1, retained, at * MINUTE_NS)
        growths.end_round()
        if at == 19:
            (grows,) = growths.fastest(1)
            assert (grows.bytes_per_s, grows.span_s) == (1_000, 600)
    assert growths.fastest(1) == []  # ten minutes after the last message


def test_a_topic_that_receives_nothing_is_forgotten() -> None:
    growths = TopicGrowths()
    rounds(growths, 3, {"t": (10, 0, 10)})
    assert growths.topics_count == 1
    rounds(growths, 1, {"t": (0, 30, 0)})
    assert growths.topics_count == 0


def test_an_unfinished_round_is_dropped() -> None:
    growths = TopicGrowths()
    rounds(growths, 2, {"t": (10, 0, 600)})
    growths.begin_round()
    growths.add("other", 7, 1_000, 1_000, 2 * MINUTE_NS)
    growths.begin_round()
    growths.add("t", 0, 10, 1_200, 2 * MINUTE_NS)
    growths.end_round()
    assert [one.topic for one in growths.fastest(5)] == ["t"]


def test_memory_is_bounded_and_the_largest_stay() -> None:
    growths = TopicGrowths()
    topics = {f"t{at}": (at, 0, at) for at in range(10 * TOPICS_MAX)}
    rounds(growths, 3, topics)
    assert growths.topics_count == TOPICS_MAX
    assert growths.fastest(1)[0].topic == f"t{10 * TOPICS_MAX - 1}"


@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(0, 10_000)), min_size=1, max_size=40))
def test_growth_is_at_most_what_was_received(items: list[tuple[int, int]]) -> None:
    """``received`` bounds the growth of a window, so a round by it misses none."""
    growths = TopicGrowths()
    topics = {
        f"t{at}": (received, 0, min(grows, received)) for at, (received, grows) in enumerate(items)
    }
    rounds(growths, 2, topics)
    found = {one.topic: round(one.bytes_per_s * 60) for one in growths.fastest(100)}
    assert found == {name: grows for name, (_, _, grows) in topics.items() if grows}
