"""The words of an ``ack_set``, which say what is left of a batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.ack_words import acked_mask, words_of
from headgate.base.errors import InputError


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, (1 << n) - 1))))
def test_there_and_back(batch: tuple[int, int]) -> None:
    size, left = batch
    words = words_of(left)
    assert all(-(1 << 63) <= word < 1 << 63 for word in words)
    assert not words or words[-1], "no word at the end is 0"
    assert acked_mask(words, size) == left ^ ((1 << size) - 1)


def test_the_words_are_those_of_javas_bit_set() -> None:
    assert words_of(0b101) == (5,)
    assert words_of(1 << 63) == (-(1 << 63),)
    assert words_of(1 << 64 | 2) == (2, 1)


def test_words_at_the_end_may_be_left_out_or_be_0() -> None:
    assert acked_mask((5,), 70) == acked_mask((5, 0), 70) == ((1 << 70) - 1) ^ 5
    assert acked_mask((5, 0, 0), 3) == 0b010
    assert acked_mask((), 3) == 0b111


@pytest.mark.parametrize(("words", "size"), [((8,), 3), ((-1,), 63), ((0, 1), 64), ((1, 0, 4), 9)])
def test_a_word_beyond_the_batch_is_refused(words: tuple[int, ...], size: int) -> None:
    with pytest.raises(InputError, match=f"of a batch of {size}"):
        acked_mask(words, size)
