"""What a topic publishes by itself (law 5.4), and what must not be mistaken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.adaptive.natural_rate import FALL, PROBE, RISE, NaturalRate

KIB_PER_MESSAGE = 1_024


class Topic:
    """Counters that grow as a test says."""

    def __init__(self, now_ns: int = 0) -> None:
        self.rate = NaturalRate()
        self.now_ns = now_ns
        self.messages = 0
        self.look()

    def look(self, published: int = 0, *, waited: bool = False, seconds: float = 1.0) -> bool:
        """``seconds`` later; whether that ended a sample."""
        elapsed_ns = round(seconds * NS_PER_S)
        self.now_ns += elapsed_ns
        self.messages += published
        return self.rate.observe(
            self.messages, self.messages * KIB_PER_MESSAGE, waited, self.now_ns, elapsed_ns
        )


def test_d8_the_first_sample_is_the_rate() -> None:
    """Rule 5.4: it does not begin at 0 and creep up."""
    topic = Topic()
    assert not topic.rate.is_known
    assert topic.look(1_000)
    assert topic.rate.is_known
    assert topic.rate.messages == pytest.approx(1_000)
    assert topic.rate.bytes == pytest.approx(1_000 * KIB_PER_MESSAGE)


def test_a_first_look_says_nothing() -> None:
    rate = NaturalRate()
    assert not rate.observe(5_000_000, 5_000_000, False, 77, NS_PER_S)
    assert not rate.is_known
    assert rate.messages == rate.bytes == rate.published_messages == 0


@pytest.mark.parametrize("start_ns", [0, -(1 << 62), -NS_PER_S, 1 << 62])
def test_d16_clocks_may_begin_anywhere(start_ns: int) -> None:
    topic = Topic(start_ns - NS_PER_S)
    topic.look(100)
    assert topic.rate.messages == pytest.approx(100)


def test_it_rises_quickly_and_falls_slowly() -> None:
    """Rule 5.1."""
    topic = Topic()
    topic.look(1_000)
    topic.look(2_000)
    assert topic.rate.messages == pytest.approx(1_000 + RISE * 1_000)
    topic.look(300)
    assert topic.rate.messages == pytest.approx(1_300 - FALL * 1_000)


def test_messages_and_bytes_move_apart() -> None:
    rate = NaturalRate()
    rate.observe(0, 0, False, 0, NS_PER_S)
    rate.observe(100, 100_000, False, NS_PER_S, NS_PER_S)
    rate.observe(150, 300_000, False, 2 * NS_PER_S, NS_PER_S)
    assert rate.messages == pytest.approx(100 - FALL * 50)
    assert rate.bytes == pytest.approx(100_000 + RISE * 100_000)


def test_d5_what_waited_teaches_nothing() -> None:
    """Rule 5.4: neither the limit nor the clients that catch up after it."""
    topic = Topic()
    topic.look(1_000)
    for _ in range(100):
        topic.look(100, waited=True)
    assert topic.rate.published_messages == pytest.approx(100)
    assert topic.rate.messages == pytest.approx(1_000)
    topic.look(9_000)
    assert topic.rate.messages == pytest.approx(1_000)
    topic.look(1_100)
    assert topic.rate.messages == pytest.approx(1_030)


def test_d6_it_is_learned_while_a_limit_does_not_bind() -> None:
    topic = Topic()
    topic.look(1_000)
    for _ in range(200):
        topic.look(10)
    assert topic.rate.messages < 200


def test_d7_silence_and_trickles_do_not_wake_up_small() -> None:
    """Rule 5.4: 135 s took the draft's estimate of 1,000/s below 1/s."""
    topic = Topic()
    topic.look(1_000)
    for _ in range(600):
        topic.look(0)
    assert topic.rate.messages == pytest.approx(1_000)
    for _ in range(135):
        topic.look(1)
    assert topic.rate.messages > 150


def test_the_maximum_halves_in_five_minutes_of_publishing() -> None:
    topic = Topic()
    topic.look(1_000)
    for _ in range(300):
        topic.look(1)
    assert topic.rate.messages == pytest.approx(1_000 / 4 / 2, rel=0.02)
    for _ in range(300):
        topic.look(1)
    assert topic.rate.messages == pytest.approx(1_000 / 4 / 4, rel=0.02)


def test_a_topic_that_always_waits_is_known_by_what_it_is_allowed() -> None:
    topic = Topic()
    topic.look(500, waited=True)
    topic.look(700, waited=True)
    assert topic.rate.messages == pytest.approx(700)
    topic.look(9_000)
    assert topic.rate.messages == pytest.approx(9_000)  # stands in still: clients catch up
    topic.look(2_000)
    assert topic.rate.messages == pytest.approx(2_000)
    topic.look(3_000)
    assert topic.rate.messages == pytest.approx(2_300)


def test_short_cycles_are_gathered() -> None:
    """A batch every second is one message a millisecond, not thousands in one of 10 ms."""
    topic = Topic()
    ended = [topic.look(1_000 if tenth == 5 else 0, seconds=0.1) for tenth in range(10)]
    assert ended.count(True) == 2
    for _ in range(20):
        assert sum(topic.look(100, seconds=0.1) for _ in range(10)) == 2
    assert topic.rate.messages == pytest.approx(1_000, rel=0.15)


def test_a_wait_in_any_part_of_a_sample_counts() -> None:
    topic = Topic()
    topic.look(1_000)
    for part in range(5):
        topic.look(1, waited=part == 1, seconds=0.1)
    for _ in range(5):
        topic.look(1, seconds=0.1)
    assert topic.rate.messages == pytest.approx(1_000)


def test_what_is_new_after_a_silence_was_published_in_the_last_cycle() -> None:
    topic = Topic()
    topic.look(1_000)
    topic.now_ns += 600 * NS_PER_S  # nobody looked: its counters did not move
    topic.look(2_000)
    assert topic.rate.published_messages == pytest.approx(2_000)
    assert topic.rate.messages == pytest.approx(1_300)


def test_a_late_cycle_is_no_burst() -> None:
    topic = Topic()
    topic.look(1_000)
    topic.look(5_000, seconds=5)
    assert topic.rate.published_messages == pytest.approx(1_000)


def test_no_time_between_two_looks_is_no_sample() -> None:
    topic = Topic()
    assert not topic.look(10, seconds=0.0)
    assert not topic.look(10, seconds=-3.0)


def test_counters_that_begin_anew_are_followed() -> None:
    topic = Topic()
    topic.look(1_000)
    topic.messages = 0
    assert not topic.look(7)
    assert topic.look(1_000)
    assert topic.rate.messages == pytest.approx(1_000)


def test_it_probes_upward_up_to_twice_the_maximum() -> None:
    """Rule 5.4."""
    topic = Topic()
    topic.look(1_000)
    topic.rate.probe()
    assert topic.rate.messages == pytest.approx(1_000 * PROBE)
    assert topic.rate.bytes == pytest.approx(1_000 * PROBE * KIB_PER_MESSAGE)
    for _ in range(1_000):
        topic.rate.probe()
    assert 1_950 < topic.rate.messages <= 2_000


def test_probing_never_lowers() -> None:
    rate = NaturalRate()
    rate.probe()
    assert not rate.is_known


@given(
    st.lists(
        st.tuples(st.integers(0, 5_000), st.booleans(), st.sampled_from([0.01, 0.5, 1.0, 7.0])),
        min_size=1,
        max_size=60,
    ),
    st.integers(-(10**18), 10**18),
)
def test_it_lies_between_what_was_seen(story: list[tuple[int, bool, float]], start_ns: int) -> None:
    """Rule 5.4: never above the fastest sample, and known as soon as something was."""
    topic = Topic(start_ns)
    fastest, seen = 0.0, False
    for published, waited, seconds in story:
        if topic.look(published, waited=waited, seconds=seconds):
            fastest = max(fastest, topic.rate.published_messages)
            seen = seen or topic.rate.published_messages > 0
        assert 0 <= topic.rate.messages <= fastest * (1 + 1e-9)
        assert topic.rate.is_known == seen


@given(st.integers(20, 400), st.integers(100, 10_000))
def test_a_steady_rate_is_found_at_any_interval(tenths_ms: int, per_s: int) -> None:
    """D1's cousin: a shorter interval must not change what is measured."""
    seconds = tenths_ms * NS_PER_MS * 10 / NS_PER_S / 10
    topic = Topic()
    due = 0.0
    for _ in range(200):
        due += per_s * seconds
        count = int(due)
        due -= count
        topic.look(count, seconds=seconds)
    assert topic.rate.messages == pytest.approx(per_s, rel=0.05)
