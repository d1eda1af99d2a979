"""The open batch: records are staged into chunks, chunks are sealed into batches.

Staging a record decides its position, and its offset enters the topic's index at once. So
completing a batch costs one step per topic and none per entry. If a batch fails, it is taken back
as a whole, with everything staged after it.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from headgate.base.errors import invariant
from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CRC,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    ENTRY_REST,
    KIND_BATCH,
    KIND_ENTRY,
    KIND_RUN,
    KIND_TRIM,
    PREFIX_BYTES,
    RECORD_VERSION,
    RUN,
    RUN_RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
    U32_MASK,
    crc32c,
    crc32c_extend,
    record,
)
from headgate.ledger.index.checkpoint import Counters
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import NumberedTopic, Released, TopicLog
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.write.batch import Batch, Chunk
from headgate.ledger.write.deferred_controls import Control
from headgate.ledger.write.health import LogHealth
from headgate.ledger.write.rollover import LedgerRollover
from headgate.ledger.write.writer import LogWriter

_ENTRY_ROOM = ENTRY_HEAD_BYTES + RUN_RECORD_BYTES
"""Most bytes that an entry needs beside its body."""
TRIMS_PART: Final = 64
"""This fraction of a segment is kept for trims on a full disk: enough for tens of thousands."""
_pack_entry = ENTRY_REST.pack
_pack_crc = CRC.pack


class Staging:
    """The records of one log that are not durable yet, for the event loop."""

    def __init__(
        self,
        settings: LedgerSettings,
        state: LogState,
        writer: LogWriter,
        rollover: LedgerRollover,
        health: LogHealth,
    ) -> None:
        self._settings = settings
        self._state = state
        self._topics = state.topics
        self._writer = writer
        self._rollover = rollover
        self._health = health
        self._entry_limit = settings.segment_bytes
        """The offset in the segment up to which entries fit; -1 while the log takes none. One
        comparison for each entry checks both."""
        health.on_change(self._health_changed)
        self._in_flight: Batch | None = None
        self._closed: list[Chunk] = []
        self._trims: list[tuple[TopicLog, int]] = []
        self._number = -1
        self._offset = 0
        self._parts: list[bytes] = []
        self._chunk: Chunk
        self._begin_chunk(state.next_segment, SEGMENT_HEADER_BYTES)
        self.batches = 0
        """Durable batches; ``records`` and ``size_bytes`` count durable ones, too."""
        self.records = 0
        self.size_bytes = 0
        self.entry_bytes = 0
        """Bytes of the durable ENTRY records."""
        self.batches_failed = 0

    # Staging --------------------------------------------------------------------------------

    def stage_entry(
        self, handle: NumberedTopic, message_count: int, log_ms: int, publish_ms: int, body: bytes
    ) -> int:
        """Stage an entry; returns its ordinal. The entry becomes visible when its batch is
        complete.

        ``log_ms`` is the present time of the log (see headgate.base.log_time) and ``publish_ms``
        the producer's publish time on the same scale, 0 if unknown.
        Raises :class:`LogFullError` while the log is full, :class:`LogFailedError` once it failed.
        """
        topic = self._topics[handle.number]
        size = len(body)
        if self._offset + size + _ENTRY_ROOM > self._entry_limit:
            self._health.check_open()
            self.make_room(size + _ENTRY_ROOM)
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
        topic.stored_total.bytes += ENTRY_HEAD_BYTES + size
        self._offset = offset + ENTRY_HEAD_BYTES + size
        self._chunk.records += 1
        return ordinal

    def make_room(self, size: int) -> None:
        """Continue in the next segment if this one cannot take ``size`` more bytes."""
        if self._offset + size > self._settings.segment_bytes:
            self.roll()

    def has_room(self, payload_bytes: int, *, is_trim: bool) -> bool:
        """Whether a prepared segment has room for a record with this payload. While the log is
        full, the end of the last one is for trims: others may need any room, and free none."""
        end = self._offset + PREFIX_BYTES + payload_bytes
        if self._health.is_full and not is_trim:
            end += self._settings.segment_bytes // TRIMS_PART
        fits = end <= self._settings.segment_bytes
        return self._writer.has(self._chunk.segment + (not fits))

    def append_control(self, control: Control, payload: bytes) -> None:
        """Stage a control record, which :meth:`fail` returns if its batch fails."""
        self.make_room(PREFIX_BYTES + len(payload))
        self.append_record(control.record_kind, payload)
        self._chunk.controls.append(control)
        if control.kind == KIND_TRIM:
            topic = self._topics.get(control.key)
            if topic is not None:
                self._trims.append((topic, control.first_ordinal))

    def append_record(self, kind: int, payload: bytes) -> None:
        """Stage a record. The segment must have room for it."""
        data = record(kind, payload, self._number)
        self._parts.append(data)
        self._offset += len(data)
        self._chunk.overhead_bytes += len(data)
        self._chunk.records += 1

    @property
    def has_trims(self) -> bool:
        """Whether there are trims that are not yet in a sealed batch."""
        return bool(self._trims)

    @property
    def staged_records(self) -> int:
        """Records staged and not yet in a sealed batch."""
        records = self._chunk.records
        for chunk in self._closed:  # nearly always none: a sum would cost each turn of the loop
            records += chunk.records
        return records

    @property
    def staged_bytes(self) -> int:
        """Bytes of the staged records, headers included."""
        size_bytes = self._offset - self._chunk.start if self._chunk.records else 0
        for chunk in self._closed:
            size_bytes += chunk.end - chunk.start
        return size_bytes

    @property
    def is_writing(self) -> bool:
        """Whether a sealed batch is in flight."""
        return self._in_flight is not None

    @property
    def unstored_bytes(self) -> int:
        """Bytes of the records that are not durable: staged, or in the batch that is written."""
        in_flight = self._in_flight
        return self.staged_bytes + (0 if in_flight is None else in_flight.size_bytes)

    # Batches --------------------------------------------------------------------------------

    def seal_batch(self) -> Batch | None:
        """Seal the staged records into one batch for ``write_batch``; None if there are none.

        :meth:`complete` or :meth:`fail` must end this batch before the next one is sealed.
        """
        invariant(self._in_flight is None, "a batch is in flight")
        self._close_chunk()
        if not self._closed:
            return None
        chunks, self._closed = tuple(self._closed), []
        previous, size_bytes, records = self._state.last_batch, 0, 0
        for chunk in chunks:
            chunk.parts[0] = self._batch_record(chunk, previous)
            previous = chunk.number
            size_bytes += chunk.end - chunk.start
            records += chunk.records
        touched = dict.fromkeys(chain.from_iterable(chunk.touched for chunk in chunks))
        trims, self._trims = tuple(self._trims), []
        self._in_flight = Batch(
            chunks,
            tuple([(topic, topic.staged_end) for topic in touched]),
            trims,
            size_bytes,
            records,
        )
        return self._in_flight

    def complete(self, batch: Batch) -> list[TopicLog]:
        """Make the entries of a durable batch visible. Returns the topics with entries in it."""
        invariant(batch is self._in_flight, "another batch is in flight")
        self._in_flight = None
        state = self._state
        if state.dropped:
            self._release_dropped(batch)
        touched: list[TopicLog] = []
        for topic, end in batch.ends:
            topic.end = end
            touched.append(topic)
        for chunk in batch.chunks:
            info = state.segments[chunk.segment]
            info.data_end = chunk.end
            info.last_batch = state.last_batch = chunk.number
            entry_bytes = chunk.end - chunk.start - chunk.overhead_bytes
            state.born(info, entry_bytes)
            self.entry_bytes += entry_bytes
        for topic, first in batch.trims:
            released = topic.trim(first)
            topic.stored_total.bytes -= sum(each.live_bytes for each in released)
            if topic.number in state.topics:
                state.release(released)
        self.batches += 1
        self.records += batch.records
        self.size_bytes += batch.size_bytes
        return touched

    def fail(self, batch: Batch) -> tuple[list[TopicLog], list[Control]]:
        """Take back a batch that failed, and everything staged after it. Returns the topics that
        had staged entries, and the control records."""
        invariant(batch is self._in_flight, "another batch is in flight")
        self._in_flight = None
        self.batches_failed += 1
        self._close_chunk()
        lost = [*batch.chunks, *self._closed]
        self._closed = []
        self._trims = []
        state = self._state
        touched = list(dict.fromkeys(chain.from_iterable(chunk.touched for chunk in lost)))
        for topic in touched:
            topic.stored_total.bytes -= topic.live_bytes(topic.end, topic.staged_end)
            segments = topic.rewind()
            state.dropped.pop(topic, None)
            if topic.number in state.topics:
                state.release_runs(segments)
        first = lost[0]
        for segment in [s for s in state.segments if s > first.segment]:
            del state.segments[segment]
            state.unsealed.pop(segment, None)
        self._begin_chunk(first.segment, first.start)
        return touched, list(chain.from_iterable(chunk.controls for chunk in lost))

    # Segments -------------------------------------------------------------------------------

    def active_segment(self) -> int:
        """The segment of the next record."""
        return self._chunk.segment

    def first_unsynced_segment(self) -> int:
        """The first segment that may still receive durable records."""
        if self._in_flight is not None:
            return self._in_flight.chunks[0].segment
        return self._closed[0].segment if self._closed else self._chunk.segment

    def roll(self) -> int:
        """Begin a new segment, unless this one is empty; returns the empty one."""
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
        if self._chunk.records and self._number <= number:
            return False
        waiting = [*(self._in_flight.chunks if self._in_flight else ()), *self._closed]
        return all(chunk.number > number for chunk in waiting)

    def counters(self) -> Counters:
        """The next unused numbers."""
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

    def _touch(self, topic: TopicLog, received_ms: int) -> None:
        """Open the ledger and run that a topic's next entry needs; note the topic in the chunk."""
        if topic.mark != self._number:
            topic.mark = self._number
            self._chunk.touched.append(topic)
        opened = self._rollover.open_if_due(topic, received_ms)
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
            self.append_record(KIND_RUN, payload)

    def _release_dropped(self, batch: Batch) -> None:
        """Take the entries of topics that were deleted meanwhile from what this batch brings to
        life. A topic has at most one run in each of its chunks."""
        state = self._state
        for topic, end in batch.ends:
            if topic not in state.dropped:
                continue
            before, topic.end = topic.end, end
            for chunk in batch.chunks:
                run = topic.run_in(chunk.segment)
                if run is not None:
                    low, high = max(run[0], before), min(run[1], end)
                    dead = Released(chunk.segment, topic.live_bytes(low, high), False)
                    state.release((dead,))
            if topic.staged_end == end:
                del state.dropped[topic]

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

    def _health_changed(self) -> None:
        self._entry_limit = self._settings.segment_bytes if self._health.is_open else -1
