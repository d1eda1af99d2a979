"""Control records of cursors, trims and deduplication, staged or deferred until there is room.

If a control record finds no room, or its batch fails, the log defers it and builds it again later
from the state of that time. So deferring loses and reorders nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.base.ack_changes import RUN_BYTES
from headgate.base.ack_set import AckSet
from headgate.base.errors import invariant
from headgate.base.partial_acks import PARTIAL_BYTES_MIN
from headgate.base.sequence_table import SequenceTable, encode_rows
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
    PREFIX_BYTES,
    SEQUENCES,
    TRIM,
)
from headgate.ledger.index.cursors import (
    CursorState,
    encode_change_of_properties,
    encode_cursor,
)
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import NumberedTopic, TopicLog
from headgate.ledger.write.deferred_controls import RESTATED, Control, DeferredControls
from headgate.ledger.write.health import LogHealth
from headgate.ledger.write.staging import Staging


class ControlRecords:
    """Stages the records of cursors, trims, accepted damage and deduplication."""

    def __init__(self, state: LogState, staging: Staging, health: LogHealth) -> None:
        self._state = state
        self._staging = staging
        self._health = health
        self._deferred = DeferredControls()

    @property
    def has_deferred(self) -> bool:
        """Whether control records are deferred until there is room."""
        return bool(self._deferred)

    def deferred_creations(self) -> frozenset[int]:
        """The ids of the cursors whose creation waits for room."""
        return self._deferred.creations()

    def create_cursor(
        self, topic_number: int, name: str, ack_set: AckSet, properties: Mapping[str, str]
    ) -> int:
        """Stage a cursor's creation; returns its id. The log keeps the live ``ack_set``.

        If its batch fails, the record is staged again: keep the cursor, or call
        :meth:`delete_cursor`. Raises :class:`LogFailedError` and :class:`InputError`.
        """
        if self._health.failure is not None:
            raise self._health.failure
        cursor_id = self._state.next_cursor_id
        cursor = CursorState(cursor_id, topic_number, name, ack_set, dict(properties))
        payload = encode_cursor(cursor)
        self._state.next_cursor_id += 1
        self._state.put_cursor(cursor)
        ack_set.take_changes()
        self._stage(Control(KIND_CREATE, cursor_id), payload)
        return cursor_id

    def set_properties(self, cursor_id: int, properties: Mapping[str, str]) -> None:
        """Stage other properties of a cursor, and nothing else of it: its acknowledgements may take
        megabytes. An unknown cursor is ignored.

        If its batch fails, its whole state is staged. Raises :class:`LogFailedError` and
        :class:`InputError`.
        """
        if self._health.failure is not None:
            raise self._health.failure
        cursor = self._state.cursors.get(cursor_id)
        if cursor is not None:
            payload = encode_change_of_properties(cursor_id, properties)
            cursor.properties = dict(properties)
            self._stage(Control(KIND_PROPERTIES, cursor_id), payload)

    def delete_cursor(self, cursor_id: int) -> None:
        """Stage a cursor's deletion. An unknown cursor is ignored."""
        if self._state.drop_cursor(cursor_id) is not None:
            self._stage(Control(KIND_DELETE, cursor_id), CURSOR_ID.pack(cursor_id))

    def stage_acks(self, cursor_id: int) -> None:
        """Stage the changes in a cursor's set since the last call, if there are any.

        An unknown cursor (its topic was dropped) is ignored.
        """
        cursor = self._state.cursors.get(cursor_id)
        if cursor is None or self._health.failure is not None:
            return
        changes = cursor.ack_set.take_changes()
        if changes is not None:
            if changes.reset:
                cursor.damage = ""  # the record replaces the whole state
            payload = CURSOR_ID.pack(cursor_id) + changes.to_bytes()
            self._stage(Control(KIND_ACKS, cursor_id), payload)

    def stage_trim(self, handle: NumberedTopic, first_ordinal: int) -> None:
        """Stage a trim of the entries below ``first_ordinal``, which is at most ``end``."""
        topic = self._state.topics[handle.number]
        invariant(first_ordinal <= topic.end, "a trim beyond what is durable")
        if first_ordinal > topic.first and self._health.failure is None:
            topic.trim_end = max(topic.trim_end, first_ordinal)
            payload = TRIM.pack(topic.number, 0, first_ordinal)
            self._stage(Control(KIND_TRIM, topic.number, first_ordinal), payload)

    def accept_damage(self, number: int, lost: Iterable[int]) -> None:
        """Stage that an operator accepts the losses of a topic and its cursors, which the broker
        then serves again. ``lost`` are entries found damaged since the start.

        If the batch fails, the next start finds the damage again. Raises :class:`LogFullError`
        and :class:`LogFailedError`.
        """
        self._health.check_open()  # before anything changes
        topic = self._state.topic(number)
        for ordinal in lost:
            topic.note_lost(ordinal, ordinal + 1)
        rows = [row for row in topic.lost if row[1] > topic.first]
        payload = ACCEPT.pack(number, len(rows)) + b"".join(ORDINALS.pack(*row) for row in rows)
        self._staging.make_room(PREFIX_BYTES + len(payload))
        self._staging.append_record(KIND_ACCEPT, payload)
        topic.damage = ""
        for cursor in self._state.cursors_of(number):
            cursor.damage = ""

    def track_sequences(self, handle: NumberedTopic, *, is_on: bool) -> None:
        """Begin or end to keep the sequence ids of a topic's producers (``TopicLog.sequences``),
        from the next entry on. What the log knew of them before is forgotten."""
        topic = self._state.topics[handle.number]
        if is_on is (topic.sequences is not None):
            return
        topic.sequences = SequenceTable() if is_on else None
        self._stage(Control(KIND_SEQUENCES, topic.number), _sequences_payload(topic))

    def forget_topic(self, number: int, cursors: Iterable[CursorState]) -> None:
        """Drop the deferred records of a deleted topic and its cursors."""
        self._deferred.forget_topic(number)
        for cursor in cursors:
            self._deferred.forget_cursor(cursor.cursor_id)

    def defer(self, controls: Iterable[Control]) -> None:
        """Defer the control records of a batch that failed."""
        for control in controls:
            self._deferred.add(control)

    def stage_deferred(self) -> None:
        """Stage deferred records as far as prepared segments have room. On a full disk they are in
        no batch with trims: one that the disk refuses must not keep these from freeing room."""
        while self._deferred:
            control = self._deferred.take()
            is_trim = control.kind == KIND_TRIM
            if not is_trim and self._health.is_full and self._staging.has_trims:
                self._deferred.add(control)
                return
            if not self._staging.has_room(self._bytes_min(control), is_trim=is_trim):
                self._deferred.add(control)  # without making a record of megabytes in vain
                return
            payload = self._payload(control)
            if payload is None:
                continue
            if not self._staging.has_room(len(payload), is_trim=is_trim):
                self._deferred.add(control)
                return
            self._staging.append_control(control, payload)

    def _stage(self, control: Control, payload: bytes) -> None:
        health = self._health
        if health.failure is not None:
            return
        is_trim = control.kind == KIND_TRIM
        has_room = not health.is_full or self._staging.has_room(len(payload), is_trim=is_trim)
        # A trim need not wait for others: it states how things are, and a start may find cursors
        # behind it.
        if not has_room or (self._deferred and not is_trim):
            self._deferred.add(control)
        else:
            self._staging.append_control(control, payload)

    def _bytes_min(self, control: Control) -> int:
        """At least so many bytes has a record, which is known before it is made."""
        kind, key, _ = control
        cursor = self._state.cursors.get(key)
        if cursor is None or kind not in (KIND_CREATE, KIND_ACKS, RESTATED):
            return 0
        acks = cursor.ack_set
        if kind == KIND_ACKS:
            partials_count = 0 if acks.partials is None else len(acks.partials)
            return RUN_BYTES * acks.ranges_count + PARTIAL_BYTES_MIN * partials_count
        return PARTIAL_BYTES_MIN * acks.stored_parts_count  # a block takes more

    def _payload(self, control: Control) -> bytes | None:
        """The record with the present state of its subject; None if that is deleted."""
        kind, key, first_ordinal = control
        if kind == KIND_DELETE:
            return CURSOR_ID.pack(key)
        if kind == KIND_TRIM:
            return TRIM.pack(key, 0, first_ordinal) if key in self._state.topics else None
        if kind == KIND_SEQUENCES:
            topic = self._state.topics.get(key)
            return None if topic is None else _sequences_payload(topic)
        cursor = self._state.cursors.get(key)
        if cursor is None:
            return None
        acks = cursor.ack_set
        acks.take_changes()
        if kind in (KIND_CREATE, RESTATED):
            return encode_cursor(cursor)
        return CURSOR_ID.pack(key) + acks.whole().to_bytes()


def _sequences_payload(topic: TopicLog) -> bytes:
    """The record that states a topic's sequence ids up to its last staged entry. If this record is
    in the log, so are those entries: they are before it."""
    table = topic.sequences
    if table is None:
        return SEQUENCES.pack(topic.number, 0)
    return SEQUENCES.pack(topic.number, 1) + encode_rows(table.rows(topic.staged_end))
