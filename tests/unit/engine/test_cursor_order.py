"""The cursors that are furthest behind, compared with a look at all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.ack_set import AckSet
from headgate.engine.cursor_order import SCANNED_MAX, CursorOrder


class Subscriber:
    """A subscription as far as its cursor goes."""

    def __init__(self, mark_delete: int, *, is_durable: bool) -> None:
        self.acks = AckSet(mark_delete)
        self.is_durable = is_durable


def mark(subscriber: Subscriber | None) -> int | None:
    return None if subscriber is None else subscriber.acks.mark_delete


def filled(count: int) -> tuple[dict[str, Subscriber], CursorOrder[Subscriber]]:
    """Durable cursors and readers at 0, 1, 2, ... in turn."""
    subscribers: dict[str, Subscriber] = {}
    order = CursorOrder(subscribers)
    for number in range(count):
        subscribers[str(number)] = Subscriber(number, is_durable=number % 2 == 0)
        order.changed(subscribers[str(number)])
    return subscribers, order


def test_without_subscriptions_there_is_none() -> None:
    _, order = filled(0)
    assert order.oldest_durable() is None
    assert order.oldest_reader() is None
    assert order.settle(1)
    assert list(order.before(9)) == []


def test_those_before_an_entry_are_moved_to_it() -> None:
    for count in (5, 3 * SCANNED_MAX):
        subscribers, order = filled(count)
        moved = []
        for subscriber in order.before(4):
            moved.append(mark(subscriber))
            subscriber.acks.ack_through(3)
        assert moved == [0, 2, 1]
        assert [mark(each) for each in subscribers.values()][:5] == [3, 3, 3, 3, 4]


def test_a_look_that_finds_many_moved_cursors_is_made_in_parts() -> None:
    subscribers, order = filled(1_000)
    for subscriber in subscribers.values():
        subscriber.acks.ack_through(5_000)
    parts = 1
    while not order.settle(100):
        parts += 1
    assert 5 <= parts <= 12
    assert order.settle(1)
    assert (mark(order.oldest_durable()), mark(order.oldest_reader())) == (5_000, 5_000)


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "ack", "back", "settle"]),
        st.integers(0, 2 * SCANNED_MAX),
        st.integers(0, 50),
    ),
    max_size=200,
)


@given(ACTS)
def test_it_finds_what_a_look_at_all_finds(acts: list[tuple[str, int, int]]) -> None:
    subscribers, order = filled(SCANNED_MAX)
    for act, number, ordinal in acts:
        name = str(number)
        found = subscribers.get(name)
        if found is None:
            if act == "add":
                subscribers[name] = Subscriber(ordinal, is_durable=number % 3 > 0)
                order.changed(subscribers[name])
        elif act == "remove":
            del subscribers[name]
            order.removed(found)
        elif act == "ack":
            found.acks.ack_through(ordinal)
        elif act == "back":
            found.acks.reset(ordinal)
            order.changed(found)
        else:
            order.settle(ordinal)
        _compare(subscribers, order)


def _compare(subscribers: dict[str, Subscriber], order: CursorOrder[Any]) -> None:
    for is_durable, oldest in ((True, order.oldest_durable), (False, order.oldest_reader)):
        marks = [s.acks.mark_delete for s in subscribers.values() if s.is_durable is is_durable]
        assert mark(oldest()) == min(marks, default=None)
