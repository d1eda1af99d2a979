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
    data = encode_block(9, 1 << 40, columns, 0, count)
    assert len(data) == block_bytes(count)
    assert decode_block(data + b"more", 9, 1 << 40) == columns


def test_a_part_of_columns() -> None:
    columns = columns_of(6)
    found = decode_block(encode_block(9, 12, columns, 2, 5), 9, 12)
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
            decode_block(bytes(damaged), 9, 12)
    for size in range(len(data)):
        with pytest.raises(CorruptionError, match="a block of the index"):
            decode_block(data[:size], 9, 12)


def test_a_block_of_something_else_is_refused() -> None:
    data = encode_block(9, 12, columns_of(3), 0, 3)
    with pytest.raises(CorruptionError, match="that of topic number 9 from entry 12 on"):
        decode_block(data, 8, 12)
    with pytest.raises(CorruptionError, match="that of topic number 9 from entry 12 on"):
        decode_block(data, 9, 13)
