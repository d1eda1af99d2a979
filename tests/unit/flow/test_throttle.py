"""Events are periods with a delay in them."""

from __future__ import annotations

from headgate.flow.budget import Budget
from headgate.flow.limits import Dimension, Level
from headgate.flow.throttle import ThrottledEvents

PERIOD_NS = 100


def _told(*delays: tuple[int, int]) -> int:
    events = ThrottledEvents()
    budget = Budget(1, PERIOD_NS, Level.BROKER, Dimension.BYTES, 0)
    for start_ns, end_ns in delays:
        events.delayed(budget, start_ns, end_ns)
    assert events.counts[:2] == [[0, 0], [0, 0]]
    assert events.counts[2][0] == 0
    return events.counts[2][1]


def test_no_delay_no_event() -> None:
    assert _told((5, 5)) == 0


def test_pauses_inside_a_period_add_nothing() -> None:
    assert _told((5, 10), (20, 25), (90, 105)) == 1


def test_each_period_of_a_long_delay_is_one_event() -> None:
    assert _told((0, 1)) == 1
    assert _told((0, 100)) == 1
    assert _told((0, 101)) == 2
    assert _told((0, 1000)) == 10


def test_a_delay_told_in_pieces_counts_once() -> None:
    assert _told((0, 250), (0, 300), (0, 301)) == 4
    assert _told((0, 10), (150, 160)) == 2
