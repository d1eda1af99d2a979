"""What texts take in memory is not less than what Python says."""

from __future__ import annotations

import sys

import msgspec
import pytest

from headgate.base.text_memory import PROPERTY_BYTES, properties_bytes, text_bytes, texts_bytes


@pytest.mark.parametrize("mark", ["a", "ä", "€", "漢", "\U0001f600", "\ud800"])
def test_one_wide_character_makes_all_of_them_wide(mark: str) -> None:
    text = mark + "a" * 10_000
    assert 0 <= sys.getsizeof(text) - text_bytes(text) + (not mark.isascii()) * 10_004 < 100


def test_json_keeps_the_bytes_of_a_text_that_is_not_ascii() -> None:
    text = "\U0001f600" + "a" * 10_000
    msgspec.json.encode(text)
    assert abs(sys.getsizeof(text) - text_bytes(text)) < 100


def test_keys_and_values_count() -> None:
    assert texts_bytes({"ab": "c", "d": "ä"}) == 4 + 1 + 2
    assert properties_bytes({"ab": "c"}) == PROPERTY_BYTES + 3
