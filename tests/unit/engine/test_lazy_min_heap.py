"""The subscription that has done least, against a look at all of them (rule 4.1)."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from headgate.engine.lazy_min_heap import DEAD_MAX, LazyMinHeap
from headgate.engine.subscription import Subscription


class Fake:
    """As much of a subscription as is looked at."""

    def __init__(self, figure: int, *, is_durable: bool = True) -> None:
        self.figure = figure
        self.is_durable = is_durable
        self.removed = False
        self.looks_count = 0


def figure_of(subscription: Subscription) -> int:
    fake = cast(Fake, subscription)
    fake.looks_count += 1
    return fake.figure


def least_of(fakes: list[Fake]) -> LazyMinHeap:
    return LazyMinHeap(figure_of, cast("list[Subscription]", fakes))


def top_figure(least: LazyMinHeap) -> int | None:
    top = least.top()
    return None if top is None else cast(Fake, top).figure


def tell(least: LazyMinHeap, fake: Fake) -> None:
    least.changed(cast(Subscription, fake))


def test_without_subscriptions_there_is_none() -> None:
    least = least_of([])
    assert least.top() is None
    only = Fake(7)
    tell(least, only)
    assert top_figure(least) == 7
    only.removed = True
    tell(least, only)
    assert least.top() is None


def test_growth_need_not_be_told() -> None:
    fakes = [Fake(number) for number in range(5)]
    least = least_of(fakes)
    assert least.top() is cast(object, fakes[0])
    fakes[0].figure = 10
    fakes[1].figure = 4
    assert least.top() is cast(object, fakes[2])


def test_a_fall_is_told() -> None:
    fakes = [Fake(10), Fake(20)]
    least = least_of(fakes)
    assert top_figure(least) == 10
    fakes[1].figure = 3
    tell(least, fakes[1])
    assert least.top() is cast(object, fakes[1])


def test_a_reader_is_never_among_them() -> None:
    least = least_of([Fake(10)])
    tell(least, Fake(1, is_durable=False))
    assert top_figure(least) == 10


def test_being_told_often_costs_no_room() -> None:
    """Rule 4.1: a subscription that is rewound all the time leaves no trail."""
    fakes = [Fake(number) for number in range(10)]
    least = least_of(fakes)
    for number in range(10_000):
        fakes[number % 10].figure = number % 7
        tell(least, fakes[number % 10])
        assert len(least._heap) <= 2 * len(fakes) + DEAD_MAX
    assert top_figure(least) == min(fake.figure for fake in fakes)


def test_finding_the_least_looks_at_few() -> None:
    """Rule 4.1: with a thousand subscriptions, one acknowledgement costs a look or two."""
    fakes = [Fake(0) for _ in range(1_000)]
    least = least_of(fakes)
    for fake in fakes:
        fake.looks_count = 0
    for number in range(1_000):
        top = cast(Fake, least.top())
        top.figure += 1_000 + number
        least.top()
    assert sum(fake.looks_count for fake in fakes) <= 4 * 1_000


acts = st.lists(
    st.tuples(
        st.sampled_from(["grow", "grow", "grow", "fall", "add", "remove", "top"]),
        st.integers(0, 30),
        st.integers(0, 50),
    ),
    max_size=120,
)


@given(st.lists(st.integers(0, 100), max_size=20), acts)
def test_the_top_is_the_least_whatever_happened(
    figures: list[int], story: list[tuple[str, int, int]]
) -> None:
    """Rule 4.1: growth that nobody tells, falls that are told, comers and goers."""
    fakes = [Fake(figure) for figure in figures]
    least = least_of(fakes)
    for act, which, amount in story:
        if act == "add":
            fakes.append(Fake(amount))
            tell(least, fakes[-1])
        elif fakes:
            fake = fakes[which % len(fakes)]
            if act == "grow":
                fake.figure += amount
            elif act == "fall":
                fake.figure = max(0, fake.figure - amount)
                tell(least, fake)
            elif act == "remove":
                fakes.remove(fake)
                fake.removed = True
                tell(least, fake)
        if act != "grow":
            assert top_figure(least) == min((fake.figure for fake in fakes), default=None)
    assert top_figure(least) == min((fake.figure for fake in fakes), default=None)
