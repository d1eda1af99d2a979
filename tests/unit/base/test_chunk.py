"""What the broker knows of a chunk."""

from __future__ import annotations

from headgate.base.chunk import Chunk


def test_a_chunk_is_of_a_message() -> None:
    assert Chunk(7, is_first=True) == (7, True)
