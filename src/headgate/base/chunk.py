"""A chunk of a message that is too large for one entry."""

from __future__ import annotations

from typing import NamedTuple


class Chunk(NamedTuple):
    """What the broker knows of a chunk."""

    message: int
    """A number of its message, the same for all its chunks while the broker runs."""
    is_first: bool
