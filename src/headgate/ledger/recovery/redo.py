"""Applies single records to the state during replay.

If a record does not continue its topic, records between are lost. The loss goes to
:class:`headgate.ledger.recovery.loss_assessment.LossAssessment`, and the topic continues with the
ordinal and totals in the record.
"""

from __future__ import annotations

import struct
from collections.abc import Collection

from headgate.base.ack_changes import AckChanges
from headgate.base.errors import CorruptionError
from headgate.base.sequence_table import SequenceTable, decode_rows
from headgate.ledger.format.records import (
    ACCEPT,
    CURSOR_ID,
    KIND_ACCEPT,
    KIND_ACKS,
    KIND_CREATE,
    KIND_DELETE,
    KIND_PROPERTIES,
    KIND_SEQUENCES,
    KIND_TRIM,
    ORDINALS,
    RUN,
    SEQUENCES,
    TRIM,
    segment_name,
)
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.cursors import decode_change_of_properties, decode_cursor
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.recovery.loss_assessment import Doubt, Loss, LossAssessment


class Redo:
    """Applies records to a :class:`LogState`, in the order of the log."""

    def __init__(self, state: LogState, known: Collection[int], assessment: LossAssessment) -> None:
        """``known`` are the numbers of the topics that exist; records of others are ignored."""
        self._state = state
        self._known = known
        self._assessment = assessment
        self.segment = 0
        """The segment that the records are in."""
        self.without_checkpoint = False
        """The state is rebuilt from records alone."""
        self.cursors_made = 0
        """CREATE records seen, of any topic."""
        self.trims: dict[int, int] = {}
        """The highest TRIM seen of each known topic."""

    def run(self, payload: bytes, at: int) -> None:
        """Apply a RUN record: the topic's totals before its next entry, and its ledger.

        Raises :class:`CorruptionError` as :meth:`control`.
        """
        try:
            self._run(payload, at)
        except struct.error as error:
            raise self._no_content(at, error) from error

    def _run(self, payload: bytes, at: int) -> None:
        number, lag, ordinal, messages, size, received, *ledger = RUN.unpack(payload)
        ledger_id, ledger_first, created = ledger
        state = self._state
        state.next_ledger_id = max(state.next_ledger_id, ledger_id + 1)
        state.orphans.note_number(number)
        if number not in self._known:
            return
        topic = state.enter_topic(number)
        totals = TopicTotals(messages, size, received, lag)
        if ordinal > topic.staged_end:
            if self.without_checkpoint and topic.staged_end == 0:
                # Earlier entries lay in segments that were deleted: no subscription needed them.
                topic.first = ordinal
                topic.restart_at(ordinal, totals)
            else:
                self._lose(topic, ordinal, totals, at)
        elif topic.base == topic.staged_end:
            topic.restart_at(ordinal, totals)
        if ordinal == topic.staged_end:
            self._assessment.topic_is_complete(number)
        topic.drop_empty_run()
        topic.open_run(self.segment)
        rows = topic.ledger_rows()
        if not rows or ledger_id > rows[-1][0]:
            topic.open_ledger(ledger_id, ledger_first, created)

    def entry_out_of_sequence(self, number: int, ordinal: int, at: int) -> TopicLog | None:
        """Prepare a topic for an ENTRY that does not continue it. Returns the topic; None if it
        does not exist."""
        if number not in self._known:
            return None
        topic = self._state.enter_topic(number)
        if topic.segment != self.segment or ordinal > topic.staged_end:
            # The lost records may include a RUN, which names the ledger.
            what = f"before {self.place(at)}: what belongs before entry {ordinal} is lost"
            self._assessment.note_doubt(number, Doubt(what, ordinal))
        if topic.segment != self.segment:
            if topic.base == topic.staged_end:
                topic.restart_at(ordinal, topic.totals(topic.staged_end))
            topic.drop_empty_run()
            topic.open_run(self.segment)
        if ordinal > topic.staged_end:
            self._lose(topic, ordinal, None, at)
        elif ordinal < topic.staged_end:
            topic.end = max(ordinal, topic.base)
            topic.rewind()
            topic.open_run(self.segment)
        return topic

    def control(self, kind: int, payload: bytes, at: int) -> None:
        """Apply a record of any kind but BATCH, RUN and ENTRY.

        Raises :class:`CorruptionError` if it has not the content of its kind: its checksum is
        right, so this is no damage, and something else than Headgate has made it.
        """
        try:
            self._control(kind, payload, at)
        except (struct.error, UnicodeDecodeError) as error:
            raise self._no_content(at, error) from error

    def _no_content(self, at: int, error: Exception) -> CorruptionError:
        return CorruptionError(
            f"{self.place(at)}: a record has a sound checksum, and not the content of its kind: "
            f"something else than Headgate has made it ({error})"
        )

    def _control(self, kind: int, payload: bytes, at: int) -> None:
        state = self._state
        if kind == KIND_ACKS:
            (cursor_id,) = CURSOR_ID.unpack_from(payload)
            cursor = state.cursors.get(cursor_id)
            if cursor is not None:
                changes = AckChanges.from_bytes(payload[CURSOR_ID.size :])
                cursor.ack_set.apply(changes)
                if changes.reset:
                    cursor.damage = ""
                    self._assessment.cursor_is_complete(cursor_id)
        elif kind == KIND_CREATE:
            made = decode_cursor(payload)
            self.cursors_made += made.cursor_id >= state.next_cursor_id  # else it is restated
            state.next_cursor_id = max(state.next_cursor_id, made.cursor_id + 1)
            state.orphans.note_number(made.topic_number)
            if made.topic_number in self._known:
                state.put_cursor(made)
                self._assessment.cursor_is_complete(made.cursor_id)
        elif kind == KIND_PROPERTIES:
            cursor_id, properties = decode_change_of_properties(payload)
            cursor = state.cursors.get(cursor_id)
            if cursor is not None:
                cursor.properties = properties
        elif kind == KIND_DELETE:
            (cursor_id,) = CURSOR_ID.unpack(payload)
            state.drop_cursor(cursor_id)
            self._assessment.cursor_is_complete(cursor_id)
        elif kind == KIND_TRIM:
            number, _, first = TRIM.unpack(payload)
            state.orphans.note_number(number)
            if number in self._known:
                self.trims[number] = max(self.trims.get(number, 0), first)
        elif kind == KIND_ACCEPT:
            self._accept(payload)
        elif kind == KIND_SEQUENCES:
            number, is_on = SEQUENCES.unpack_from(payload)
            state.orphans.note_number(number)
            if number in self._known:
                rows = decode_rows(payload[SEQUENCES.size :])
                state.enter_topic(number).sequences = SequenceTable(rows) if is_on else None
        else:
            raise CorruptionError(f"{self.place(at)}: a record of unknown kind {kind}")

    def place(self, at: int, stop: int = 0) -> str:
        """A segment and an offset, or a range of offsets, for messages."""
        upto = f" to {stop}" if stop > at else ""
        return f"{segment_name(self.segment)} offset {at}{upto}"

    def note_damaged_entry(self, number: int, ordinal: int, at: int) -> None:
        """Note an indexed entry whose stored bytes are damaged."""
        place = f"{self.place(at)} is damaged"
        loss = Loss(number, ordinal, ordinal + 1, place, segment=self.segment)
        self._assessment.losses.append(loss)

    def _lose(self, topic: TopicLog, ordinal: int, totals: TopicTotals | None, at: int) -> None:
        place = f"before {self.place(at)}"
        self._assessment.losses.append(Loss(topic.number, topic.staged_end, ordinal, place))
        topic.append_lost(ordinal, totals)

    def _accept(self, payload: bytes) -> None:
        number, count = ACCEPT.unpack_from(payload)
        if number not in self._known:
            return
        topic = self._state.enter_topic(number)
        topic.damage = ""
        rows = list(ORDINALS.iter_unpack(payload[ACCEPT.size :][: count * ORDINALS.size]))
        for first, stop in rows:
            topic.note_lost(first, stop)
        for cursor in self._state.topic_cursors.get(number, {}).values():
            cursor.damage = ""
        self._assessment.loss_accepted(number, rows)
