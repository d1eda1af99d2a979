"""Checks the records of all segments, in order: batches, damaged pieces, ends of files."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from headgate.ledger.format.flush_position import FlushPosition
from headgate.ledger.format.records import (
    KIND_BATCH,
    KIND_ENTRY,
    SEGMENT_HEADER_BYTES,
    has_bytes,
    segment_name,
)
from headgate.ledger.index.checkpoint import Checkpoint
from headgate.ledger.space.hole_punching import PAGE_BYTES
from headgate.ledger.tools.checked_segment import CheckedSegment, SegmentRole
from headgate.ledger.tools.coverage import Place
from headgate.ledger.tools.findings import Cost, CostKind, Finding, Mend, Report
from headgate.ledger.tools.footer_check import check_footer
from headgate.ledger.tools.footer_repair import rebuild_footer
from headgate.ledger.tools.log_contents import LogContents
from headgate.ledger.tools.walk import UNREADABLE, Head, Piece, Walk

_HOLE: Final = bytes(PAGE_BYTES)
"""What a punched page reads as."""
_TORN: Final = (
    "an unfinished batch, written when the broker or the machine went down; the next start cuts "
    "it: it may have held messages without a receipt"
)


_NAMED_BY_INDEX: Final = "; what is lost is named at the damaged index of this file"
_NOT_READ: Final = "; no start reads it any more"
_NO_FOOTER: Final = (
    "no footer behind the records: the file was cut short or partly overwritten, or the machine "
    "went down before the footer was written; a start reads the records instead"
)


class LogCheck:
    """Checks the segments of a log, one after the other."""

    def __init__(
        self,
        report: Report,
        checkpoint: Checkpoint | None,
        topics: Collection[int] | None,
        recorded: FlushPosition | None,
        *,
        may_lack_segments: bool = False,
    ) -> None:
        """``topics`` are the numbers of the topics that exist; None if they are unknown.
        ``may_lack_segments``: a start does not refuse a missing segment, which may have been
        deleted because nothing needed it."""
        self._report = report
        self._recorded = recorded
        self._may_lack_segments = may_lack_segments
        self.is_rebuilt = checkpoint is None and may_lack_segments
        """A start rebuilds the state from the segments alone."""
        self.whole_batch = 0 if checkpoint is None else checkpoint.last_batch
        """The last batch that a start reads to its end."""
        self.replay_from = 0 if checkpoint is None else checkpoint.segment
        """The first segment whose records a start reads."""
        self.empty: set[int] = set()
        """The segment in which the log ended, if its file is empty up to there."""
        self._contents = LogContents(report, checkpoint, topics)
        self._pending: Finding | None = None
        """A hole after which no batch has ended yet."""
        self._batch: Head | None = None
        self._made_before = 0
        """Subscriptions created before the batch."""
        self._last_batch = -1 if checkpoint is None else checkpoint.last_batch
        self._segment_before = self.replay_from - 1
        """The last segment that was checked, if it is replayed."""
        self._tail_hole = False
        self._last_hole: Finding | None = None
        """The last hole of the segment, which may hide records that entries after it need."""
        self._doubt: tuple[int, Finding] | None = None
        """The end of the last hole within a batch."""
        self._next_cursor_id = self._contents.next_cursor_id

    def note_hole(
        self, segment: int, offset: int, finding: Finding, *, entries: bool = True
    ) -> None:
        """Note a place of the replayed part where records of any kind may be lost."""
        self._contents.note_hole((segment, offset), finding, entries=entries)
        self._last_hole = finding
        self._pending = self._pending or finding

    # One segment -----------------------------------------------------------------------------

    def segment(self, data: bytes, role: SegmentRole, name: str) -> None:
        """Check a whole segment file, which may have the name of another segment."""
        lost = self._contents.accepted_losses()
        footer = check_footer(data, role.segment, lost, is_replayed=role.is_replayed)
        segment = CheckedSegment(role, footer, data, name)
        segment.lost = frozenset(entry for block in footer.damage for entry in block.lost)
        self._last_hole = None
        stop = len(data) if footer.data_end is None else footer.data_end
        self._note_empty(data, role.segment)
        for block in footer.damage:
            what = f"{block.what}; the records are read instead"
            finding = self._report.add(segment.name, block.offset, block.size_bytes, what)
            segment.footer_findings.append(finding)
            for number, ordinal in block.lost:
                self._contents.topic(number).note_unindexed(ordinal, finding)
        walk = Walk(data, role.segment, stop, footer.index)
        if not data.strip(b"\0"):
            what = "the file has no bytes but zeros: a crash left it, or it was emptied"
            self._report.add(segment.name, 0, len(data), what, is_damage=False)
        elif not walk.is_header_sound:
            what = "the header is damaged"
            if walk.is_header_corrected:
                what += "; a start corrects it"
            finding = self._report.add(segment.name, 0, SEGMENT_HEADER_BYTES, what)
            if walk.corrected_header:
                finding.mends.append(
                    Mend(segment.name, "write the header as it was", walk.corrected_header, 0)
                )
        for piece in walk.pieces():
            self._piece(segment, piece)
            segment.reached = max(segment.reached, piece.end)
        self._end_batch()
        self._check_end(segment)
        self._segment_before = max(role.segment, self.replay_from - 1)
        if segment.footer_findings and (walk.is_header_sound or walk.is_header_corrected):
            rebuilt = rebuild_footer(data, role.segment, footer, segment.topics)
            self._contents.note_footer(segment.name, segment.footer_findings, rebuilt)
        if segment.has_holes:
            self._contents.note_in_holes(segment.damaged_entries)
            self._contents.drop({id(finding) for finding in segment.gaps})

    def _note_empty(self, data: bytes, segment: int) -> None:
        """Note whether a start takes the file in which the log ended for empty."""
        recorded = self._recorded
        if recorded is not None and recorded.segment == segment:
            stop = min(len(data), SEGMENT_HEADER_BYTES + recorded.offset)
            if not has_bytes(data, SEGMENT_HEADER_BYTES, stop):
                self.empty.add(segment)

    def _piece(self, segment: CheckedSegment, piece: Piece) -> None:
        if piece.kind == KIND_BATCH:
            self._start_batch(segment, piece)
        if not piece.is_sound and not self._damaged(segment, piece):
            return
        place = (segment.role.segment, piece.offset)
        if piece.kind == KIND_ENTRY:
            self._entry(segment, piece, place)
        elif piece.payload:
            self._doubt = None
            self._contents.control(segment, piece, place)

    def _start_batch(self, segment: CheckedSegment, piece: Piece) -> None:
        head = piece.head
        if head is None:
            return
        self._end_batch()
        self._report.batches += 1
        role = segment.role
        if role.is_replayed:
            self._batch, self._made_before = head, self._contents.cursors_made
            if not segment.has_batch:
                self._check_chain(role.segment, head)
            self._last_batch = self.whole_batch = head.number
            if head.is_rewritten:
                what = "the segment is rewritten, so changes of subscriptions before it are unknown"
                finding = self._report.add(segment.name, piece.offset, 0, what)
                self.note_hole(role.segment, piece.offset, finding, entries=False)
        segment.has_batch = True

    def _check_chain(self, segment: int, head: Head) -> None:
        """Report batches that are missing before the first one of a segment."""
        missing = range(self._segment_before + 1, segment)
        if self._last_batch >= 0 and head.previous > self._last_batch and not self._tail_hole:
            where = segment_name(missing[0] if missing else self._segment_before)
            what = f"batches {self._last_batch + 1} to {head.previous} are missing"
            finding = self._report.add(where, 0, 0, f"{what}: the file is gone or was cut short")
            self.note_hole(segment, 0, finding)
            if missing and self._may_lack_segments:
                finding.what += ", or was deleted before, when nothing needed it any more"
                missing = range(0)
            finding.refuses_start = bool(missing)
            finding.mends = [
                Mend(segment_name(s), "make an empty file in the place of the missing one", b"")
                for s in missing
            ]
        self._tail_hole = False

    def _end_batch(self) -> None:
        """A batch is over: its head tells how many cursors were created up to here."""
        head, self._batch = self._batch, None
        self._doubt = None
        if head is None or head.is_rewritten:
            return
        made = self._contents.cursors_made - self._made_before
        if self._pending and head.next_cursor_id > self._next_cursor_id + made:
            self._pending.costs.append(Cost(CostKind.SUBSCRIPTION))
        self._pending = None
        self._next_cursor_id = max(self._next_cursor_id, head.next_cursor_id)

    def _check_end(self, segment: CheckedSegment) -> None:
        """Report a file that was cut short before the position up to which it was durable."""
        recorded, role = self._recorded, segment.role
        if recorded is None or recorded.segment != role.segment or segment.footer.is_found:
            return
        if segment.reached < recorded.offset and not self._tail_hole and role.is_replayed:
            size = recorded.offset - segment.reached
            what = "records that were stored are missing: the file was cut short"
            finding = self._report.add(segment.name, segment.reached, size, what)
            self.note_hole(role.segment, segment.reached, finding)
            self._tail_hole = True

    # Damaged pieces --------------------------------------------------------------------------

    def _was_durable(self, segment: CheckedSegment, piece: Piece) -> bool:
        role, recorded = segment.role, self._recorded
        if segment.footer.is_usable or piece.is_followed:
            return True
        if not (role.is_replayed or piece.is_outside):
            return True
        in_segment = recorded is not None and recorded.segment == role.segment
        durable_to = recorded.offset if recorded is not None and in_segment else 0
        if piece.is_outside:
            return role.follows > max(self._last_batch, 0) or piece.offset < durable_to
        return role.has_later or piece.batch_end <= durable_to

    def _damaged(self, segment: CheckedSegment, piece: Piece) -> bool:
        """Report a damaged piece. Returns whether a start reads its record all the same."""
        size = piece.end - piece.offset
        if piece.is_outside and segment.footer.is_found and segment.footer.data_end is None:
            return False  # the damaged footer, which is reported already
        if not self._was_durable(segment, piece):
            if has_bytes(segment.data, piece.offset, piece.end):
                what = _TORN if segment.role.is_replayed else _NO_FOOTER
                self._report.add(segment.name, piece.offset, size, what, is_damage=False)
            if self._batch is not None and not piece.is_outside:
                self.whole_batch = self._batch.previous
            return False
        finding = self._report.add(segment.name, piece.offset, size, piece.what)
        if piece.corrected:
            what = "write the record as it was"
            finding.mends.append(Mend(segment.name, what, piece.corrected, piece.offset))
        if not (segment.has_holes or segment.role.is_replayed):
            segment.has_holes = _meets_hole(segment.data, piece)
        if piece.is_corrected and piece.kind != KIND_ENTRY:
            if not segment.reads_records and _meets_hole(segment.data, piece):
                segment.gaps.append(finding)  # a hole took one bit of it, and zeros
            finding.what += "; a start corrects it"
            return piece.kind != KIND_BATCH
        if piece.kind == KIND_ENTRY and self._damaged_entry(segment, piece, finding):
            segment.damaged_entries.append(finding)
        elif segment.reads_records:
            self._hole(segment, piece, finding)
        else:
            if piece.kind == UNREADABLE or _meets_hole(segment.data, piece):
                segment.gaps.append(finding)
            finding.what += _NAMED_BY_INDEX if segment.lost else _NOT_READ
        return False

    def _damaged_entry(self, segment: CheckedSegment, piece: Piece, finding: Finding) -> bool:
        """Note a damaged entry. False if it is not certain which one it is."""
        if piece.entry is None:
            return False
        number, ordinal = piece.entry
        topic = self._contents.topic(number)
        is_certain = piece.is_indexed or piece.is_corrected
        continues = topic.continues(ordinal, segment.role.segment)
        if not segment.role.is_replayed:
            continues = segment.sequence.get(number) == ordinal
        if not (is_certain or continues):
            return False
        topic.damaged[ordinal] = finding
        topic.end = max(topic.end, ordinal + 1)
        topic.last = (segment.role.segment, piece.offset)
        self._contents.note_alive(segment, number)
        segment.sequence[number] = ordinal + 1
        doubt, self._doubt = self._doubt, None
        if doubt is not None and doubt[0] == piece.offset and self._contents.exists(number):
            doubt[1].costs.append(self._contents.may_be_lost(topic, ordinal))
        return True

    def _hole(self, segment: CheckedSegment, piece: Piece, finding: Finding) -> None:
        """Note a range that hides records which a start needs."""
        if piece.is_outside:
            self._end_batch()
            self._tail_hole |= not piece.is_followed
        elif piece.batch_end > len(segment.data):
            self._tail_hole = True
        place = (segment.role.segment, piece.offset)
        self._last_hole = finding
        if not segment.role.is_replayed:
            self._contents.note_hidden(place, finding)
            return
        self.note_hole(*place, finding, entries=not segment.footer.is_usable)
        self._doubt = None if piece.is_outside else (piece.end, finding)

    # Records ---------------------------------------------------------------------------------

    def _entry(self, segment: CheckedSegment, piece: Piece, place: Place) -> None:
        if piece.entry is None or not piece.is_sound:
            return
        number, ordinal = piece.entry
        segment.topics.add(number)
        self._report.entries += 1
        topic = self._contents.topic(number)
        self._contents.note_alive(segment, number)
        if not segment.role.is_replayed:
            self._note_sequence(segment, number, ordinal)
            if piece.entry not in segment.lost:  # else reads look for it elsewhere
                topic.found(ordinal, place, piece.end)
            return
        lacks_run = topic.run_segment != segment.role.segment or ordinal > topic.end
        topic.found(ordinal, place, piece.end)
        doubt, self._doubt = self._doubt, None
        is_doubted = doubt is not None and doubt[0] == piece.offset
        if segment.reads_records and (lacks_run or piece.is_in_gap):
            topic.run_segment = segment.role.segment
            hole = self._last_hole
            is_doubted, doubt = hole is not None, None if hole is None else (0, hole)
        if doubt is not None and is_doubted and self._contents.exists(number):
            doubt[1].costs.append(self._contents.may_be_lost(topic, ordinal))

    def _note_sequence(self, segment: CheckedSegment, number: int, ordinal: int) -> None:
        """Note whether an entry continues its topic in a segment before the checkpoint. A start
        that must read its records takes them alone, as their index."""
        expected, hole = segment.sequence.get(number), self._last_hole
        segment.sequence[number] = ordinal + 1
        if segment.reads_records and hole is not None and (expected is None or ordinal > expected):
            self._contents.note_sequence_doubt(number, ordinal, hole)

    # The end ---------------------------------------------------------------------------------

    def finish(self, segments: set[int]) -> None:
        """Assign all losses. ``segments`` are the files that exist. Call it once, at the end."""
        if self._pending is not None and self._batch is None:
            self._pending.costs.append(Cost(CostKind.SUBSCRIPTION))
        self._contents.finish(segments)


def _meets_hole(data: bytes, piece: Piece) -> bool:
    """Whether a part of a piece is in a page that may be punched: pieces may be shorter than it."""
    first = piece.offset - piece.offset % PAGE_BYTES
    pages = range(first, piece.end, PAGE_BYTES)
    return any(data[page : page + PAGE_BYTES] == _HOLE for page in pages)
