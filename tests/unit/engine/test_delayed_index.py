"""The index of delayed entries, compared with a plain dictionary."""

from __future__ import annotations

import random
import tracemalloc
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.engine.delayed_index import CHUNK_ENTRIES, INDEXED_BYTES, DelayedIndex, TimedEntry
from headgate.flow.quota.backlog import Amounts


def entries_of(index: DelayedIndex) -> list[int]:
    return index.within(0, 1 << 40)


class Model:
    """The same entries in a dictionary."""

    def __init__(self) -> None:
        self.index = DelayedIndex()
        self.entries: dict[int, TimedEntry] = {}

    def check(self) -> None:
        index, entries = self.index, self.entries
        assert entries_of(index) == sorted(entries)
        assert index.amounts == self.amounts_from(0)
        assert (index.first, index.last) == (min(entries, default=-1), max(entries, default=-1))
        assert index.earliest_ms == min((e.time_ms for e in entries.values()), default=None)
        middle = sorted(entries)[len(entries) // 2] if entries else 3
        assert index.amounts_from(middle) == self.amounts_from(middle)
        stop = middle
        while stop in entries:
            stop += 1
        assert index.run_stop(middle, 1 << 40) == stop
        assert index.run_stop(middle, middle + 1) == min(stop, middle + 1)

    def amounts_from(self, ordinal: int) -> Amounts:
        entries = [entry for entry in self.entries.values() if entry.ordinal >= ordinal]
        messages, size = sum(e.messages for e in entries), sum(e.size_bytes for e in entries)
        return Amounts(len(entries), messages, size)

    def add(self, ordinal: int, time_ms: int) -> None:
        if ordinal not in self.entries:
            entry = TimedEntry(ordinal, time_ms, 1 + (ordinal % 7 == 0), ordinal % 50)
            self.entries[ordinal] = entry
            self.index.add(*entry)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "append", "remove", "take", "below"]),
        st.integers(0, 400),
        st.integers(0, 60),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STEPS)
def test_it_is_a_dictionary_in_two_orders(steps: list[tuple[str, int, int]]) -> None:
    model = Model()
    for kind, ordinal, time_ms in steps:
        if kind == "add":
            model.add(ordinal, time_ms)
        elif kind == "append":
            start = max(model.entries, default=0) + 1
            for number in range(ordinal):
                model.add(start + number, time_ms + number % 9)
        elif kind == "remove":
            assert model.index.remove(ordinal) == model.entries.pop(ordinal, None)
        elif kind == "take":
            while taken := model.index.take_until(time_ms):
                assert [entry.ordinal for entry in taken] == sorted(e.ordinal for e in taken)
                for entry in taken:
                    assert entry.time_ms <= time_ms
                    assert model.entries.pop(entry.ordinal) == entry
            assert all(entry.time_ms > time_ms for entry in model.entries.values())
        else:
            below = {each for each in model.entries if each < ordinal}
            assert sum(model.index.remove_below(ordinal)) == len(below)
            for each in below:
                del model.entries[each]
        model.check()


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_any_order_of_times_and_entries_keeps_the_bound_of_memory(order: str) -> None:
    chance, count = random.Random(1), 20_000
    times = list(range(count))
    if order == "descending":
        times.reverse()
    elif order == "random":
        chance.shuffle(times)
    index = DelayedIndex()
    for ordinal, time_ms in enumerate(times):
        index.add(ordinal, time_ms, 1, 100)
    assert index.memory_bytes <= 1.1 * INDEXED_BYTES * count
    assert len(index._heap._heap) <= 2 * len(index._chunks) + 70
    taken = [entry for step in range(0, count, 500) for entry in _taken(index, step)]
    assert len(taken) == count - 499
    assert index.entries == 499


def test_batches_take_about_as_much_memory_as_single_messages() -> None:
    count = 20_000
    tracemalloc.start()
    index = DelayedIndex()
    for ordinal in range(1_000, 1_000 + count):
        index.add(ordinal, 1 << 45, 2, 100)
    held_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held_bytes <= 1.3 * INDEXED_BYTES * count


@pytest.mark.parametrize("how", ["acknowledged", "due"])
@pytest.mark.parametrize("messages", [1, 3])
def test_one_entry_that_stays_of_each_chunk_takes_about_as_much_as_it_counts(
    how: str, messages: int
) -> None:
    count = 400 * CHUNK_ENTRIES
    tracemalloc.start()
    index = DelayedIndex()
    before = tracemalloc.get_traced_memory()[0]
    for ordinal in range(count):
        stays = ordinal % CHUNK_ENTRIES == 5
        index.add(ordinal, 1_000_000 if stays else 10, messages, 100)
    if how == "due":
        while index.take_until(10):
            pass
    else:
        for ordinal in range(count):
            if ordinal % CHUNK_ENTRIES != 5:
                index.remove(ordinal)
    taken_bytes = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert index.amounts == Amounts(400, 400 * messages, 400 * 100)
    assert entries_of(index) == list(range(5, count, CHUNK_ENTRIES))
    assert index.earliest_ms == 1_000_000
    stale_bytes = 40_000  # what the heap has not forgotten yet, whatever the number of entries
    assert taken_bytes < stale_bytes + 2 * INDEXED_BYTES * 400


def test_a_limiter_that_asks_again_and_again_goes_through_no_entries() -> None:
    """Each FLOW of 12 bytes asks: 206,000 delayed batches took 10 ms each time."""
    index = DelayedIndex()
    for ordinal in range(20_000):
        index.add(ordinal, 1 << 45, 2, 100)
    for chunk in index._chunks:
        chunk.sizes = None  # type: ignore[assignment]
    for first in range(0, 20_000, CHUNK_ENTRIES):
        index._chunks[first // CHUNK_ENTRIES].sizes = array("I", [100]) * CHUNK_ENTRIES
        count = 20_000 - first
        assert index.amounts_from(first) == (count, 2 * count, 100 * count)
        index._chunks[first // CHUNK_ENTRIES].sizes = None  # type: ignore[assignment]


def _taken(index: DelayedIndex, time_ms: int) -> list[TimedEntry]:
    found: list[TimedEntry] = []
    while entries := index.take_until(time_ms):
        assert len(entries) <= CHUNK_ENTRIES
        found += entries
    return found
