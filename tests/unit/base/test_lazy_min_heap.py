"""The item with the least figure, compared with a look at all items (rule 4.1)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.lazy_min_heap import STALE_ENTRIES_MAX, LazyMinHeap


class Item:
    """Something with a figure that counts how often it is read."""

    def __init__(self, figure: int) -> None:
        self.figure = figure
        self.looks_count = 0


def figure_of(item: Item) -> int:
    item.looks_count += 1
    return item.figure


def heap_of(items: list[Item]) -> LazyMinHeap[Item]:
    return LazyMinHeap(figure_of, items)


def top_figure(heap: LazyMinHeap[Item]) -> int | None:
    top = heap.top()
    return None if top is None else top.figure


def test_without_items_there_is_none() -> None:
    heap = heap_of([])
    assert heap.top() is None
    only = Item(7)
    heap.changed(only)
    assert top_figure(heap) == 7
    heap.discard(only)
    assert heap.top() is None


def test_growth_needs_no_call() -> None:
    items = [Item(number) for number in range(5)]
    heap = heap_of(items)
    assert heap.top() is items[0]
    items[0].figure = 10
    items[1].figure = 4
    assert heap.top() is items[2]


def test_a_look_is_made_in_parts() -> None:
    items = [Item(number) for number in range(100)]
    heap = heap_of(items)
    for item in items:
        item.figure += 1_000
        item.looks_count = 0
    parts = 0
    while not heap.settle(10):
        parts += 1
    assert parts == 10
    before = sum(item.looks_count for item in items)
    assert heap.top() is items[0]
    assert sum(item.looks_count for item in items) <= before + 1
    heap.discard(items[0])
    assert heap.settle(10)
    assert heap.top() is items[1]


def test_a_figure_that_fell_is_changed() -> None:
    items = [Item(10), Item(20)]
    heap = heap_of(items)
    assert top_figure(heap) == 10
    items[1].figure = 3
    heap.changed(items[1])
    assert heap.top() is items[1]


def test_an_item_that_was_never_there_may_be_discarded() -> None:
    heap = heap_of([Item(10)])
    heap.discard(Item(1))
    assert top_figure(heap) == 10


def test_frequent_changes_take_no_more_room() -> None:
    """Rule 4.1: an item that changes all the time leaves no stale entries."""
    items = [Item(number) for number in range(10)]
    heap = heap_of(items)
    for number in range(10_000):
        items[number % 10].figure = number % 7
        heap.changed(items[number % 10])
        assert len(heap._heap) <= 2 * len(items) + STALE_ENTRIES_MAX
    assert top_figure(heap) == min(item.figure for item in items)


def test_finding_the_least_looks_at_few() -> None:
    """Rule 4.1: with a thousand items, growth costs a look or two."""
    items = [Item(0) for _ in range(1_000)]
    heap = heap_of(items)
    for item in items:
        item.looks_count = 0
    for number in range(1_000):
        top = heap.top()
        assert top is not None
        top.figure += 1_000 + number
        heap.top()
    assert sum(item.looks_count for item in items) <= 4 * 1_000


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
    """Rule 4.1: growth without a call, falls with one, new and discarded items."""
    items = [Item(figure) for figure in figures]
    heap = heap_of(items)
    for act, which, amount in story:
        if act == "add":
            items.append(Item(amount))
            heap.changed(items[-1])
        elif items:
            item = items[which % len(items)]
            if act == "grow":
                item.figure += amount
            elif act == "fall":
                item.figure = max(0, item.figure - amount)
                heap.changed(item)
            elif act == "remove":
                items.remove(item)
                heap.discard(item)
        if act != "grow":
            assert top_figure(heap) == min((item.figure for item in items), default=None)
    assert top_figure(heap) == min((item.figure for item in items), default=None)
