"""Events are periods with a delay in them; amounts are what was held back, once (law 2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import INT64_MAX
from headgate.flow.limits.budget import Budget
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.limits.throttled_events import ThrottledAmounts, ThrottledEvents

PERIOD_NS = 100


def _told(*delays: tuple[int, int]) -> int:
    events = ThrottledEvents()
    budget = Budget(1, PERIOD_NS, Level.BROKER, Dimension.BYTES, 0)
    for start_ns, end_ns in delays:
        events.count_delay(budget, start_ns, end_ns)
    assert events.counts[:2] == [[0, 0], [0, 0]]
    assert events.counts[2][0] == 0
    return events.counts[2][1]


def test_no_delay_no_event() -> None:
    """Rule 2.1."""
    assert _told((5, 5)) == 0


def test_pauses_inside_a_period_add_nothing() -> None:
    assert _told((5, 10), (20, 25), (90, 105)) == 1


def test_each_period_of_a_long_delay_is_one_event() -> None:
    assert _told((0, 1)) == 1
    assert _told((0, 100)) == 1
    assert _told((0, 101)) == 2
    assert _told((0, 1000)) == 10


def test_a_delay_reported_in_pieces_counts_once() -> None:
    assert _told((0, 250), (0, 300), (0, 301)) == 4
    assert _told((0, 10), (150, 160)) == 2


class Line:
    """One subscription's deliveries and one limiter that holds all of them back."""

    def __init__(self) -> None:
        self.amounts = ThrottledAmounts()
        self.sent = self.waiting = 0

    def held(self, allowed: int = INT64_MAX) -> int:
        """The limiter refuses; the amount it has counted until now."""
        self.amounts.count(
            Level.TOPIC, Dimension.BYTES, sent=self.sent, allowed=allowed, waiting=self.waiting
        )
        assert self.amounts.counts[0] == [0, 0] == self.amounts.counts[2]
        assert self.amounts.counts[1][0] == 0
        return self.amounts.counts[1][1]

    def send(self, amount: int) -> None:
        self.sent += amount
        self.waiting -= amount


def test_what_is_held_back_counts_once_however_often_it_is_asked_for() -> None:
    """Rule 2.2: a high-water position per limiter."""
    line = Line()
    line.waiting = 100
    assert line.held() == line.held() == 100
    for _ in range(10):
        line.send(10)
        assert line.held() == 100


def test_only_what_permits_allow_counts() -> None:
    line = Line()
    line.waiting = 100
    assert line.held(allowed=30) == 30
    line.send(30)
    assert line.held(allowed=0) == 30
    assert line.held(allowed=20) == 50


def test_what_came_later_counts_when_it_is_held() -> None:
    line = Line()
    line.waiting = 10
    assert line.held() == 10
    line.waiting += 5
    assert line.held() == 15


def test_what_went_undelayed_does_not_count() -> None:
    line = Line()
    line.waiting = 10
    line.held()
    line.send(10)
    line.waiting = 500
    line.send(500)
    line.waiting = 7
    assert line.held() == 17


def test_a_repeated_delivery_counts_again() -> None:
    """Rule 2.2: once for each delivery attempt."""
    line = Line()
    line.waiting = 10
    line.held()
    line.send(10)
    line.waiting = 10
    assert line.held() == 20


def test_what_was_skipped_leaves_its_place_to_others() -> None:
    line = Line()
    line.waiting = 1_000
    assert line.held() == 1_000
    line.waiting = 0
    assert line.held() == 1_000
    line.waiting = 600
    assert line.held() == 1_600


def test_amounts_begin_anew_before_they_overflow() -> None:
    line = Line()
    line.waiting = INT64_MAX
    assert line.held() == INT64_MAX
    line.send(INT64_MAX)
    line.waiting = 7
    assert line.held() == 7


@given(st.lists(st.tuples(st.sampled_from(["publish", "send", "ask"]), st.integers(0, 50))))
def test_no_slot_counts_twice_and_none_that_waited_is_missed(story: list[tuple[str, int]]) -> None:
    """Against a model that marks each single message."""
    line = Line()
    waiting: list[int] = []
    marked: set[int] = set()
    born = 0
    for act, amount in story:
        if act == "publish":
            waiting += range(born, born + amount)
            born += amount
            line.waiting += amount
        elif act == "send":
            sent = min(amount, line.waiting)
            line.send(sent)
            del waiting[:sent]
        else:
            marked |= set(waiting[:amount])
            assert line.held(allowed=amount) == len(marked)
