"""Blocks of an index there and back, and with every byte flipped."""

from __future__ import annotations

from array import array

import pytest

from headgate.base.errors import CorruptionError
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.index_block import (
    BLOCK_ENTRIES,
    block_bytes,
    columns_bytes,
    decode_block,
    decode_columns,
    encode_block,
    encode_columns,
)


def columns_of(count: int) -> Columns:
    return Columns(
        array("I", range(64, 64 + count)),
        array("q", range(1_000, 1_001 + count)),
        array("I", range(7, 8 + count)),
        array("q", range(50, 51 + count)),
        array("q", range(-3, count - 2)),
    )


@pytest.mark.parametrize("count", [1, 5, BLOCK_ENTRIES])
def test_there_and_back(count: int) -> None:
    columns = columns_of(count)
    first = 1 << 40
    data = encode_block(9, first, columns, 0, count)
    assert len(data) == block_bytes(count)
    assert decode_block(data + b"more", 9, first, first + count) == (first, columns)


def test_a_part_of_columns() -> None:
    columns = columns_of(6)
    first, found = decode_block(encode_block(9, 12, columns, 2, 5), 9, 13, 15)
    assert first == 12
    assert list(found.offsets) == [66, 67, 68]
    assert list(found.messages) == [52, 53, 54, 55]
    data = encode_columns(columns, 2, 5)
    assert len(data) == columns_bytes(3)
    assert decode_columns(b"x" + data, 1, 3) == found


def test_every_flipped_byte_is_noticed() -> None:
    data = encode_block(9, 12, columns_of(3), 0, 3)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x20
        with pytest.raises(CorruptionError, match="a block of the index"):
            decode_block(bytes(damaged), 9, 12, 15)
    for size in range(len(data)):
        with pytest.raises(CorruptionError, match="a block of the index"):
            decode_block(data[:size], 9, 12, 15)


def test_a_block_of_something_else_is_refused() -> None:
    data = encode_block(9, 12, columns_of(3), 0, 3)
    for topic, first, stop in ((8, 12, 15), (9, 11, 13), (9, 14, 16), (9, 13, 13)):
        with pytest.raises(CorruptionError, match="that of topic number 9, entries 12 to 14"):
            decode_block(data, topic, first, stop)
