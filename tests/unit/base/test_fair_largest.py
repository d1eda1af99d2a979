"""The largest of items that come one by one, fair by owner."""

from __future__ import annotations

import random
from heapq import nlargest

import pytest

from headgate.base.fair_largest import FairLargest


@pytest.mark.parametrize("count", [0, 1, 7, 1_000])
def test_of_one_owner_the_largest_are_those_of_a_sort(count: int) -> None:
    chance = random.Random(count)
    items = [(chance.randrange(50), object()) for _ in range(300)]
    largest = FairLargest[object](count)
    for key, item in items:
        largest.add("a", key, item)
    expected = nlargest(count, items, key=lambda each: each[0])
    assert largest.taken() == ({"a": expected} if expected else {})
    assert largest.taken() == {}


def test_whether_there_is_room_for_one_more_of_an_owner() -> None:
    largest = FairLargest[int](4)
    assert largest.has_room("a")
    for item in range(9):
        largest.add("a", item, item)
    assert (len(largest), largest.has_room("a"), largest.has_room("b")) == (4, False, True)
    largest.add("b", 0, 0)
    largest.add("b", 0, 1)
    assert (len(largest), largest.has_room("b"), largest.has_room("c")) == (4, False, True)
    assert not FairLargest[int](0).has_room("a")


def test_an_owner_with_many_large_items_leaves_room_to_others() -> None:
    largest = FairLargest[int](10)
    for item in range(1_000):
        largest.add("much", 1_000 + item, item)
    for item in range(3):
        largest.add("little", item, item)
    found = largest.taken()
    assert [item for _, item in found["much"]] == [999, 998, 997, 996, 995, 994, 993]
    assert found["little"] == [(2, 2), (1, 1), (0, 0)]


@pytest.mark.parametrize("seed", range(20))
def test_what_owners_keep_is_as_even_as_it_can_be(seed: int) -> None:
    chance = random.Random(seed)
    owners = {f"o{number}": chance.randrange(1, 60) for number in range(chance.randrange(1, 8))}
    items = [(owner, chance.random()) for owner, count in owners.items() for _ in range(count)]
    chance.shuffle(items)
    largest = FairLargest[str](50)
    for owner, key in items:
        largest.add(owner, key, owner)
    found = largest.taken()
    counts = {owner: len(kept) for owner, kept in found.items()}
    assert sum(counts.values()) == min(50, len(items))
    most = max(counts.values())
    for owner, kept in found.items():
        # Who has less than another, by more than one, keeps all.
        assert counts[owner] >= most - 1 or counts[owner] == owners[owner]
        own = sorted((key for each, key in items if each == owner), reverse=True)
        assert [key for key, _ in kept] == own[: counts[owner]]
