"""The state of a log in memory, which recovery builds and staging keeps current."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate.base.stored_total import StoredTotal
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES
from headgate.ledger.index.block_cache import BlockCache, NoFiles
from headgate.ledger.index.cursors import CursorState
from headgate.ledger.index.orphaned_records import OrphanedRecords
from headgate.ledger.index.stored_run import StoredRun, file_id
from headgate.ledger.index.topic_log import Released, TopicLog


@dataclass(slots=True)
class SegmentInfo:
    """One segment file."""

    segment: int
    data_end: int = SEGMENT_HEADER_BYTES
    """One past its last durable record."""
    live_runs: int = 0
    """Runs of retained entries in it."""
    topics: dict[int, None] = field(default_factory=dict)
    """Numbers of the topics that ever had a run in it, in order."""
    sealed: bool = False
    """It has a durable footer and gets no more records."""
    last_batch: int = 0
    """Number of its last durable batch; 0 if there is none, or if it is unknown."""
    dead_bytes: int = 0
    """Dead bytes when holes were last punched into it."""
    file_bytes: int = 0
    """Length of its file, footer included, once it is sealed; 0 before that."""
    punched_bytes: int = 0
    """Bytes of its file that holes gave back."""
    live_bytes: int = 0
    """Bytes of durable, retained ENTRY records in it."""
    version: int = 0
    """How often its file was replaced by a rewritten one since the start."""

    @property
    def is_dead(self) -> bool:
        """Whether no topic needs it. Two counts must say so, because its file is deleted then: one
        wrong count must not cost a message."""
        return self.sealed and self.live_runs == 0 and self.live_bytes == 0


@dataclass(slots=True)
class SpaceTotals:
    """Sums over the segments of a log, kept current with each change."""

    live_bytes: int = 0
    """Bytes of retained entries in all segments."""
    sealed_bytes: int = 0
    """Bytes of the files of sealed segments, holes included."""
    index_bytes: int = 0
    """Bytes of their footers."""
    punched_bytes: int = 0
    """Bytes of holes in them."""
    checkpoint_bytes: int = 0
    """Bytes of the checkpoint and its copy; 0 before the first."""


@dataclass(slots=True)
class Switch:
    """A segment whose file was replaced, while topics are led to the new one."""

    segment: int
    pending: set[int]
    """Numbers of the topics whose entries in the segment are still read from the file before."""
    version: int
    """The version of that file."""
    data_end: int
    """The end of its records."""


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
    dead: dict[int, None] = field(default_factory=dict)
    """Sealed segments that no topic needs, in the order in which they died: they can be deleted."""
    held: frozenset[int] = frozenset()
    """Segments that are being rewritten: until that is done, they are neither punched nor deleted.
    """
    switch: Switch | None = None
    """None unless a file was replaced and topics still have to be led to the new one."""
    space: SpaceTotals = field(default_factory=SpaceTotals)
    dropped: dict[TopicLog, None] = field(default_factory=dict)
    """Deleted topics whose staged entries may still become durable."""
    leftovers: list[str] = field(default_factory=list)
    """Names of empty or temporary files to remove."""
    topics_bounded: int = 0
    """Topics with a receive time that the start lowered to its bound."""
    blocks: BlockCache = field(default_factory=lambda: BlockCache(NoFiles(), 0))
    """Blocks of footers in memory."""
    stored: dict[int, list[StoredRun]] = field(default_factory=dict)
    """Runs that are stored in a footer while topics have them in memory as well, by segment."""
    orphans: OrphanedRecords = field(default_factory=OrphanedRecords)
    """Records of unknown topic numbers."""
    replayed_records: int = 0
    replayed_bytes: int = 0

    def topic(self, number: int) -> TopicLog:
        """The log of a topic.

        Raises:
            KeyError: the topic is deleted, or was never entered.
        """
        return self.topics[number]

    def enter_topic(self, number: int) -> TopicLog:
        """The log of a topic that exists, created if it is new."""
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
        """Number of the last durable batch before a segment, which is not before the checkpoint.

        The segment with that batch may be deleted, while older ones are still there.
        """
        for other in reversed(self.segments.values()):
            if other.segment < segment and other.last_batch:
                return max(other.last_batch, self.checkpoint_last_batch)
        return self.checkpoint_last_batch

    def enter_segment(self, segment: int) -> SegmentInfo:
        """The info of a segment, created if it is new."""
        info = self.segments.get(segment)
        if info is None:
            info = self.segments[segment] = SegmentInfo(segment)
            self.unsealed[segment] = None
        return info

    # Rewriting ------------------------------------------------------------------------------

    def begin_switch(
        self,
        info: SegmentInfo,
        data_end: int,
        file_bytes: int,
        numbers: dict[int, None],
        pending: set[int],
    ) -> None:
        """Note that a rewritten file of ``file_bytes`` replaced that of a sealed segment. It holds
        entries of these topics; :meth:`switch_topic` leads each of them to it. ``pending`` are
        these and those that the segment knew. Both belong to the state from now on: to copy them
        takes 10 ms for 100,000 topics."""
        self.switch = Switch(info.segment, pending, info.version, info.data_end)
        self.note_punched(info, 0)
        self.space.sealed_bytes += file_bytes - info.file_bytes
        self.space.index_bytes += (file_bytes - data_end) - (info.file_bytes - info.data_end)
        info.data_end, info.file_bytes, info.dead_bytes = data_end, file_bytes, 0
        info.topics = numbers
        info.version += 1

    def switch_topic(
        self,
        number: int,
        first_segment: int,
        first: int,
        offsets: array[int],
        stored: StoredRun | None,
    ) -> None:
        """Lead a topic to the rewritten file, where its entries from ``first`` on have these
        offsets, and which has their index. A topic that was deleted meanwhile stays so."""
        switch, topic = self.switch, self.topics.get(number)
        if switch is None or topic is None:
            return
        switch.pending.discard(number)
        target = self.segments[switch.segment]
        if stored is not None:
            stored = stored._replace(file=file_id(target.segment, target.version))
        moved = topic.move_runs(first_segment, target.segment, first, offsets, stored, self.blocks)
        if moved and moved[-1].segment != target.segment:
            target.live_runs += 1
        for segment, live_bytes in moved:
            if segment == target.segment:
                continue
            target.live_bytes += live_bytes
            info = self.segments[segment]
            info.live_bytes -= live_bytes
            self._lose_run(info)
        if not target.is_dead:
            self.dead.pop(target.segment, None)

    def end_switch(self) -> None:
        """Note that all topics are led to the rewritten file."""
        self.switch = None

    # Space ----------------------------------------------------------------------------------

    def seal(self, info: SegmentInfo, file_bytes: int) -> None:
        """Note that a segment has its footer, and that its file has this length."""
        info.sealed = True
        info.file_bytes = file_bytes
        self.unsealed.pop(info.segment, None)
        self.space.sealed_bytes += file_bytes
        self.space.index_bytes += file_bytes - info.data_end
        if info.is_dead:
            self.dead[info.segment] = None

    def note_punched(self, info: SegmentInfo, punched_bytes: int) -> None:
        """Note how many bytes of a sealed segment are holes now."""
        self.space.punched_bytes += punched_bytes - info.punched_bytes
        info.punched_bytes = punched_bytes

    def forget_segment(self, segment: int) -> None:
        """Forget a sealed segment whose file is deleted."""
        self.dead.pop(segment, None)
        self.stored.pop(segment, None)
        info = self.segments.pop(segment, None)
        if info is not None:
            self.space.sealed_bytes -= info.file_bytes
            self.space.index_bytes -= info.file_bytes - info.data_end
            self.space.punched_bytes -= info.punched_bytes

    def born(self, info: SegmentInfo, live_bytes: int) -> None:
        """Count entries that became durable in a segment."""
        info.live_bytes += live_bytes
        self.space.live_bytes += live_bytes

    def release(self, released: Iterable[Released]) -> None:
        """Count entries that nothing needs any more."""
        for segment, live_bytes, is_whole in released:
            info = self.segments.get(segment)
            if info is None:
                continue
            info.live_bytes -= live_bytes
            self.space.live_bytes -= live_bytes
            if is_whole:
                self._lose_run(info)

    def release_runs(self, segments: Iterable[int]) -> None:
        """Count one live run less in each of these segments: its entries were staged only."""
        for segment in segments:
            info = self.segments.get(segment)
            if info is not None:
                self._lose_run(info)

    def release_topic(self, topic: TopicLog) -> None:
        """Count all entries of a deleted topic as dead. Its staged entries never live."""
        runs = topic.live_runs()
        self.release(Released(run.segment, run.live_bytes, True) for run in runs)
        topic.stored_total.bytes -= sum(run.live_bytes for run in runs)
        topic.stored_total.runs -= len(runs)
        if topic.staged_end > topic.end:
            topic.stored_total.bytes -= topic.live_bytes(topic.end, topic.staged_end)
            self.dropped[topic] = None
        topic.stored_total = StoredTotal()  # what a commit still stores or trims counts for nobody

    def count_live(self, topic: TopicLog) -> None:
        """Count what a topic retains, once at the start."""
        for segment, live_bytes in topic.live_runs():
            info = self.segments[segment]
            info.live_runs += 1
            info.topics[topic.number] = None
            topic.stored_total.bytes += live_bytes
            self.born(info, live_bytes)
            self.worn[segment] = None
            self.dead.pop(segment, None)

    def raise_counts(self, info: SegmentInfo, live_bytes: int, live_runs: int) -> None:
        """Raise the counts of a sealed segment to these, which a check found in the index.

        It never lowers one: the counts protect the segment from deletion, and a check may be wrong,
        too.
        """
        self.born(info, max(live_bytes - info.live_bytes, 0))
        info.live_runs = max(live_runs, info.live_runs)
        self.dead.pop(info.segment, None)
        if info.is_dead:
            self.dead[info.segment] = None

    def _lose_run(self, info: SegmentInfo) -> None:
        info.live_runs -= 1
        self.worn[info.segment] = None
        if info.is_dead:
            self.dead[info.segment] = None
