"""Checks SQLite's write-ahead log for damage that SQLite takes for its end.

SQLite uses a WAL up to its last whole transaction and silently ignores the rest. After a power cut
the rest is a transaction that was never confirmed. But SQLite treats a damaged frame in the middle
alike, and so silently drops every later transaction.

A transaction is written only after the one before it was synced. So if the last frame of a
transaction and another whole frame follow frames that are not whole, the latter were durable once.
Each frame's checksum continues the one stored before it, so frames behind damage can be checked.
The header lies in one sector and is never written in part. A header that is not whole is damaged,
unless it is all zeros, as after the file grew without a write.

This check cannot distinguish damage in the last two transactions from a torn tail. The revision of
the metadata, which the log's directory records as well, shows that.

The format is SQLite's, big-endian; see "WAL-mode File Format" in its documentation.
"""

from __future__ import annotations

import struct
from typing import Final

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC_LITTLE: Final = 0x377F0682
"""The magic number of little-endian checksums; one more means big-endian."""
_PAGE_BYTES: Final = tuple(1 << bits for bits in range(9, 17))
"""The sizes of a page that SQLite knows."""
_U32 = 0xFFFFFFFF

Sum = tuple[int, int]


def wal_damage(data: bytes) -> int | None:
    """The offset where a WAL is certainly damaged: 0 or that of a frame; None if there is none.

    Pass ``b""`` for an empty or missing WAL.
    """
    if len(data) < _HEADER.size or not any(data[: _HEADER.size]):
        return None
    magic, _, page_bytes, _, salt_1, salt_2, *stored = _HEADER.unpack_from(data)
    order = "<" if magic == _MAGIC_LITTLE else ">"
    before: Sum = (stored[0], stored[1])
    if before != _sum(data[: _HEADER.size - 8], (0, 0), order):
        return 0
    if page_bytes not in _PAGE_BYTES:
        return 0
    damaged_at: int | None = None
    ended = False
    size = _FRAME.size + page_bytes
    for at in range(_HEADER.size, len(data) - size + 1, size):
        _, pages_after, frame_salt_1, frame_salt_2, *stored = _FRAME.unpack_from(data, at)
        summed = _sum(data[at : at + 8], before, order)
        summed = _sum(data[at + _FRAME.size : at + size], summed, order)
        before = (stored[0], stored[1])
        if (frame_salt_1, frame_salt_2) != (salt_1, salt_2) or summed != before:
            damaged_at = at if damaged_at is None else damaged_at
        elif damaged_at is not None:
            if ended:
                return damaged_at
            ended = pages_after != 0
    return None


def _sum(data: bytes, before: Sum, order: str) -> Sum:
    """SQLite's checksum of an even number of words, continued from ``before``."""
    first, second = before
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & _U32
        second = (second + odd + first) & _U32
    return first, second
