"""Hole punching: returns dead ranges of sealed segments to the file system.

A segment is deleted when no topic retains an entry in it. Until then a few small entries would pin
all of it, so maintenance punches holes between the retained entries. A hole reads as zeros, and
nothing reads it: the index is in the footer, and a start replays no segment before the
checkpoint. The file keeps its length, and every offset stays valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.base.units import KIB
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, SEGMENT_HEADER_BYTES
from headgate.ledger.index.block_cache import BlockPart
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.state import SegmentInfo
from headgate.ledger.index.topic_log import TopicLog

PAGE_BYTES: Final = 4 * KIB
"""Holes are aligned to this size, the block size of most file systems."""
WASTE_PART: Final = 8
"""Holes are worth punching if they free at least this fraction of a segment."""


class HoleFinder:
    """Finds the dead ranges of one sealed segment, topic by topic, in slices of the loop."""

    def __init__(self, info: SegmentInfo) -> None:
        self.segment = info.segment
        self._info = info
        self._retained: list[tuple[TopicLog, int, int]] = []
        self.parts: list[Columns | BlockPart] = []
        """What :meth:`collect` found: the index of the retained entries, as far as it is in
        memory."""
        self._live_bytes = 0
        self._is_damaged = False

    def add(self, topic: TopicLog) -> None:
        """Add the entries that a topic retains in the segment."""
        if topic.damage:
            self._is_damaged = True  # bytes outside the index may be needed for a repair
        run = topic.run_in(self._info.segment)
        if run is None:
            return
        first, end = max(run[0], topic.first), run[1]
        if first < end:
            self._retained.append((topic, first, end))
            bodies_bytes = topic.bytes_before(end) - topic.bytes_before(first)
            self._live_bytes += bodies_bytes + (end - first) * ENTRY_HEAD_BYTES

    @property
    def dead_bytes(self) -> int:
        """Estimated dead bytes of the segment; 0 if a topic in it is damaged."""
        if self._is_damaged:
            return 0
        return self._info.data_end - SEGMENT_HEADER_BYTES - self._live_bytes

    def collect(self, topics_max: int) -> bool:
        """Look up the index of what so many topics retain now; entries trimmed since :meth:`add`
        are left out. False if no topic was left."""
        left = self._retained
        if not left:
            return False
        for _ in range(min(topics_max, len(left))):
            topic, first, end = left.pop()
            kept = max(first, topic.first)
            if kept < end:
                self.parts += topic.parts(kept, end)
        return True


def holes(retained: Iterable[Columns], data_end: int, hole_bytes_min: int) -> list[tuple[int, int]]:
    """``(offset, size)`` of the holes between retained entries and before the footer.

    For the upkeep thread: it sorts all retained entries.
    """
    extents = sorted(
        (offset, offset + ENTRY_HEAD_BYTES + columns.sizes[at + 1] - columns.sizes[at])
        for columns in retained
        for at, offset in enumerate(columns.offsets)
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
