"""Applies single records to the state during replay.

A record that does not fit what came before shows that something between is lost; it is noted with
:class:`headgate.ledger.recovery.loss_assessment.LossAssessment`, and the state goes on from what
the record says.
"""

from __future__ import annotations

from collections.abc import Collection

from headgate.base.ack_changes import AckChanges
from headgate.base.errors import CorruptionError
from headgate.ledger.format.records import (
    ACCEPT,
    CURSOR_ID,
    KIND_ACCEPT,
    KIND_ACKS,
    KIND_CREATE,
    KIND_DELETE,
    KIND_TRIM,
    ORDINALS,
    RUN,
    TRIM,
    segment_name,
)
from headgate.ledger.index.cursors import decode_cursor
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import TopicLog, TopicTotals
from headgate.ledger.recovery.loss_assessment import Loss, LossAssessment


class Redo:
    """Applies records to a :class:`LogState`, in the order of the log."""

    def __init__(self, state: LogState, known: Collection[int], assessment: LossAssessment) -> None:
        """``known`` are the numbers of the topics that exist: all others are garbage."""
        self._state = state
        self._known = known
        self._assessment = assessment
        self.segment = 0
        """The segment that the records are in."""
        self.without_checkpoint = False
        """All that is known comes from the records."""
        self.cursors_made = 0
        """CREATE records seen, of any topic."""
        self.trims: dict[int, int] = {}
        """The highest TRIM seen of each known topic."""

    def run(self, payload: bytes, at: int) -> None:
        """A RUN record: what the topic had come to, and its ledger."""
        number, lag, ordinal, messages, size, received, *ledger = RUN.unpack(payload)
        ledger_id, ledger_first, created = ledger
        state = self._state
        state.next_ledger_id = max(state.next_ledger_id, ledger_id + 1)
        state.orphans.see(number)
        if number not in self._known:
            return
        topic = state.topic(number)
        totals = TopicTotals(messages, size, received, lag)
        if ordinal > topic.staged_end:
            if self.without_checkpoint and topic.staged_end == 0:
                # What came before lay in segments that were deleted, so nobody needed it.
                topic.first = ordinal
                topic.restart_at(ordinal, totals)
            else:
                self._lose(topic, ordinal, totals, at)
        elif topic.base == topic.staged_end:
            topic.restart_at(ordinal, totals)
        if ordinal == topic.staged_end:
            self._assessment.is_complete(number)
        topic.open_run(self.segment)
        rows = topic.ledger_rows()
        if not rows or ledger_id > rows[-1][0]:
            topic.open_ledger(ledger_id, ledger_first, created)

    def misfit(self, number: int, ordinal: int, at: int) -> TopicLog | None:
        """An ENTRY that does not follow what its topic has. Returns the topic, ready for it; None
        when the topic does not exist."""
        if number not in self._known:
            return None
        topic = self._state.topic(number)
        if topic.segment != self.segment or ordinal > topic.staged_end:
            # A RUN record, which says the ledger, may have been with what is lost.
            what = f"what belongs before entry {ordinal} is lost"
            self._assessment.doubts.setdefault(number, f"before {self.place(at)}: {what}")
        if topic.segment != self.segment:
            if topic.base == topic.staged_end:
                topic.restart_at(ordinal, topic.totals(topic.staged_end))
            topic.open_run(self.segment)
        if ordinal > topic.staged_end:
            self._lose(topic, ordinal, None, at)
        elif ordinal < topic.staged_end:
            topic.end = max(ordinal, topic.base)
            topic.rewind()
            topic.open_run(self.segment)
        return topic

    def control(self, kind: int, payload: bytes, at: int) -> None:
        """A record of any kind but BATCH, RUN and ENTRY."""
        state = self._state
        if kind == KIND_ACKS:
            (cursor_id,) = CURSOR_ID.unpack_from(payload)
            cursor = state.cursors.get(cursor_id)
            if cursor is not None:
                changes = AckChanges.from_bytes(payload[CURSOR_ID.size :])
                cursor.ack_set.apply(changes)
                if changes.reset:
                    cursor.damage = ""
                    self._assessment.is_whole(cursor_id)
        elif kind == KIND_CREATE:
            made = decode_cursor(payload)
            self.cursors_made += 1
            state.next_cursor_id = max(state.next_cursor_id, made.cursor_id + 1)
            state.orphans.see(made.topic_number)
            if made.topic_number in self._known:
                state.put_cursor(made)
                self._assessment.is_whole(made.cursor_id)
        elif kind == KIND_DELETE:
            (cursor_id,) = CURSOR_ID.unpack(payload)
            state.drop_cursor(cursor_id)
            self._assessment.is_whole(cursor_id)
        elif kind == KIND_TRIM:
            number, _, first = TRIM.unpack(payload)
            state.orphans.see(number)
            if number in self._known:
                self.trims[number] = max(self.trims.get(number, 0), first)
        elif kind == KIND_ACCEPT:
            self._accept(payload)
        else:
            raise CorruptionError(f"{self.place(at)}: a record of unknown kind {kind}")

    def place(self, at: int, stop: int = 0) -> str:
        """Where something is, for people."""
        upto = f" to {stop}" if stop > at else ""
        return f"{segment_name(self.segment)} offset {at}{upto}"

    def lost_entry(self, number: int, ordinal: int, at: int) -> None:
        """An entry is indexed and damaged."""
        place = f"{self.place(at)} is damaged"
        self._assessment.losses.append(Loss(number, ordinal, ordinal + 1, place))

    def _lose(self, topic: TopicLog, ordinal: int, totals: TopicTotals | None, at: int) -> None:
        place = f"before {self.place(at)}"
        self._assessment.losses.append(Loss(topic.number, topic.staged_end, ordinal, place))
        topic.lose(ordinal, totals)

    def _accept(self, payload: bytes) -> None:
        number, count = ACCEPT.unpack_from(payload)
        if number not in self._known:
            return
        topic = self._state.topic(number)
        topic.damage = ""
        for first, stop in ORDINALS.iter_unpack(payload[ACCEPT.size :][: count * ORDINALS.size]):
            topic.note_lost(first, stop)
        for cursor in self._state.topic_cursors.get(number, {}).values():
            cursor.damage = ""
        self._assessment.accepted(number)
