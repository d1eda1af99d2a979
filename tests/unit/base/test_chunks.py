"""Items that are walked chunk by chunk while others come and go."""

from __future__ import annotations

import random

import pytest

from headgate.base.chunks import CHUNK_ITEMS, Chunks


def filled(count: int) -> tuple[Chunks[int], dict[int, int]]:
    chunks = Chunks[int]()
    return chunks, {item: chunks.add(item) for item in range(count)}


@pytest.mark.parametrize("count", [0, 1, CHUNK_ITEMS - 1, CHUNK_ITEMS, CHUNK_ITEMS + 1, 1_000])
def test_a_walk_has_all_items_in_order(count: int) -> None:
    chunks, _ = filled(count)
    found = list(chunks.walk())
    assert [item for chunk in found for item in chunk] == list(range(count))
    assert all(0 < len(chunk) <= CHUNK_ITEMS for chunk in found)


def test_what_is_removed_is_left_out_and_what_is_added_is_no_part_of_the_walk() -> None:
    chunks, numbers = filled(3 * CHUNK_ITEMS + 2)
    walk = chunks.walk()
    assert next(walk) == list(range(CHUNK_ITEMS))
    for item in (5, CHUNK_ITEMS, 3 * CHUNK_ITEMS):
        chunks.remove(item, numbers[item])
    for item in range(2 * CHUNK_ITEMS, 3 * CHUNK_ITEMS):
        chunks.remove(item, numbers[item])
    for item in range(1_000, 1_000 + CHUNK_ITEMS):
        chunks.add(item)
    rest = [item for chunk in walk for item in chunk]
    assert rest == [*range(CHUNK_ITEMS + 1, 2 * CHUNK_ITEMS), 3 * CHUNK_ITEMS + 1]


def test_the_order_is_that_of_a_dictionary_after_any_changes() -> None:
    chance = random.Random(7)
    chunks, known, numbers = Chunks[int](), dict[int, None](), dict[int, int]()
    for step in range(5_000):
        if known and chance.random() < 0.45:
            item = chance.choice(list(known))
            chunks.remove(item, numbers.pop(item))
            del known[item]
        else:
            known[step] = None
            numbers[step] = chunks.add(step)
    assert [item for chunk in chunks.walk() for item in chunk] == list(known)
