"""The state of a log in memory, which recovery builds and staging keeps current."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.ledger.format.records import SEGMENT_HEADER_BYTES
from headgate.ledger.index.cursors import CursorState
from headgate.ledger.index.orphaned_records import OrphanedRecords
from headgate.ledger.index.topic_log import TopicLog


@dataclass(slots=True)
class SegmentInfo:
    """One segment file."""

    segment: int
    data_end: int = SEGMENT_HEADER_BYTES
    """One past its last durable record."""
    live_runs: int = 0
    """Runs of retained entries in it; a sealed segment without any can be deleted."""
    topics: dict[int, None] = field(default_factory=dict)
    """Numbers of the topics that ever had a run in it, in order."""
    sealed: bool = False
    """It has a durable footer and gets no more records."""
    last_batch: int = 0
    """Number of its last durable batch; 0 if there is none, or if it is unknown."""
    dead_bytes: int = 0
    """Dead bytes when holes were last punched into it."""


@dataclass(slots=True)
class LogState:
    """The state that checkpoint, footers and replayed records add up to."""

    topics: dict[int, TopicLog] = field(default_factory=dict)
    cursors: dict[int, CursorState] = field(default_factory=dict)
    """By cursor id, oldest first; changed by :meth:`put_cursor` and :meth:`drop_cursor` only."""
    topic_cursors: dict[int, dict[int, CursorState]] = field(default_factory=dict)
    """Cursors by topic number, then cursor id; without topics that have none."""
    segments: dict[int, SegmentInfo] = field(default_factory=dict)
    """By segment id, ascending."""
    next_ledger_id: int = 1
    next_cursor_id: int = 1
    next_batch: int = 1
    """The first batch number that was never used."""
    last_batch: int = 0
    """Number of the last batch in the log."""
    next_segment: int = 1
    checkpoint_segment: int = 1
    """Replay starts at this segment."""
    checkpoint_last_batch: int = 0
    """Number of the last batch before that segment."""
    unsealed: dict[int, None] = field(default_factory=dict)
    """Segments without a footer, ascending."""
    worn: dict[int, None] = field(default_factory=dict)
    """Segments that lost entries since maintenance last considered holes in them."""
    check_dead: bool = True
    """Whether a segment may have lost its last live run since maintenance last looked."""
    leftovers: list[str] = field(default_factory=list)
    """Names of empty or temporary files to remove."""
    topics_bounded: int = 0
    """Topics with a receive time that the start lowered to its bound."""
    orphans: OrphanedRecords = field(default_factory=OrphanedRecords)
    """Records of unknown topic numbers."""
    replayed_records: int = 0
    replayed_bytes: int = 0

    def topic(self, number: int) -> TopicLog:
        """The log of a topic, created if it is new."""
        found = self.topics.get(number)
        if found is None:
            found = self.topics[number] = TopicLog(number)
        return found

    def put_cursor(self, cursor: CursorState) -> None:
        """Add a cursor, or replace it."""
        self.cursors[cursor.cursor_id] = cursor
        self.topic_cursors.setdefault(cursor.topic_number, {})[cursor.cursor_id] = cursor

    def drop_cursor(self, cursor_id: int) -> CursorState | None:
        """Remove a cursor; returns it, or None if it is unknown."""
        cursor = self.cursors.pop(cursor_id, None)
        if cursor is not None:
            siblings = self.topic_cursors[cursor.topic_number]
            del siblings[cursor_id]
            if not siblings:
                del self.topic_cursors[cursor.topic_number]
        return cursor

    def cursors_of(self, topic_number: int) -> list[CursorState]:
        """The cursors of a topic, oldest first."""
        return [*self.topic_cursors.get(topic_number, {}).values()]

    def last_batch_before(self, segment: int) -> int:
        """Number of the last durable batch before a segment."""
        for other in reversed(self.segments.values()):
            if other.segment < segment and other.last_batch:
                return other.last_batch
        return self.checkpoint_last_batch

    def enter_segment(self, segment: int) -> SegmentInfo:
        """The info of a segment, created if it is new."""
        info = self.segments.get(segment)
        if info is None:
            info = self.segments[segment] = SegmentInfo(segment)
            self.unsealed[segment] = None
        return info

    def release_runs(self, segments: list[int]) -> None:
        """Count one live run less in each of these segments."""
        for segment in segments:
            info = self.segments.get(segment)
            if info is not None:
                info.live_runs -= 1
                self.worn[segment] = None
                if info.live_runs == 0:
                    self.check_dead = True
