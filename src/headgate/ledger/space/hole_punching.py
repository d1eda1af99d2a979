"""Hole punching: returns dead ranges of sealed segments to the file system.

A segment is deleted when no topic retains an entry in it. Until then a few small entries would pin
all of it, so maintenance punches holes between the retained entries. A hole reads as zeros, and
nothing reads it: the index is in the footer, and a start replays no segment before the
checkpoint. The file keeps its length, and every offset stays valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

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

_FREE = re.compile(rb"\0+")


class HolePlan(NamedTuple):
    """What is to be done about the dead ranges of a segment."""

    is_due: bool
    """Whether they are punched now."""
    waiting_bytes: int
    """Dead bytes that wait for a checkpoint; 0 if they do not."""


class HoleFinder:
    """Finds the dead ranges of one sealed segment, topic by topic, in slices of the loop."""

    def __init__(self, info: SegmentInfo) -> None:
        self.segment = info.segment
        self._info = info
        self._retained: list[tuple[TopicLog, int, int]] = []
        self.parts: list[Columns | BlockPart] = []
        """What :meth:`collect` found: the index of the retained entries, as far as it is in
        memory."""
        self.plan: HolePlan | None = None
        """What was decided when all topics were added."""
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

    def forget(self, topics_max: int) -> bool:
        """Free what :meth:`add` noted of so many topics: of 70,000 at once that held the loop for
        10 to 25 ms. False if no topic was left."""
        left = self._retained
        if not left:
            return False
        del left[-topics_max:]
        return True


def holes(retained: Iterable[Columns], data_end: int, hole_bytes_min: int) -> list[tuple[int, int]]:
    """``(offset, size)`` of the holes between retained entries and before the footer.

    For the upkeep thread: it looks at all retained entries, which may come in any order.
    """
    is_held = bytearray(data_end // PAGE_BYTES)
    """One byte for each whole page of the records."""
    is_held[:1] = b"\1"  # the header of the file
    for columns in retained:
        sizes = columns.sizes
        for at, offset in enumerate(columns.offsets):
            first = offset // PAGE_BYTES
            stop = offset + ENTRY_HEAD_BYTES + sizes[at + 1] - sizes[at]
            behind = -(-stop // PAGE_BYTES)
            is_held[first:behind] = b"\1" * (min(behind, len(is_held)) - first)
    runs = (run.span() for run in _FREE.finditer(is_held))
    found = ((begin * PAGE_BYTES, (end - begin) * PAGE_BYTES) for begin, end in runs)
    return [(offset, size) for offset, size in found if size >= hole_bytes_min]
