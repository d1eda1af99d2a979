"""Topics and subscriptions as the records of a log tell them, and what findings cost them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from headgate.base.ack_changes import AckChanges
from headgate.ledger.format.records import (
    ACCEPT,
    CURSOR_ID,
    KIND_ACCEPT,
    KIND_ACKS,
    KIND_CREATE,
    KIND_DELETE,
    KIND_RUN,
    KIND_TRIM,
    ORDINALS,
    RUN,
    TRIM,
    checkpoint_names,
)
from headgate.ledger.index.checkpoint import Checkpoint
from headgate.ledger.index.cursors import decode_cursor
from headgate.ledger.tools.checked_segment import CheckedSegment
from headgate.ledger.tools.coverage import Place, TopicCoverage, assign_losses
from headgate.ledger.tools.findings import Cost, CostKind, Finding, Mend, Report
from headgate.ledger.tools.footer_repair import RebuiltFooter
from headgate.ledger.tools.walk import Piece

_FOUND_BEFORE: Final = "; its loss was found before"


@dataclass(slots=True)
class _Cursor:
    name: str
    topic: int
    complete: Place
    """The last record that tells the whole state."""


@dataclass(slots=True)
class _Hole:
    place: Place
    finding: Finding
    hides_entries: bool


class LogContents:
    """What the checkpoint and the records read so far tell, and the places that hide more."""

    def __init__(
        self, report: Report, checkpoint: Checkpoint | None, topics: Collection[int] | None
    ) -> None:
        """``topics`` are the numbers of the topics that exist; None if they are unknown."""
        self._report = report
        self._known = None if topics is None else frozenset(topics)
        self._has_checkpoint = checkpoint is not None
        self.cursors_made = 0
        """Subscriptions that records of the replayed part create."""
        self._topics: dict[int, TopicCoverage] = {}
        self._alive: set[int] = set()
        self._cursors: dict[int, _Cursor] = {}
        self._old_damage: dict[int, Finding] = {}
        """Damage of topics that the checkpoint tells."""
        self._old_cursor_damage: dict[int, Finding] = {}
        self._hidden: list[tuple[Place, Finding]] = []
        """Places that may hide entries."""
        self._holes: list[_Hole] = []
        """Places in the replayed part that may hide records of any kind."""
        self._in_holes: set[int] = set()
        """Ids of findings about entries in segments with punched holes."""
        self._punched: set[int] = set()
        """Ids of findings about released entries in punched holes."""
        self._footers: list[tuple[str, list[Finding], RebuiltFooter | None]] = []
        """Damaged footers: the file, the findings, and the footer made anew."""
        self._sequence_doubts: list[tuple[int, int, Finding]] = []
        """Entries of segments before the checkpoint, by topic number and ordinal, before which a
        record is lost."""
        self._accepted: dict[int, Finding] = {}
        """Findings of such records whose loss was accepted, by their id."""
        if checkpoint is not None:
            self._load(checkpoint)
        self.next_cursor_id = max(self._cursors, default=0) + 1
        """One past the highest id of a subscription in the checkpoint."""

    def _load(self, checkpoint: Checkpoint) -> None:
        name = checkpoint_names(checkpoint.segment)[0]
        for number, saved in checkpoint.topics.items():
            topic = self.topic(number)
            self._alive.add(number)
            topic.first, topic.end = saved.first, saved.end
            topic.ledgers = {ledger: first for ledger, first, _ in saved.ledgers}
            topic.accepted = list(saved.lost)
            if saved.damage and self.exists(number):
                finding = self._report.add(name, 0, 0, f"found by an earlier start: {saved.damage}")
                finding.costs = [topic.lost(*row) for row in saved.lost if row[0] < row[1]]
                finding.costs = finding.costs or [self.may_be_lost(topic)]
                self._old_damage[number] = finding
        for cursor in checkpoint.cursors.values():
            if not self.exists(cursor.topic_number):
                continue
            self._cursors[cursor.cursor_id] = _Cursor(cursor.name, cursor.topic_number, (0, 0))
            if cursor.damage:
                finding = self._report.add(
                    name, 0, 0, f"found by an earlier start: {cursor.damage}"
                )
                finding.costs = [self._acknowledgements(cursor.cursor_id)]
                self._old_cursor_damage[cursor.cursor_id] = finding

    def topic(self, number: int) -> TopicCoverage:
        """What is known of a topic."""
        topic = self._topics.get(number)
        if topic is None:
            topic = self._topics[number] = TopicCoverage(number)
        return topic

    def exists(self, number: int) -> bool:
        """Whether a topic exists."""
        return number in self._known if self._known is not None else number in self._alive

    def note_alive(self, segment: CheckedSegment, number: int) -> None:
        """Note that a topic has a record in a segment."""
        if segment.role.is_replayed:
            self._alive.add(number)

    def drop(self, findings: set[int]) -> None:
        """Take findings out of the report, by their ids."""
        kept = [finding for finding in self._report.findings if id(finding) not in findings]
        self._report.findings = kept

    # What a check of the records notes ----------------------------------------------------------

    def accepted_losses(self) -> dict[int, list[tuple[int, int]]]:
        """The ranges of entries whose loss is known, by topic number."""
        return {number: topic.accepted for number, topic in self._topics.items()}

    def note_hidden(self, place: Place, finding: Finding) -> None:
        """Note a place that may hide entries."""
        self._hidden.append((place, finding))

    def note_hole(self, place: Place, finding: Finding, *, entries: bool) -> None:
        """Note a place of the replayed part that may hide records: entries, too, or only others."""
        self._holes.append(_Hole(place, finding, entries))
        if entries:
            self.note_hidden(place, finding)

    def note_in_holes(self, findings: Iterable[Finding]) -> None:
        """Note findings about entries in a segment with punched holes."""
        self._in_holes |= {id(finding) for finding in findings}

    def note_footer(
        self, name: str, findings: list[Finding], rebuilt: RebuiltFooter | None
    ) -> None:
        """Note the findings about a damaged footer, and that footer made anew."""
        self._footers.append((name, findings, rebuilt))

    def note_sequence_doubt(self, number: int, ordinal: int, finding: Finding) -> None:
        """Note that a record is lost before an entry of a segment before the checkpoint."""
        self._sequence_doubts.append((number, ordinal, finding))

    # Records ---------------------------------------------------------------------------------

    def control(self, segment: CheckedSegment, piece: Piece, place: Place) -> None:
        """Apply a sound record of any kind but BATCH and ENTRY."""
        payload = piece.payload
        if piece.kind == KIND_RUN:
            number, _, ordinal, _, _, _, ledger, first, _ = RUN.unpack(payload)
            topic = self.topic(number)
            self.note_alive(segment, number)
            segment.sequence[number] = ordinal
            topic.ledgers.setdefault(ledger, first)
            topic.run_segment = segment.role.segment
            topic.last = place
            topic.end = max(topic.end, ordinal)
            topic.begin = ordinal if topic.begin < 0 else topic.begin
        elif piece.kind == KIND_TRIM:
            number, _, first = TRIM.unpack(payload)
            self.topic(number).first = max(self.topic(number).first, first)
        elif segment.role.is_replayed:
            self._change(piece.kind, payload, place)

    def _change(self, kind: int, payload: bytes, place: Place) -> None:
        """Apply a record about cursors or damage from the replayed part."""
        if kind == KIND_CREATE:
            made = decode_cursor(payload)
            self.cursors_made += made.cursor_id not in self._cursors  # else it is restated
            self._cursors[made.cursor_id] = _Cursor(made.name, made.topic_number, place)
        elif kind == KIND_DELETE:
            (cursor_id,) = CURSOR_ID.unpack(payload)
            self._cursors.pop(cursor_id, None)
            self._settle(self._old_cursor_damage.pop(cursor_id, None))
        elif kind == KIND_ACKS:
            (cursor_id,) = CURSOR_ID.unpack_from(payload)
            cursor = self._cursors.get(cursor_id)
            if cursor is not None and AckChanges.from_bytes(payload[CURSOR_ID.size :]).reset:
                cursor.complete = place
                self._settle(self._old_cursor_damage.pop(cursor_id, None))
        elif kind == KIND_ACCEPT:
            number, count = ACCEPT.unpack_from(payload)
            topic = self.topic(number)
            rows = payload[ACCEPT.size :][: count * ORDINALS.size]
            topic.accepted += ORDINALS.iter_unpack(rows)
            topic.last = place
            self._accepted |= {id(f): f for n, _, f in self._sequence_doubts if n == number}
            self._sequence_doubts = [d for d in self._sequence_doubts if d[0] != number]
            self._settle(self._old_damage.pop(number, None))
            for cursor_id, cursor in self._cursors.items():
                if cursor.topic == number:
                    cursor.complete = place
                    self._settle(self._old_cursor_damage.pop(cursor_id, None))

    @staticmethod
    def _settle(finding: Finding | None) -> None:
        if finding is not None:
            finding.is_damage = False
            finding.what += " (accepted or repaired since)"

    # The end ---------------------------------------------------------------------------------

    def finish(self, segments: set[int]) -> None:
        """Assign all losses. ``segments`` are the files that exist. Call it once, at the end."""
        self._hidden.sort(key=lambda hole: hole[0])
        for topic in self._existing():
            if not self._has_checkpoint and topic.first == 0:
                topic.first = max(topic.begin, 0)
            assign_losses(topic, self._hidden, segments, self._report)
        self._assign_sequence_doubts()
        self._assign_doubts()
        found = self._alive | {cursor.topic for cursor in self._cursors.values()}
        self._report.topics = frozenset(found)
        for number, topic in self._topics.items():
            for ordinal, finding in topic.damaged.items():
                self._explain_entry(number, topic, ordinal, finding)
        self.drop(self._punched)
        self._note_accepted()
        for name, findings, rebuilt in self._footers:
            self._mend_footer(name, findings, rebuilt)

    def _mend_footer(
        self, name: str, findings: list[Finding], rebuilt: RebuiltFooter | None
    ) -> None:
        """Offer the footer made anew, if all that it leaves out is released."""
        if rebuilt is None or any(
            self.exists(run.topic) and run.stop > self.topic(run.topic).first
            for run in rebuilt.omitted
        ):
            return
        what = "write the footer anew from what is sound in the file"
        mend = Mend(name, what, rebuilt.content, rebuilt.data_end, to_end=True)
        for finding in findings:
            finding.mends = [mend]

    def _existing(self) -> Iterator[TopicCoverage]:
        numbers = self._alive if self._known is None else self._known
        return (self.topic(number) for number in sorted(numbers))

    def _assign_sequence_doubts(self) -> None:
        for number, ordinal, finding in self._sequence_doubts:
            topic = self.topic(number)
            is_accepted = any(low <= ordinal <= high for low, high in topic.accepted)
            if not self.exists(number) or ordinal <= topic.first:
                continue
            if is_accepted:
                self._accepted[id(finding)] = finding
            else:
                finding.costs.append(self.may_be_lost(topic, ordinal))

    def _note_accepted(self) -> None:
        """Call damage a note whose loss was accepted, if it costs nothing more."""
        for finding in self._accepted.values():
            if not finding.costs:
                finding.is_damage = False
                finding.what += _FOUND_BEFORE

    def _assign_doubts(self) -> None:
        """Add the topics and subscriptions that may have lost something unseen."""
        for hole in self._holes:
            place, costs = hole.place, hole.finding.costs
            named = {cost.topic for cost in costs if cost.kind is not CostKind.ACKNOWLEDGEMENTS}
            for topic in self._existing() if hole.hides_entries else ():
                if topic.last < place and topic.number not in named:
                    costs.append(self.may_be_lost(topic))
            for cursor_id, cursor in self._cursors.items():
                if cursor.complete < place and self.exists(cursor.topic):
                    costs.append(self._acknowledgements(cursor_id))

    def _explain_entry(
        self, number: int, topic: TopicCoverage, ordinal: int, finding: Finding
    ) -> None:
        if finding.costs:
            return
        is_dead = not self.exists(number) or ordinal < topic.first
        if is_dead and id(finding) in self._in_holes:
            self._punched.add(id(finding))
        elif not self.exists(number):
            finding.is_damage = False
            finding.what += "; its topic is deleted"
        elif ordinal < topic.first:
            finding.is_damage = False
            finding.what += "; the message was released before"
        elif any(low <= ordinal < high for low, high in topic.accepted):
            finding.is_damage = False
            finding.what += _FOUND_BEFORE
        else:
            finding.what += "; another copy of the message is sound"

    def may_be_lost(self, topic: TopicCoverage, ordinal: int | None = None) -> Cost:
        """The cost of messages from an ordinal on that may have been there; None: from the end."""
        first = topic.end if ordinal is None else ordinal
        return Cost(CostKind.MAY_BE_LOST, topic.number, first, 0, topic.message_id(first))

    def _acknowledgements(self, cursor_id: int) -> Cost:
        cursor = self._cursors[cursor_id]
        return Cost(CostKind.ACKNOWLEDGEMENTS, cursor.topic, subscription=cursor.name)
