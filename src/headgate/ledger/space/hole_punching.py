"""Hole punching: dead parts of sealed segments are given back to the file system.

A segment goes as a whole when no topic holds an entry in it. Until then a few small entries would
keep all of it; so the ranges between what is held are punched out of the file. They read as zeros
then, and nobody reads them: a start takes the index from the footer, and replays no segment before
the checkpoint. The file keeps its length, every offset stays what it was.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from headgate.base.units import KIB
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, SEGMENT_HEADER_BYTES
from headgate.ledger.index.state import SegmentInfo
from headgate.ledger.index.topic_log import TopicLog

PAGE_BYTES: Final = 4 * KIB
"""File systems give back whole blocks; this is the size of most, and a part of larger ones."""
WASTE_PART: Final = 8
"""A segment is worth a look when this part of a whole one can be had."""


class HoleFinder:
    """Looks at one sealed segment, topic by topic, so that the loop can do it in slices."""

    def __init__(self, info: SegmentInfo) -> None:
        self.segment = info.segment
        self._info = info
        self._held: list[tuple[TopicLog, int, int]] = []
        self._live_bytes = 0
        self._is_damaged = False

    def add(self, topic: TopicLog) -> None:
        """Add what a topic holds in the segment."""
        if topic.damage:
            self._is_damaged = True  # what is not indexed may be all that is left of it
        run = topic.run_in(self._info.segment)
        if run is None:
            return
        first, end = max(run[0], topic.first), run[1]
        if first < end:
            self._held.append((topic, first, end))
            bodies_bytes = topic.bytes_before(end) - topic.bytes_before(first)
            self._live_bytes += bodies_bytes + (end - first) * ENTRY_HEAD_BYTES

    @property
    def dead_bytes(self) -> int:
        """About how much of the segment nobody holds; 0 where that is not sure."""
        if self._is_damaged:
            return 0
        return self._info.data_end - SEGMENT_HEADER_BYTES - self._live_bytes

    def held(self) -> list[tuple[array[int], array[int]]]:
        """Offsets and running sizes of all that is held, as they are now: what was trimmed since it
        was added is not held any more, and the index of it may be gone."""
        found = []
        for topic, first, end in self._held:
            kept = max(first, topic.first)
            columns = topic.columns(kept, max(end, kept))
            found.append((columns.offsets, columns.sizes))
        return found


def holes(
    held: Iterable[tuple[array[int], array[int]]], data_end: int, hole_bytes_min: int
) -> list[tuple[int, int]]:
    """``(offset, size)`` of the holes between what is held and before the footer.

    Costs a sort of all entries that are held: for the commit thread.
    """
    extents = sorted(
        (offset, offset + ENTRY_HEAD_BYTES + sizes[at + 1] - sizes[at])
        for offsets, sizes in held
        for at, offset in enumerate(offsets)
    )
    found: list[tuple[int, int]] = []
    before = SEGMENT_HEADER_BYTES
    for start, stop in [*extents, (data_end, data_end)]:
        first = -(-before // PAGE_BYTES) * PAGE_BYTES
        last = start // PAGE_BYTES * PAGE_BYTES
        if last - first >= hole_bytes_min:
            found.append((first, last - first))
        before = max(before, stop)
    return found
