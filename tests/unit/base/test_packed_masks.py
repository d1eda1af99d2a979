"""A compact map of masks behaves as a dictionary that is sorted."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.packed_masks import (
    EDGES_MAX,
    LEAF_BYTES_MAX,
    LEAF_MASKS_MAX,
    PackedMasks,
    Sums,
    _decoded,
    _encoded,
)

LENGTHS = [1, 2, 7, 8, 9, 255, 256, 257, 1_000, 65_535, 65_536, 65_537, 1 << 20]


@given(st.sampled_from(LENGTHS), st.lists(st.integers(0, 1 << 20), max_size=EDGES_MAX + 2))
def test_a_mask_comes_back(length: int, edges: list[int]) -> None:
    mask = 1 << length
    for edge in edges:
        mask ^= (1 << min(edge, length)) - 1
    assert _decoded(_encoded(mask)) == mask


@given(st.integers(1, 1 << 200))
def test_any_mask_comes_back(mask: int) -> None:
    assert _decoded(_encoded(mask)) == mask


def test_few_runs_take_few_bytes_and_many_no_more_than_their_bits() -> None:
    prefix = 1 << 100_000 | (1 << 60_000) - 1
    assert len(_encoded(prefix)) == 1 + 3 * 4
    chance = random.Random(1)
    for length in LENGTHS:
        assert len(_encoded(1 << length | chance.getrandbits(length))) <= 2 + length // 8


def sums_of(masks: Iterable[int]) -> Sums:
    found = list(masks)
    return Sums(
        len(found),
        sum(mask.bit_count() - 1 for mask in found),
        sum((mask.bit_length() - 1) // 8 for mask in found),
    )


def checked(masks: PackedMasks, model: dict[int, int]) -> None:
    assert len(masks) == len(model)
    assert list(masks.items()) == sorted(model.items())
    assert masks._firsts == [leaf.ordinals[0] for leaf in masks._leaves]
    for leaf in masks._leaves:
        assert 1 <= len(leaf.ordinals) == len(leaf.ends) <= LEAF_MASKS_MAX
        assert leaf.ends[-1] == len(leaf.data)
        assert leaf.sums() == sums_of(map(leaf.mask, range(len(leaf.ordinals))))
        largest = max(stop - start for start, stop in pairwise([0, *leaf.ends]))
        assert len(leaf.data) - largest <= LEAF_BYTES_MAX


@given(st.integers(0, 1 << 30), st.sampled_from([8, 300, 5_000, 60_000]))
def test_it_is_a_sorted_dictionary(seed: int, length_max: int) -> None:
    chance = random.Random(seed)
    masks, model = PackedMasks(), dict[int, int]()
    span = chance.choice([50, 400, 2_000])
    for _ in range(chance.choice([30, 400])):
        first = chance.randrange(span)
        stop = first + chance.choice([0, 1, 5, span // 4])
        if chance.random() < 0.15:
            found = [o for o in model if first <= o < stop]
            wanted = sums_of(model[ordinal] for ordinal in found)
            assert masks.sums(first, stop) == wanted
            assert masks.drop(first, stop) == wanted
            for ordinal in found:
                del model[ordinal]
        else:
            length = chance.randrange(1, length_max)
            mask = 1 << length | chance.getrandbits(length)
            masks.put(first, mask)
            model[first] = mask
        assert masks.get(stop) == model.get(stop, 0)
        assert (stop in masks) is (stop in model)
        assert masks.first_from(stop) == min((o for o in model if o >= stop), default=-1)
    checked(masks, model)
    low, high = sorted((chance.randrange(span), chance.randrange(span)))
    within = sorted((o, mask) for o, mask in model.items() if low <= o < high)
    assert list(masks.items(low, high)) == within
    masks.drop(0, span)
    checked(masks, {})


def test_what_is_left_after_many_are_dropped_lies_in_few_leaves() -> None:
    masks = PackedMasks()
    for ordinal in range(6_400):
        masks.put(ordinal, 0b11)
    full = len(masks._leaves)
    assert full == 100
    for ordinal in range(6_400):
        if ordinal % LEAF_MASKS_MAX:
            masks.drop(ordinal, ordinal + 1)
    assert len(masks) == 100
    assert len(masks._leaves) <= 5
    checked(masks, dict.fromkeys(range(0, 6400, LEAF_MASKS_MAX), 3))
