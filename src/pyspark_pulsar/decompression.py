"""Decompression of what producers sent, which may be anything.

A producer states the codec and the size of the payload before compression. That size is the bound
of what is unpacked, and must be right. Arrow does not say how many bytes it wrote: it gives a block
that is shorter than stated with a rest of unset memory. So this module checks the size itself.

Pure.
"""

from __future__ import annotations

import zlib
from typing import Final

import pyarrow as pa

from pyspark_pulsar.metadata import PartError
from pyspark_pulsar.offsets import varint

NONE: Final = 0
LZ4, ZLIB, ZSTD, SNAPPY = 1, 2, 3, 4
"""The values of Pulsar's ``CompressionType``."""

_CODECS: Final = {
    LZ4: pa.Codec("lz4_raw"),
    ZSTD: pa.Codec("zstd"),
    SNAPPY: pa.Codec("snappy"),
}
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_EMPTY_LZ4: Final = b"\0"


def decompressed(payload: bytes, codec: int, size: int, bytes_max: int) -> bytes:
    """The ``size`` bytes that a producer compressed with ``codec``, a ``CompressionType``.

    Raises :class:`PartError` if the codec is unknown, the size is above ``bytes_max``, or
    ``payload`` is not exactly the compressed form of so many bytes.
    """
    if codec == NONE:
        return payload
    if codec != ZLIB and codec not in _CODECS:
        raise PartError(f"compression {codec} is unknown")
    if size > bytes_max:
        raise PartError(f"{size:,} bytes before compression, above {bytes_max:,}")
    if not payload and not size:
        return payload
    try:
        whole = _inflated(payload, size) if codec == ZLIB else _unpacked(payload, codec, size)
    except (ValueError, OSError, zlib.error) as error:  # Arrow's are subclasses of the first two
        raise PartError("the payload cannot be decompressed") from error
    if whole is None:
        raise PartError(f"the payload is not the compressed form of {size:,} bytes")
    return whole


def _inflated(payload: bytes, size: int) -> bytes | None:
    """The payload of zlib; None if it has another size. Raises ``zlib.error``."""
    unpacking = zlib.decompressobj()
    whole = unpacking.decompress(payload, size + 1)  # a bound of 0 would be none
    if len(whole) != size or not unpacking.eof or unpacking.unused_data:
        return None
    return whole


def _unpacked(payload: bytes, codec: int, size: int) -> bytes | None:
    """The payload by Arrow; None if it has another size. Raises Arrow's errors."""
    stated = _stated_size(payload, codec)
    if stated is not None and stated != size:
        return None
    if not size and codec == LZ4:
        return b"" if payload == _EMPTY_LZ4 else None
    whole = bytes(_CODECS[codec].decompress(payload, size, asbytes=True))
    if stated is None and size and _fits(payload, codec, size - 1):
        return None
    return whole


def _stated_size(payload: bytes, codec: int) -> int | None:
    """The size in a compressed payload itself, which its decoder then checks; None if it has none.

    A block of Snappy begins with it. The header of a Zstandard frame (RFC 8878, 3.1.1.1) has it if
    the encoder knew it. Raises :class:`ValueError` for a truncated number.
    """
    if codec == SNAPPY:
        return varint(payload, 0)[0]
    if codec != ZSTD or payload[:4] != _ZSTD_MAGIC or len(payload) < 5:
        return None
    descriptor = payload[4]
    is_single_segment = descriptor & 0x20
    width = (1 if is_single_segment else 0, 2, 4, 8)[descriptor >> 6]
    if not width:
        return None
    at = 5 + (not is_single_segment) + (0, 1, 2, 4)[descriptor & 3]
    return int.from_bytes(payload[at : at + width], "little") + (256 if width == 2 else 0)


def _fits(payload: bytes, codec: int, size: int) -> bool:
    """Whether a payload that is valid has at most ``size`` bytes when it is decompressed."""
    try:
        _CODECS[codec].decompress(payload, size)
    except (OSError, ValueError):
        return False
    return True
