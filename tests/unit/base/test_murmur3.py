"""MurmurHash3, against published values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.murmur3 import HASH_MAX, murmur3_32, murmur3_32_of_each


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"", 0),
        (b"a", 0x3C2569B2),
        (b"abc", 0xB3DD93FA),
        (b"abcd", 0x43ED676A),
        (b"Hello, world!", 0xC0363E43),
        (b"The quick brown fox jumps over the lazy dog", 0x2E4FF723),
    ],
)
def test_published_values(data: bytes, whole: int) -> None:
    assert murmur3_32(data) == whole & HASH_MAX


@given(st.binary(max_size=40), st.lists(st.binary(max_size=9), max_size=5))
def test_one_beginning_with_many_ends(beginning: bytes, ends: list[bytes]) -> None:
    found = list(murmur3_32_of_each(beginning, ends))
    assert found == [murmur3_32(beginning + end) for end in ends]
