"""Frames through pipes, between a program and a process of its own: a length, and so many bytes."""

from __future__ import annotations

import os
from typing import Final

from headgate.base.units import MIB

_LENGTH_BYTES: Final = 4
_READ_BYTES: Final = MIB
"""What is asked for at once: what a length says is not taken before it comes."""


def write_frame(fd: int, data: bytes) -> None:
    """Send some bytes. Blocks. Raises :class:`BrokenPipeError` if nobody reads."""
    left = memoryview(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    while left:
        left = left[os.write(fd, left) :]


def read_frame(fd: int) -> bytes:
    """The next bytes that were sent; empty at the end. Blocks.

    Raises:
        EOFError: the end came amid a frame.
    """
    head = _read(fd, _LENGTH_BYTES)
    if not head:
        return b""
    size = int.from_bytes(head, "little")
    data = _read(fd, size) if len(head) == _LENGTH_BYTES else b""
    if len(head) < _LENGTH_BYTES or len(data) < size:
        raise EOFError("the other end is closed")
    return data


def _read(fd: int, size: int) -> bytes:
    """So many bytes, or fewer at the end."""
    parts = []
    while size and (data := os.read(fd, min(size, _READ_BYTES))):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
