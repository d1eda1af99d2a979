"""The hash MurmurHash3, 32 bits, seed 0, as Pulsar uses it: without the sign bit.

Source: Austin Appleby's description of MurmurHash3_x86_32, which is in the public domain.
"""

from __future__ import annotations

from typing import Final

_C1: Final = 0xCC9E2D51
_C2: Final = 0x1B873593
_MASK: Final = 0xFFFFFFFF

HASH_MAX: Final = 0x7FFFFFFF


def murmur3_32(data: bytes) -> int:
    """The hash of ``data``, 0 to :data:`HASH_MAX`."""
    value = 0
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value ^= _mixed(int.from_bytes(data[at : at + 4], "little"))
        value = ((value << 13) | (value >> 19)) & _MASK
        value = (value * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        value ^= _mixed(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    value ^= value >> 16
    value = (value * 0x85EBCA6B) & _MASK
    value ^= value >> 13
    value = (value * 0xC2B2AE35) & _MASK
    value ^= value >> 16
    return value & HASH_MAX


def _mixed(block: int) -> int:
    block = (block * _C1) & _MASK
    block = ((block << 15) | (block >> 17)) & _MASK
    return (block * _C2) & _MASK
