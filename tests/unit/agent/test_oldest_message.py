"""The age of the oldest message is what looks prove."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.oldest_message import ARRIVALS_MAX, OldestMessage
from headgate.base.units import NS_PER_S


def _age_s(looks: list[tuple[float, float, float, int | None]], *, delayed: bool = False) -> float:
    oldest, age_ns = OldestMessage(), 0
    for at_s, appended, waiting, moved_ms in looks:
        at_ns = round(at_s * NS_PER_S)
        age_ns = oldest.note(at_ns, appended, waiting, moved_ms, delayed=delayed)
    return age_ns / NS_PER_S


def test_a_burst_that_a_look_sees_is_not_old() -> None:
    assert _age_s([(0, 0, 0, 1), (5, 500, 250, 2)]) == 0
    assert _age_s([(0, 0, 0, 1), (5, 500, 0, 2)]) == 0


def test_more_than_arrived_since_is_older() -> None:
    """250 wait, 100 came in a second: the oldest came between two and three seconds ago."""
    looks = [(s, 100 * s, 50.0 * s, s) for s in range(6)]
    assert 2.4 <= _age_s([*looks]) <= 2.5


def test_what_waited_already_is_at_least_as_old_as_the_looks() -> None:
    assert _age_s([(0, 0, 10_000, None), (30, 10, 10_010, None)]) == 30


def test_a_mark_delete_position_that_stays_holds_an_old_message() -> None:
    """20 messages that one consumer hoards, of 60 a second that another one acknowledges."""
    looks = [(s, 60 * s, 20, 7) for s in range(1, 11)]
    assert _age_s([*looks]) == 9
    assert _age_s([*looks], delayed=True) < 1
    assert _age_s([*looks, (11, 660, 20, 8)]) < 1


STEPS = st.tuples(st.integers(1, 60), st.integers(0, 1_000), st.integers(0, 5_000))


@given(st.lists(STEPS, max_size=200))
def test_it_is_never_older_than_the_first_look(steps: list[tuple[int, int, int]]) -> None:
    oldest, at_s, appended = OldestMessage(), 0, 0
    for elapsed_s, arrived, waiting in steps:
        at_s, appended = at_s + elapsed_s, appended + arrived
        age_ns = oldest.note(at_s * NS_PER_S, appended, waiting, None, delayed=False)
        assert 0 <= age_ns <= (at_s - steps[0][0]) * NS_PER_S
        assert waiting or age_ns == 0
    assert len(oldest._arrivals) <= ARRIVALS_MAX


def test_most_of_what_arrives_in_a_minute_is_no_burst() -> None:
    assert 29 <= _age_s([(0, 0, 0, 1), (60, 6_000, 3_000, 2)]) <= 30
    assert _age_s([(0, 0, 0, 1), (60, 6_000, 300, 2)]) == 0
