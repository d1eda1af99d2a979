"""Frames of a file of records: each message of a window with its length and a checksum.

A frame is four bytes of length, four bytes of CRC-32 (both big endian) and the message. A file ends
after its last frame.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from headgate.base.errors import CorruptionError
from headgate.record.fields import MESSAGE_BYTES_MAX

FILE_SUFFIX: Final = ".records"
"""End of the name of a file of records; before it stand milliseconds since the epoch."""

_HEAD: Final = struct.Struct(">II")


def framed(message: bytes) -> bytes:
    """One message as a frame."""
    return _HEAD.pack(len(message), zlib.crc32(message)) + message


def frames(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """The messages of a file; ``read`` gives its next bytes, as many as asked for.

    Raises:
        CorruptionError: the file ends within a frame, or the bytes of one are others than those
            that were written. The text says from which byte on.
    """
    at = 0
    while head := read(_HEAD.size):
        if len(head) < _HEAD.size:
            raise CorruptionError(f"the file ends within the record at byte {at:,}")
        length, checksum = _HEAD.unpack(head)
        if length > MESSAGE_BYTES_MAX:
            raise CorruptionError(
                f"the record at byte {at:,} has a length of {length:,} bytes; at most "
                f"{MESSAGE_BYTES_MAX:,} are allowed"
            )
        message = read(length)
        if len(message) < length:
            raise CorruptionError(f"the file ends within the record at byte {at:,}")
        if zlib.crc32(message) != checksum:
            raise CorruptionError(f"the record at byte {at:,} was changed after it was written")
        yield message
        at += _HEAD.size + length
