from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar import missing
from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.missing import Fate, MissingRange, entry_ids, fates_of, spread, without_trimmed


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    trimmed=st.integers(0, 30),
)
def test_trimmed_entries_are_the_first_ones(sizes: list[int], trimmed: int) -> None:
    ranges, first = [], 0
    for size in sizes:
        ranges.append(MissingRange(3, first, first + size - 1))
        first += size + 2
    asked: list[EntryId] = []

    def ask(places: list[EntryId]) -> dict[EntryId, Fate]:
        asked.extend(places)
        return {place: Fate.GONE if place[1] < trimmed else Fate.UNSENT for place in places}

    rest = list(entry_ids(without_trimmed(ask, ranges)))
    assert rest == [each for each in entry_ids(ranges) if each[1] >= trimmed]
    assert len(asked) <= sum(sizes).bit_length() + 1


def test_what_became_of_entries_is_found_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "SAMPLE_ENTRIES", 8)
    monkeypatch.setattr(missing, "PORTION_ENTRIES", 3)
    asked: list[EntryId] = []

    def ask(places: list[EntryId]) -> dict[EntryId, Fate]:
        assert len(places) <= 3
        asked.extend(places)
        fates = (Fate.GONE, Fate.UNSENT, Fate.PASSED_OVER)
        return {place: fates[place[1] % 3] for place in places}

    few = [MissingRange(3, 0, 1), MissingRange(4, 5, 9)]
    assert fates_of(ask, few) == ([(3, 0), (4, 6), (4, 9)], [(4, 5), (4, 8)], False)
    asked.clear()
    gone, passed, is_sample = fates_of(ask, [MissingRange(3, 0, 10**12 + 8)])
    assert is_sample
    assert gone
    assert passed
    assert len(asked) <= 8
    assert fates_of(ask, []) == ([], [], False)


def test_some_entries_are_spread_over_all() -> None:
    missing = [MissingRange(3, 5, 6), MissingRange(4, 0, 7)]
    assert spread(missing, 5) == [(3, 5), (4, 0), (4, 2), (4, 4), (4, 6)]
    assert spread(missing, 99) == list(entry_ids(missing))
    assert spread([], 3) == []
