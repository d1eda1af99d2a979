"""Replay: turn the records of segments into state, and tell a torn tail from damage.

The rule is in format.py: a batch is followed by another only when it was durable. So every BATCH
record names the batch before it, and whatever does not fit the chain is judged by what comes
after it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headgate.base.ack_changes import AckChanges
from headgate.base.errors import CorruptionError
from headgate.ledger.cursors import decode_cursor
from headgate.ledger.format import (
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CURSOR_ID,
    ENTRY,
    ENTRY_FIXED_BYTES,
    KIND_ACKS,
    KIND_BATCH,
    KIND_CREATE,
    KIND_DELETE,
    KIND_ENTRY,
    KIND_RUN,
    KIND_TRIM,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    RUN,
    SEGMENT_HEADER_BYTES,
    TRIM,
    U32_MASK,
    crc32c,
    segment_name,
    segment_stamp,
)
from headgate.ledger.state import LogState
from headgate.ledger.topic_log import TopicLog, TopicTotals

_CRC_END = 4


@dataclass(frozen=True, slots=True)
class BatchHead:
    """A BATCH record as read."""

    number: int
    previous: int
    next_ledger_id: int
    next_cursor_id: int
    segment: int
    stamp: int
    records: int
    size_bytes: int


def batch_head(data: bytes, at: int) -> BatchHead | None:
    """The sound BATCH record at an offset; None when there is none."""
    end = at + BATCH_RECORD_BYTES
    if at < 0 or end > len(data) or data[at + PREFIX_BYTES : at + PREFIX_BYTES + 8] != BATCH_MAGIC:
        return None
    crc, size, kind, _, _, _ = PREFIX.unpack_from(data, at)
    if kind != KIND_BATCH or size != BATCH.size or crc32c(data[at + _CRC_END : end]) != crc:
        return None
    return BatchHead(*BATCH.unpack_from(data, at + PREFIX_BYTES)[1:])


class Replay:
    """Applies segments, in order, to a :class:`LogState`."""

    def __init__(self, state: LogState, topic_numbers: Collection[int]) -> None:
        self._state = state
        self._known = frozenset(topic_numbers)
        self.trims: dict[int, int] = {}
        """The highest TRIM seen of each known topic."""
        self.torn: BatchHead | None = None
        """The batch in the middle of which the last segment's good records ended, if it is known.
        """
        self._entries_only = False
        self._segment = 0
        self._torn_end = 0
        """Where that batch would have ended."""

    def index_only(self, data: bytes, segment: int) -> int:
        """Rebuild the index of a segment before the checkpoint; returns where its records end."""
        last_batch = self._state.last_batch
        self._entries_only = True
        try:
            head = batch_head(data, SEGMENT_HEADER_BYTES)
            self._state.last_batch = head.previous if head is not None else 0
            return self.segment(data, segment, len(data))
        finally:
            self._entries_only = False
            self._state.last_batch = last_batch

    def segment(self, data: bytes, segment: int, limit: int) -> int:
        """Apply the records of a segment up to ``limit``; returns where the good ones end.

        Raises :class:`CorruptionError` when something that was durable is damaged.
        """
        state = self._state
        self._segment = segment
        stamp = segment_stamp(data, segment)
        at = SEGMENT_HEADER_BYTES
        self._torn_end = 0
        self.torn = None
        if stamp is not None:
            while (head := batch_head(data, at)) is not None:
                if head.segment != segment or head.stamp != stamp:
                    break
                if head.previous != state.last_batch or head.number <= head.previous:
                    break
                state.next_batch = max(state.next_batch, head.number + 1)
                stop = min(at + head.size_bytes, limit)
                reached = self._batch(data, at + BATCH_RECORD_BYTES, stop, head)
                if reached < at + head.size_bytes:
                    self._torn_end = at + head.size_bytes
                    self.torn = head
                    if reached > at + BATCH_RECORD_BYTES:
                        at = reached
                    break
                at = reached
                state.last_batch = head.number
                state.next_ledger_id = max(state.next_ledger_id, head.next_ledger_id)
                state.next_cursor_id = max(state.next_cursor_id, head.next_cursor_id)
                if at >= limit:
                    break
        self._judge_rest(data, at)
        return at

    def _judge_rest(self, data: bytes, at: int) -> None:
        """Raise when a batch after ``at`` proves that something between was durable.

        Where the torn batch says how long it is, whatever lies in it is not looked at: the next
        batch begins behind it. Else a batch is known by the stamp that only this log could know.
        """
        last = self._state.last_batch
        stamp = segment_stamp(data, self._segment)
        found = data.find(BATCH_MAGIC, max(at, self._torn_end))
        while found >= 0:
            head = batch_head(data, found - PREFIX_BYTES)
            ours = head is not None and head.segment == self._segment
            if head is not None and ours and head.stamp == (stamp or head.stamp):
                self._state.next_batch = max(self._state.next_batch, head.number + 1)
                if stamp is None:
                    raise CorruptionError(
                        f"{segment_name(self._segment)} is damaged at its header, offset 0"
                    )
                if head.previous > last:
                    raise CorruptionError(
                        f"the log is damaged in the middle: batch {last} is followed by damage at "
                        f"{segment_name(self._segment)} offset {at} or before it, and by sound "
                        f"batch {head.number} at offset {found - PREFIX_BYTES}; "
                        "what lies between was durable once"
                    )
            found = data.find(BATCH_MAGIC, found + 1)

    def _batch(self, data: bytes, at: int, stop: int, head: BatchHead) -> int:
        """Apply the records of a batch; returns where the good ones end."""
        low_number = head.number & U32_MASK
        topics = self._state.topics
        prefix, entry = PREFIX.unpack_from, ENTRY.unpack_from
        count = 0
        while at + PREFIX_BYTES <= stop:
            crc, size, kind, version, _, owner = prefix(data, at)
            end = at + PREFIX_BYTES + size
            if owner != low_number or end > stop or crc32c(data[at + _CRC_END : end]) != crc:
                break
            if version != RECORD_VERSION:
                raise CorruptionError(
                    f"{segment_name(self._segment)} offset {at}: a record of version {version}; "
                    f"this release reads {RECORD_VERSION}"
                )
            if kind == KIND_ENTRY:
                _, _, _, _, _, _, number, messages, ordinal, received, lag = entry(data, at)
                topic = topics.get(number)
                if topic is not None:
                    if ordinal != topic.staged_end:
                        self._gap(topic, ordinal, at)
                    topic.append(messages, size - ENTRY_FIXED_BYTES, received, lag, at)
                    topic.end = topic.staged_end
                else:
                    size_bytes = size - ENTRY_FIXED_BYTES
                    self._state.remains.add(self._segment, number, 1, size_bytes)
            elif kind == KIND_RUN:
                self._run(data[at + PREFIX_BYTES : end])
            elif not self._entries_only:
                self._control(kind, data[at + PREFIX_BYTES : end], at)
            at = end
            count += 1
        if not self._entries_only:
            self._state.replayed_records += count
        return at

    def _run(self, payload: bytes) -> None:
        number, lag, ordinal, messages, size, received, *ledger = RUN.unpack(payload)
        ledger_id, ledger_first, created = ledger
        state = self._state
        state.next_ledger_id = max(state.next_ledger_id, ledger_id + 1)
        state.remains.see(number)
        if number not in self._known:
            return
        topic = state.topics.get(number)
        if topic is None:
            topic = state.topics[number] = TopicLog(number)
        if topic.base == topic.staged_end or ordinal > topic.staged_end:
            topic.restart_at(ordinal, TopicTotals(messages, size, received, lag))
        topic.open_run(self._segment)
        rows = topic.ledger_rows()
        if not rows or ledger_id > rows[-1][0]:
            topic.open_ledger(ledger_id, ledger_first, created)

    def _control(self, kind: int, payload: bytes, at: int) -> None:
        state = self._state
        if kind == KIND_ACKS:
            (cursor_id,) = CURSOR_ID.unpack_from(payload)
            cursor = state.cursors.get(cursor_id)
            if cursor is not None:
                cursor.ack_set.apply(AckChanges.from_bytes(payload[CURSOR_ID.size :]))
        elif kind == KIND_CREATE:
            made = decode_cursor(payload)
            state.next_cursor_id = max(state.next_cursor_id, made.cursor_id + 1)
            state.remains.see(made.topic_number)
            if made.topic_number in self._known:
                state.put_cursor(made)
        elif kind == KIND_DELETE:
            state.drop_cursor(CURSOR_ID.unpack(payload)[0])
        elif kind == KIND_TRIM:
            number, _, first = TRIM.unpack(payload)
            state.remains.see(number)
            if number in self._known:
                self.trims[number] = max(self.trims.get(number, 0), first)
        else:
            raise CorruptionError(
                f"{segment_name(self._segment)} offset {at}: a record of unknown kind {kind}"
            )

    def _gap(self, topic: TopicLog, ordinal: int, at: int) -> None:
        raise CorruptionError(
            f"{segment_name(self._segment)} offset {at}: entry {ordinal} of topic number "
            f"{topic.number} where entry {topic.staged_end} belongs"
        )
