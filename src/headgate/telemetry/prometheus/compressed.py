"""A long text as compressed blocks, made piece by piece, sent as gzip or as plain text.

A page of metrics repeats itself so much that it compresses to a seventeenth of its size. Each block
is deflated separately and ends at a byte boundary, so that blocks in any order are a valid stream:
with gzip's header before them, and an empty last block and the checksum of the whole text behind
them, they are one gzip member (readers such as curl accept only one). Decompressed they are the
text again, block by block. The checksum is combined from those of the blocks, as zlib's
``crc32_combine`` does.

Rules of this file: no I/O, no waiting; long work yields to its caller.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.base.units import KIB

BLOCK_BYTES: Final = 32 * KIB
"""Text of a block: takes 0.2 ms to compress."""

_LEVEL: Final = 1
"""The fastest level: others gain little on so repetitive a text."""

_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK: Final = b"\x03\x00"
_GZIP_TAIL: Final = struct.Struct("<II")
_CRC_POLYNOMIAL: Final = 0xEDB88320


class Block(NamedTuple):
    """Some of the text."""

    deflated: bytes
    size_bytes: int
    """Of the text."""
    crc: int


def deflate(text: bytes | bytearray) -> Block:
    """Compress a block."""
    # Its table of former places is as large as the text: a larger one only takes longer to make.
    stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = stream.compress(text) + stream.flush(zlib.Z_FULL_FLUSH)
    return Block(deflated, len(text), zlib.crc32(text))


class Compressed:
    """A whole text. It may be :meth:`closed <close>` while it is still read."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._crc = 0
        self.size_bytes = 0
        """Of the text."""
        self.gzip_bytes = len(_GZIP_HEAD) + len(_LAST_BLOCK) + _GZIP_TAIL.size
        """Of the text as gzip."""
        self.is_closed = False

    def add(self, block: Block) -> None:
        """Put a block behind the others. Takes 5 us."""
        self._blocks.append(block)
        self._crc = combine(self._crc, block.crc, block.size_bytes)
        self.size_bytes += block.size_bytes
        self.gzip_bytes += len(block.deflated)

    def close(self) -> None:
        """Free the memory, even if the text is still referred to."""
        self.is_closed = True
        self._blocks = []

    def as_text(self) -> Iterator[bytes]:
        """The text in pieces; ends early if the text is closed meanwhile."""
        for block in self._each():
            yield zlib.decompress(block.deflated + _LAST_BLOCK, -zlib.MAX_WBITS)

    def as_gzip(self) -> Iterator[bytes]:
        """The text as gzip, in pieces."""
        yield _GZIP_HEAD
        for block in self._each():
            yield block.deflated
        if not self.is_closed:
            yield _LAST_BLOCK + _GZIP_TAIL.pack(self._crc, self.size_bytes & 0xFFFFFFFF)

    def _each(self) -> Iterator[Block]:
        index = 0
        while index < len(self._blocks):
            yield self._blocks[index]
            index += 1


def combine(crc: int, crc_after: int, size_bytes: int) -> int:
    """The CRC-32 of a text, from that of its beginning and of the ``size_bytes`` after it."""
    power = 0
    while size_bytes:
        if size_bytes & 1:
            crc = _times(_zeros(power), crc)
        size_bytes >>= 1
        power += 1
    return crc ^ crc_after


_ZEROS: list[list[int]] = []
"""What 2**n bytes of zeros behind a text make of its CRC, by n: a matrix over bits."""


def _zeros(power: int) -> list[int]:
    if not _ZEROS:
        matrix = [_CRC_POLYNOMIAL, *(1 << bit for bit in range(31))]  # one bit
        for _ in range(3):
            matrix = [_times(matrix, row) for row in matrix]
        _ZEROS.append(matrix)
    while len(_ZEROS) <= power:
        _ZEROS.append([_times(_ZEROS[-1], row) for row in _ZEROS[-1]])
    return _ZEROS[power]


def _times(matrix: list[int], bits: int) -> int:
    product = 0
    for row in matrix:
        if not bits:
            break
        if bits & 1:
            product ^= row
        bits >>= 1
    return product
