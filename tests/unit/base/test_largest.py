"""The largest of items that come one by one, compared with ``heapq``."""

from __future__ import annotations

import random
from heapq import nlargest, nsmallest

import pytest

from headgate.base.largest import Largest, Reversed


@pytest.mark.parametrize("count", [0, 1, 7, 1_000])
def test_the_largest_are_those_of_a_sort(count: int) -> None:
    chance = random.Random(count)
    items = [(chance.randrange(50), object()) for _ in range(300)]
    largest, smallest = Largest[object](count), Largest[object](count)
    for key, item in items:
        is_kept = largest.keeps(key)
        largest.add(key, item)
        assert any(kept is item for kept in largest.items()) is is_kept
        smallest.add(Reversed(key), item)
    expected = nlargest(count, items, key=lambda each: each[0])
    assert largest.items() == [item for _, item in expected]
    assert len(largest) == min(count, 300)
    expected = nsmallest(count, items, key=lambda each: each[0])
    assert smallest.items() == [item for _, item in expected]


def test_reversed_keys_compare_by_their_values() -> None:
    assert Reversed(2) < Reversed(1)
    assert not Reversed(1) < Reversed(1)
    assert Reversed("a") == Reversed("a") != Reversed("b")
    assert Reversed("a") != "a"
    assert hash(Reversed("a")) == hash(Reversed("a"))
