"""One block of a footer: the index of up to :data:`BLOCK_ENTRIES` entries of a topic.

A block can be read and checked without the rest of its footer::

    head         u32 topic | u32 n | u64 first ordinal
    columns      u32 * n offsets | i64 * (n + 1) receive times (ms) before
                 | u32 * (n + 1) publish lags (ms) before | i64 * (n + 1) messages before
                 | i64 * (n + 1) bytes before
    end          u32 CRC32C of all before
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Final

from headgate.base.errors import CorruptionError, invariant
from headgate.ledger.format.records import CRC, CRC_BYTES, crc32c, crc32c_extend
from headgate.ledger.index.columns import Columns

BLOCK_ENTRIES: Final = 128
"""Entries of a block; the last block of a run may have fewer. A block of this size has 4,144
bytes: one small read brings it back."""

_HEAD = struct.Struct("<IIQ")

invariant(sys.byteorder == "little", "the stored arrays are little endian")
invariant(array("I").itemsize == 4, "the stored offsets have 4 bytes")


def columns_bytes(count: int) -> int:
    """Bytes of the columns of ``count`` entries."""
    return 4 * count + 28 * (count + 1)


def block_bytes(count: int) -> int:
    """Bytes of a block of ``count`` entries."""
    return _HEAD.size + columns_bytes(count) + CRC_BYTES


def encode_columns(columns: Columns, first: int = 0, end: int | None = None) -> bytes:
    """The bytes of the columns of entries ``first`` to ``end``, counted from their beginning."""
    stop = len(columns.offsets) if end is None else end
    offsets, *sums = columns
    return b"".join(
        [offsets[first:stop].tobytes(), *(column[first : stop + 1].tobytes() for column in sums)]
    )


def decode_columns(data: bytes, at: int, count: int) -> Columns:
    """The columns of ``count`` entries that begin at an offset of ``data``."""
    more = count + 1
    columns = Columns(*(array(code) for code in "IqIqq"))
    sizes = (4 * count, 8 * more, 4 * more, 8 * more, 8 * more)
    for column, size in zip(columns, sizes, strict=True):
        column.frombytes(data[at : at + size])
        at += size
    return columns


def encode_block(topic: int, ordinal: int, columns: Columns, first: int, end: int) -> bytes:
    """The block of entries ``first`` to ``end`` of the columns, of which the first has
    ``ordinal``."""
    head = _HEAD.pack(topic, end - first, ordinal)
    body = encode_columns(columns, first, end)
    return b"".join((head, body, CRC.pack(crc32c_extend(crc32c(head), body))))


def decode_block(data: bytes, topic: int, first: int, stop: int) -> tuple[int, Columns]:
    """The first ordinal and the columns of a block at the beginning of ``data``, which may have
    more bytes.

    Raises :class:`CorruptionError` if it is damaged, or not the index of these entries of the
    topic, with or without others.
    """
    if len(data) < _HEAD.size:
        raise CorruptionError("a block of the index is cut short")
    number, count, begin = _HEAD.unpack_from(data)
    end = block_bytes(count) - CRC_BYTES
    if end + CRC_BYTES > len(data) or CRC.unpack_from(data, end)[0] != crc32c(data[:end]):
        raise CorruptionError("a block of the index has a wrong checksum")
    if number != topic or not begin <= first < stop <= begin + count:
        raise CorruptionError(
            f"a block of the index is that of topic number {number}, entries {begin} to "
            f"{begin + count - 1}"
        )
    return begin, decode_columns(data, _HEAD.size, count)
