"""The loop side of the log: records are staged into chunks, chunks are sealed into batches.

Where a record will lie is decided when it is staged: the offset goes into the topic's index at
once, so that completing a batch costs one step per topic and none per entry. A batch that fails is
taken back as a whole, with everything staged after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError, invariant
from headgate.ledger.errors import LogFailedError, LogFullError
from headgate.ledger.format.records import (
    ACCEPT,
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CRC,
    CURSOR_ID,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    ENTRY_REST,
    KIND_ACCEPT,
    KIND_ACKS,
    KIND_BATCH,
    KIND_CREATE,
    KIND_DELETE,
    KIND_ENTRY,
    KIND_RUN,
    KIND_TRIM,
    ORDINALS,
    PREFIX_BYTES,
    RECORD_VERSION,
    RUN,
    RUN_RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
    TRIM,
    U32_MASK,
    crc32c,
    crc32c_extend,
    record,
)
from headgate.ledger.index.checkpoint import Counters
from headgate.ledger.index.cursors import CursorState, encode_cursor
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import NumberedTopic, TopicLog
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.write.batch import Batch, Chunk
from headgate.ledger.write.deferred_controls import Control, DeferredControls
from headgate.ledger.write.writer import LogWriter

_ENTRY_ROOM = ENTRY_HEAD_BYTES + RUN_RECORD_BYTES
"""What an entry may need beside its body."""
LEDGERS_GIVEN: Final = 1 << 62
"""As a topic's ``ledger_limit``: its ledgers are opened by somebody else."""
_LEDGER_RECHECK_ENTRIES = 1_000
"""A full ledger that is too young to be closed is looked at again after so many entries."""
_pack_entry = ENTRY_REST.pack
_pack_crc = CRC.pack


class Staging:
    """The loop side of :class:`headgate.ledger.CommitLog`, which inherits from it."""

    def __init__(self, settings: LedgerSettings, state: LogState, writer: LogWriter) -> None:
        self._settings = settings
        self._state = state
        self._topics = state.topics
        self._writer = writer
        self.full = False
        """The disk is full: no entry is taken, everything else goes on. Read only for others."""
        self.failed: LogFailedError | None = None
        """Why nothing is stored until a restart; None while all is well. Read only for others."""
        self._limit = settings.segment_bytes
        self._in_flight: Batch | None = None
        self._closed: list[Chunk] = []
        self._trims: list[tuple[TopicLog, int]] = []
        self._deferred = DeferredControls()
        self._number = -1
        self._offset = 0
        self._parts: list[bytes] = []
        self._chunk: Chunk
        self._begin_chunk(state.next_segment, SEGMENT_HEADER_BYTES)
        self._batches = self._records = self._bytes = self._failures = 0

    # Topics and cursors ---------------------------------------------------------------------

    def topic(self, number: int) -> TopicLog:
        """The log of a topic; made when it is new."""
        return self._state.topic(number)

    def adopt_topic(self, number: int, other: TopicLog) -> TopicLog:
        """A topic that goes on where one of another log begins, without its entries and ledgers.

        Its number must be new to this log, and ids of ledgers stay unique in it.
        """
        invariant(number not in self._state.topics, f"topic {number} is in this log already")
        topic = self.topic(number)
        topic.restart_at(other.first, other.totals(other.first))
        topic.first = other.first
        ids = [ledger_id for ledger_id, _, _ in other.ledger_rows()]
        self._state.next_ledger_id = max(self._state.next_ledger_id, *(i + 1 for i in ids), 1)
        return topic

    def drop_topic(self, number: int) -> None:
        """Forget a topic and its cursors. Its number must never come back.

        Nothing is logged: the catalog says which topics exist, and a start is told.
        """
        topic = self._state.topics.pop(number, None)
        if topic is None:
            return
        self._state.release_runs(topic.segments())
        self._deferred.forget_trim(number)
        for cursor in self.cursors_of(number):
            self._state.drop_cursor(cursor.cursor_id)
            self._deferred.forget_cursor(cursor.cursor_id)

    def cursors_of(self, topic_number: int) -> list[CursorState]:
        """The cursors of a topic, oldest first."""
        return [*self._state.topic_cursors.get(topic_number, {}).values()]

    def cursors(self) -> Iterable[CursorState]:
        """All cursors, oldest first."""
        return self._state.cursors.values()

    def create_cursor(
        self, topic_number: int, name: str, ack_set: AckSet, properties: Mapping[str, str]
    ) -> int:
        """Stage a cursor's creation; returns its id. The log keeps the live ``ack_set``.

        When its batch fails it is staged again: keep it, or give it up with
        :meth:`delete_cursor`. Raises :class:`LogFailedError` and :class:`InputError`.
        """
        if self.failed is not None:
            raise self.failed
        cursor_id = self._state.next_cursor_id
        cursor = CursorState(cursor_id, topic_number, name, ack_set, dict(properties))
        payload = encode_cursor(cursor)
        self._state.next_cursor_id += 1
        self._state.put_cursor(cursor)
        ack_set.take_changes()
        self._stage_control(Control(KIND_CREATE, cursor_id), payload)
        return cursor_id

    def delete_cursor(self, cursor_id: int) -> None:
        """Stage a cursor's end; nothing happens when there is none."""
        if self._state.drop_cursor(cursor_id) is not None:
            self._stage_control(Control(KIND_DELETE, cursor_id), CURSOR_ID.pack(cursor_id))

    # Staging --------------------------------------------------------------------------------

    def stage_entry(
        self, handle: NumberedTopic, message_count: int, log_ms: int, publish_ms: int, body: bytes
    ) -> int:
        """Stage an entry; returns its ordinal. It is visible when its batch is complete.

        ``log_ms`` is the time of the log now (see headgate.base.log_time) and ``publish_ms`` what
        the producer says, as such a time, 0 when that is not known; the times that the entry gets
        of them never run backwards in its topic.
        Raises :class:`LogFullError` while :attr:`full`, :class:`LogFailedError` once failed.
        """
        topic = self._topics[handle.number]
        size = len(body)
        if self._offset + size + _ENTRY_ROOM > self._limit:
            self._make_room(size + _ENTRY_ROOM, for_entry=True)
        ordinal = topic.staged_end
        received_ms, lag_ms = topic.times_of_next(log_ms, publish_ms)
        if topic.mark != self._number or ordinal >= topic.ledger_limit:
            self._touch(topic, received_ms)
        offset = self._offset
        rest = _pack_entry(
            size + ENTRY_FIXED_BYTES,
            KIND_ENTRY,
            RECORD_VERSION,
            0,
            self._number & U32_MASK,
            topic.number,
            message_count,
            ordinal,
            received_ms,
            lag_ms,
        )
        parts = self._parts
        parts.append(_pack_crc(crc32c_extend(crc32c(rest), body)) + rest)
        parts.append(body)
        topic.append(message_count, size, received_ms, lag_ms, offset)
        self._offset = offset + ENTRY_HEAD_BYTES + size
        self._chunk.records += 1
        return ordinal

    def stage_acks(self, cursor_id: int) -> None:
        """Stage what changed in a cursor's set since it was last staged; often nothing.

        An unknown cursor (its topic was dropped) is ignored.
        """
        cursor = self._state.cursors.get(cursor_id)
        if cursor is None or self.failed is not None:
            return
        changes = cursor.ack_set.take_changes()
        if changes is not None:
            if changes.reset:
                cursor.damage = ""  # all of its state is said anew
            payload = CURSOR_ID.pack(cursor_id) + changes.to_bytes()
            self._stage_control(Control(KIND_ACKS, cursor_id), payload)

    def ledger_is_over(self, handle: NumberedTopic, log_ms: int) -> bool:
        """Whether a topic's last ledger, which it must have, is to be closed by its age or size."""
        topic, settings = self._topics[handle.number], self._settings
        _, first, created_ms = topic.last_ledger()
        age_ms = log_ms - created_ms
        large = topic.staged_ledger_bytes() >= settings.ledger_bytes_max
        crowded = topic.staged_end - first >= settings.ledger_entries_max
        return age_ms >= settings.ledger_age_ms_max or (
            (large or crowded) and age_ms >= settings.ledger_age_ms_min
        )

    def roll_ledger(self, handle: NumberedTopic, log_ms: int) -> None:
        """Close a topic's last ledger, so that it can be trimmed; nothing happens when it is empty.

        The next entry belongs to a new one. Nothing is staged for it.
        """
        self._topics[handle.number].roll_ledger(self._state.next_ledger_id, log_ms)
        self._state.next_ledger_id += 1

    def stage_trim(self, handle: NumberedTopic, first_ordinal: int) -> None:
        """Entries below ``first_ordinal`` (at most ``end``) are gone for ever once durable."""
        topic = self._topics[handle.number]
        invariant(first_ordinal <= topic.end, "a trim beyond what is durable")
        if first_ordinal > topic.first and self.failed is None:
            payload = TRIM.pack(topic.number, 0, first_ordinal)
            self._stage_control(Control(KIND_TRIM, topic.number, first_ordinal), payload)

    def accept_damage(self, number: int, lost: Iterable[int]) -> None:
        """Stage that whatever a topic and its cursors have lost is accepted: they are served as
        they are from now on. ``lost`` are entries that were found damaged since the start.

        Should its batch fail, a start finds them damaged again. Raises :class:`LogFullError` and
        :class:`LogFailedError`.
        """
        self._make_room(0, for_entry=True)  # what is refused changes nothing
        topic = self.topic(number)
        for ordinal in lost:
            topic.note_lost(ordinal, ordinal + 1)
        rows = [row for row in topic.lost if row[1] > topic.first]
        payload = ACCEPT.pack(number, len(rows)) + b"".join(ORDINALS.pack(*row) for row in rows)
        self._make_room(PREFIX_BYTES + len(payload), for_entry=True)
        self._append_record(KIND_ACCEPT, payload)
        topic.damage = ""
        for cursor in self.cursors_of(number):
            cursor.damage = ""

    @property
    def has_deferred(self) -> bool:
        """Whether acknowledgements, cursors or trims wait outside of all batches for room.

        They are staged by themselves when a segment is there that takes them.
        """
        return bool(self._deferred)

    @property
    def staged_records(self) -> int:
        """Records staged and not yet in a sealed batch."""
        return self._chunk.records + sum(chunk.records for chunk in self._closed)

    @property
    def staged_bytes(self) -> int:
        """Their bytes, headers included."""
        open_bytes = self._offset - self._chunk.start if self._chunk.records else 0
        return open_bytes + sum(chunk.end - chunk.start for chunk in self._closed)

    # Batches --------------------------------------------------------------------------------

    def seal_batch(self) -> Batch | None:
        """Everything staged, as one batch for :meth:`write_batch`; None when nothing is.

        There is at most one batch between this and :meth:`complete` or :meth:`fail`.
        """
        invariant(self._in_flight is None, "a batch is in flight")
        self._close_chunk()
        if not self._closed:
            return None
        chunks, self._closed = tuple(self._closed), []
        previous = self._state.last_batch
        for chunk in chunks:
            chunk.parts[0] = self._batch_record(chunk, previous)
            previous = chunk.number
        touched = dict.fromkeys(chain.from_iterable(chunk.touched for chunk in chunks))
        trims, self._trims = tuple(self._trims), []
        self._in_flight = Batch(
            chunks,
            tuple((topic, topic.staged_end) for topic in touched),
            trims,
            sum(chunk.end - chunk.start for chunk in chunks),
            sum(chunk.records for chunk in chunks),
        )
        return self._in_flight

    def write_batch(self, batch: Batch) -> None:
        """Commit thread: write the batch and make it durable.

        Raises :class:`StorageError`; give it to :meth:`fail`.
        """
        self._writer.write_batch(batch)

    def complete(self, batch: Batch) -> list[TopicLog]:
        """The batch is durable: its entries become visible. Returns the topics that got some."""
        invariant(batch is self._in_flight, "another batch is in flight")
        self._in_flight = None
        state = self._state
        touched: list[TopicLog] = []
        for topic, end in batch.ends:
            topic.end = end
            touched.append(topic)
        for chunk in batch.chunks:
            info = state.segments[chunk.segment]
            info.data_end = chunk.end
            info.last_batch = state.last_batch = chunk.number
        for topic, first in batch.trims:
            lost_runs = topic.trim(first)
            if topic.number in state.topics:
                state.release_runs(lost_runs)
        self._batches += 1
        self._records += batch.records
        self._bytes += batch.size_bytes
        self._stage_deferred()
        return touched

    def fail(self, batch: Batch, error: StorageError) -> None:
        """The batch is not durable: its entries, and all staged after them, are gone.

        When ``error`` is retryable, acknowledgements, cursors and trims of the batch are staged
        again as far as there is room (see :attr:`has_deferred`), and a :class:`LogFullError` sets
        :attr:`full`. Otherwise the log is :attr:`failed`.
        """
        invariant(batch is self._in_flight, "another batch is in flight")
        self._in_flight = None
        self._failures += 1
        self._close_chunk()
        lost = [*batch.chunks, *self._closed]
        self._closed = []
        self._trims = []
        state = self._state
        for topic in dict.fromkeys(chain.from_iterable(chunk.touched for chunk in lost)):
            segments = topic.rewind()
            if topic.number in state.topics:
                state.release_runs(segments)
        first = lost[0]
        for segment in [s for s in state.segments if s > first.segment]:
            del state.segments[segment]
            state.unsealed.pop(segment, None)
        self._begin_chunk(first.segment, first.start)
        if not error.retryable:
            self.failed = error if isinstance(error, LogFailedError) else LogFailedError(str(error))
            self._limit = -1
            return
        if isinstance(error, LogFullError):
            self._set_full(full=True)
        for control in chain.from_iterable(chunk.controls for chunk in lost):
            self._deferred.add(control)
        self._stage_deferred()

    def commit(self, batch: Batch) -> list[TopicLog]:
        """Write and complete in one call, for callers that may block (tests, :meth:`close`)."""
        try:
            self.write_batch(batch)
        except StorageError as error:
            self.fail(batch, error)
            raise
        return self.complete(batch)

    # Segments -------------------------------------------------------------------------------

    def active_segment(self) -> int:
        """The segment that the next record goes to."""
        return self._chunk.segment

    def settled_segment(self) -> int:
        """The first segment that may still get records."""
        if self._in_flight is not None:
            return self._in_flight.chunks[0].segment
        return self._closed[0].segment if self._closed else self._chunk.segment

    def roll(self) -> int:
        """Send the next record to a new segment; returns the first one without records."""
        chunk = self._chunk
        if chunk.start > SEGMENT_HEADER_BYTES or chunk.records:
            self._close_chunk()
            self._begin_chunk(chunk.segment + 1, SEGMENT_HEADER_BYTES)
        return self._chunk.segment

    def last_staged(self) -> int:
        """The number of the batch that holds the last staged record."""
        return self._number

    def is_durable(self, number: int) -> bool:
        """Whether everything staged up to a batch number is durable."""
        if self._deferred or (self._chunk.records and self._number <= number):
            return False
        waiting = [*(self._in_flight.chunks if self._in_flight else ()), *self._closed]
        return all(chunk.number > number for chunk in waiting)

    def counters(self) -> Counters:
        """The numbers that are used next."""
        state = self._state
        next_batch = self._number + 1
        return Counters(
            state.next_ledger_id, state.next_cursor_id, next_batch, self._chunk.segment + 1
        )

    # Inside ---------------------------------------------------------------------------------

    def _begin_chunk(self, segment: int, start: int) -> None:
        number = max(self._number + 1, self._state.next_batch)
        self._number = number
        self._parts = [b""]
        self._offset = start + BATCH_RECORD_BYTES
        self._chunk = Chunk(number, segment, start, start, self._parts)

    def _close_chunk(self) -> None:
        chunk = self._chunk
        if chunk.records == 0:
            return
        chunk.end = self._offset
        chunk.next_cursor_id = self._state.next_cursor_id
        self._state.enter_segment(chunk.segment)
        self._closed.append(chunk)
        self._begin_chunk(chunk.segment, chunk.end)

    def _make_room(self, size: int, *, for_entry: bool) -> None:
        """Roll to the next segment when this one cannot take ``size`` more bytes."""
        if for_entry:
            if self.failed is not None:
                raise self.failed
            if self.full:
                raise LogFullError("the disk is full: what is published waits until there is room")
        if self._offset + size > self._settings.segment_bytes:
            self.roll()

    def _touch(self, topic: TopicLog, received_ms: int) -> None:
        """First entry of a topic in a batch, or a full ledger: open what has to be opened."""
        if topic.mark != self._number:
            topic.mark = self._number
            self._chunk.touched.append(topic)
        opened = self._open_ledger_if_due(topic, received_ms)
        info = self._state.enter_segment(self._chunk.segment)
        if topic.open_run(info.segment):
            info.live_runs += 1
            info.topics[topic.number] = None
            opened = True
        if opened:
            ordinal = topic.staged_end
            messages, size, before_ms, lag_ms = topic.totals(ordinal)
            payload = RUN.pack(
                topic.number, lag_ms, ordinal, messages, size, before_ms, *topic.last_ledger()
            )
            self._append_record(KIND_RUN, payload)

    def _open_ledger_if_due(self, topic: TopicLog, received_ms: int) -> bool:
        ordinal = topic.staged_end
        ledger_id = self._state.next_ledger_id
        if topic.ledger_limit == LEDGERS_GIVEN:
            return topic.last_ledger()[1] == ordinal
        if topic.ledger_limit >= 0:
            last_id, first, _ = topic.last_ledger()
            if ordinal == first:
                ledger_id = last_id  # rolled before: it is known, and its age counts from now
            elif not self.ledger_is_over(topic, received_ms):
                if ordinal >= topic.ledger_limit:
                    # Full but too young: look again now and then, not at every entry.
                    topic.ledger_limit = ordinal + _LEDGER_RECHECK_ENTRIES
                return False
        topic.open_ledger(ledger_id, ordinal, received_ms)
        topic.ledger_limit = ordinal + self._settings.ledger_entries_max
        if ledger_id == self._state.next_ledger_id:
            self._state.next_ledger_id += 1
        return True

    def _stage_control(self, control: Control, payload: bytes) -> None:
        if self.failed is not None:
            return
        if self._deferred or (self.full and not self._has_room(len(payload))):
            self._deferred.add(control)
        else:
            self._append_control(control, payload)

    def _stage_deferred(self) -> None:
        """Stage what is held as far as segments for it are there: the rest would only fail."""
        while self._deferred:
            control = self._deferred.take()
            payload = self._payload(control)
            if payload is None:
                continue
            if not self._has_room(len(payload)):
                self._deferred.add(control)
                return
            self._append_control(control, payload)

    def _payload(self, control: Control) -> bytes | None:
        """The record that says all of what holds now; None when it is about something gone."""
        kind, key, first_ordinal = control
        if kind == KIND_DELETE:
            return CURSOR_ID.pack(key)
        if kind == KIND_TRIM:
            return TRIM.pack(key, 0, first_ordinal) if key in self._state.topics else None
        cursor = self._state.cursors.get(key)
        if cursor is None:
            return None
        acks = cursor.ack_set
        acks.take_changes()
        if kind == KIND_CREATE:
            return encode_cursor(cursor)
        return CURSOR_ID.pack(key) + acks.whole().to_bytes()

    def _has_room(self, payload_bytes: int) -> bool:
        """Whether the segment that a record would go to is there."""
        fits = self._offset + PREFIX_BYTES + payload_bytes <= self._settings.segment_bytes
        return self._writer.has(self._chunk.segment + (not fits))

    def _append_control(self, control: Control, payload: bytes) -> None:
        size = PREFIX_BYTES + len(payload)
        if self._offset + size > self._settings.segment_bytes:
            self._make_room(size, for_entry=False)
        self._append_record(control.kind, payload)
        self._chunk.controls.append(control)
        if control.kind == KIND_TRIM:
            topic = self._state.topics.get(control.key)
            if topic is not None:
                self._trims.append((topic, control.first_ordinal))

    def _append_record(self, kind: int, payload: bytes) -> None:
        data = record(kind, payload, self._number)
        self._parts.append(data)
        self._offset += len(data)
        self._chunk.records += 1

    def _batch_record(self, chunk: Chunk, previous: int) -> bytes:
        payload = BATCH.pack(
            BATCH_MAGIC,
            chunk.number,
            previous,
            self._state.next_ledger_id,
            chunk.next_cursor_id,
            chunk.segment,
            self._writer.stamp,
            chunk.records,
            chunk.end - chunk.start,
        )
        return record(KIND_BATCH, payload, chunk.number)

    def _set_full(self, *, full: bool) -> None:
        self.full = full
        self._limit = -1 if full else self._settings.segment_bytes
