"""Remembers what was read from the metadata of a topic's large entries.

To read a number from metadata takes up to 2 ns a byte. The subscriptions of a topic look at an
entry once each, and at a chunk that waits for its consumer again and again: for an entry with half
a mebibyte of metadata that may be seconds. So a large entry is read once for all looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

SMALL_BYTES: Final = 8 * 1024
"""A look at an entry up to this size takes 16 us at most, and is not remembered."""

LOOKS_MAX: Final = 512
"""Looks of one topic that are remembered: more than there are chunks that wait for consumers."""


class LargeEntryLooks:
    """What was found in entries of one topic, the last :data:`LOOKS_MAX` of them."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[Callable[[bytes], Any], int], Any] = {}

    def of(self, look: Callable[[bytes], T], ordinal: int, body: bytes) -> T:
        """What ``look`` finds in the entry ``ordinal``, or found before."""
        found, key = self._found, (look, ordinal)
        if key in found:
            known: T = found[key]
            return known
        if len(found) >= LOOKS_MAX:
            del found[next(iter(found))]
        found[key] = result = look(body)
        return result
