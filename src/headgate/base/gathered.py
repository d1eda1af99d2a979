"""Bytes that are gathered until a part of an answer is as long as it should be."""

from __future__ import annotations


def taken(gathered: list[bytes]) -> bytes:
    """All of them as one part; none is left. What waits for a client to read the part keeps no
    second copy of it."""
    part = b"".join(gathered)
    gathered.clear()
    return part
