"""Replays the records of segments and tells a torn tail from damage.

The rule is in format.py: a batch is followed by another only when it was durable. So every BATCH
record names the batch before it, and whatever does not fit the chain is damage when a later batch,
a footer or the recorded end says that it was durable, and the torn tail otherwise.

Damage is passed, not served. In this order: a record with one wrong bit is read as it was
(mending.py); a footer says which entries lie where; a record that says how long it is hides nobody
else's; a hole that hides more makes :mod:`headgate.ledger.recovery.loss_assessment` start over with
what may be lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headgate.base.errors import CorruptionError
from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CRC_END,
    ENTRY,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_BATCH,
    KIND_ENTRY,
    KIND_RUN,
    KINDS,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    SEGMENT_HEADER_BYTES,
    U32_MASK,
    crc32c,
    segment_name,
    segment_stamp,
)
from headgate.ledger.index.footer import Footer, FooterEntry
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.bit_correction import (
    corrected_batch_record,
    corrected_header,
    corrected_record,
)
from headgate.ledger.recovery.loss_assessment import LossAssessment
from headgate.ledger.recovery.redo import Redo

CORRECTION_TRIES_MAX = 1_000
"""So many records are tried to be corrected in one start: each takes about a millisecond, and where
more are damaged it is not by single bits."""


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
    if kind != KIND_BATCH or size != BATCH.size or crc32c(data[at + CRC_END : end]) != crc:
        return None
    return BatchHead(*BATCH.unpack_from(data, at + PREFIX_BYTES)[1:])


def first_head(data: bytes, segment: int) -> BatchHead | None:
    """The first batch of a segment, by the beginning of its file; None when it has none, or more
    than a bit of its head is wrong."""
    head = batch_head(data, SEGMENT_HEADER_BYTES)
    if head is None:
        corrected = corrected_batch_record(data, SEGMENT_HEADER_BYTES)
        head = None if corrected is None else batch_head(corrected, 0)
    return head if head is not None and head.segment == segment else None


class Replay:
    """Applies segments, in order, to a :class:`LogState`."""

    def __init__(
        self,
        state: LogState,
        topic_numbers: Collection[int],
        *,
        flush_position: tuple[int, int] = (0, 0),
        without_checkpoint: bool = False,
    ) -> None:
        """``flush_position`` is a segment and an offset up to which all was durable. Without a
        checkpoint, all that is known of older segments is that they are gone."""
        self._state = state
        known = frozenset(topic_numbers)
        self.assessment = LossAssessment(state, known)
        self._redo = Redo(state, known, self.assessment)
        self._redo.without_checkpoint = without_checkpoint
        self._flush_position = flush_position
        self._follows: int | None = None
        """As :meth:`segment` says."""
        self.torn: BatchHead | None = None
        """The batch in the middle of which the last segment's good records ended, if known."""
        self.corrected: list[str] = []
        """Places where one wrong bit was set right."""
        self.damaged_places: list[str] = []
        """Places where something was lost."""
        self._entries_only = False
        self._data = b""
        self._segment = 0
        self._limit = 0
        self._stamp: int | None = None
        self._footer: Footer | None = None
        self._places: dict[int, FooterEntry] | None = None
        self._holed = False
        self._correction_tries = 0
        self._tail_hidden = False
        """What lay at the end of the segment before is known to be lost."""

    @property
    def trims(self) -> dict[int, int]:
        """The highest TRIM seen of each known topic."""
        return self._redo.trims

    def index_only(self, data: bytes, segment: int) -> int:
        """Rebuild the index of a segment before the checkpoint; returns where its records end."""
        last_batch = self._state.last_batch
        self._entries_only = True
        try:
            head = first_head(data, segment)
            self._state.last_batch = 0 if head is None else head.previous
            return self.segment(data, segment, len(data))
        finally:
            self._entries_only = False
            self._state.last_batch = last_batch

    def segment(
        self,
        data: bytes,
        segment: int,
        limit: int,
        footer: Footer | None = None,
        *,
        follows: int | None = None,
    ) -> int:
        """Apply the records of a segment up to ``limit``; returns where they end.

        With its ``footer``, all up to there was durable. ``follows`` is the batch that the first
        one of the next segment follows, 0 when that cannot be read, None when there is none.
        Raises :class:`CorruptionError` for records that no release writes.
        """
        self._data, self._segment, self._limit = data, segment, limit
        self._footer, self._places, self._follows = footer, None, follows
        self._redo.segment = segment
        self._stamp = self._header_stamp()
        self.torn = None
        at = SEGMENT_HEADER_BYTES
        while at < self._limit:
            head = self._head(at)
            if head is not None:
                reached = self._batch(at, head)
                whole = reached >= at + head.size_bytes
                at = reached if reached > at + BATCH_RECORD_BYTES else at
                if not whole:
                    break
                continue
            following = self._head_after(at)
            if following is None and not self._was_more(at):
                break
            at = self._pass_batches(at, following)
        in_segment, end = self._flush_position
        if in_segment == segment and at < end and footer is None and not self._tail_hidden:
            self._hide(at, end)  # the file was cut short
            self._tail_hidden = True
        return at

    # Batches --------------------------------------------------------------------------------

    def _header_stamp(self) -> int | None:
        stamp = segment_stamp(self._data, self._segment)
        if stamp is None:
            corrected = corrected_header(self._data, self._segment)
            if corrected is not None:
                self._note_corrected(0)
                return segment_stamp(corrected, self._segment)
            head = batch_head(self._data, SEGMENT_HEADER_BYTES)
            if head is not None and head.segment == self._segment:
                self._note_corrected(0)
                return head.stamp
        return stamp

    def _head(self, at: int) -> BatchHead | None:
        """The head of the batch that follows the last one, at an offset where it belongs."""
        last = self._state.last_batch
        head = batch_head(self._data, at)
        if head is None:
            corrected = corrected_batch_record(self._data, at)
            head = None if corrected is None else batch_head(corrected, 0)
            if not self._is_ours(head) or head is None or head.previous != last:
                return None
            self._note_corrected(at)
        if not self._is_ours(head) or head.number <= head.previous or head.previous < last:
            return None
        if head.previous > last:
            # Only at the beginning of a segment: what is lost lies at the end of the one before.
            if not self._tail_hidden:
                self._hide(at, at, f"before {self._redo.place(at)}")
            self._state.last_batch = head.previous
        self._tail_hidden = False
        return head

    def _is_ours(self, head: BatchHead | None) -> bool:
        return head is not None and (head.segment, head.stamp) == (self._segment, self._stamp)

    def _head_after(self, at: int) -> tuple[int, BatchHead] | None:
        """The next head that proves that something before it was durable. Its stamp is one that
        nobody who sends messages knows."""
        found = self._data.find(BATCH_MAGIC, at, self._limit)
        while found >= 0:
            head = batch_head(self._data, found - PREFIX_BYTES)
            if head is not None and self._is_ours(head) and head.previous > self._state.last_batch:
                return found - PREFIX_BYTES, head
            found = self._data.find(BATCH_MAGIC, found + 1, self._limit)
        return None

    def _was_more(self, at: int) -> bool:
        """Whether something was durable from an offset on, though no head follows there."""
        if self._entries_only:
            return False
        if self._footer is not None or (self._follows or 0) > self._state.last_batch:
            return True
        segment, offset = self._flush_position
        return segment == self._segment and at < offset

    def _pass_batches(self, at: int, following: tuple[int, BatchHead] | None) -> int:
        """Pass what lies before the next head; returns where to go on."""
        if following is not None:
            end, self._state.last_batch = following[0], following[1].previous
        else:
            if self._footer is not None:
                end = self._limit
            else:
                end = len(self._data[: self._limit].rstrip(b"\0"))
                if self._flush_position[0] == self._segment:
                    end = min(self._flush_position[1], self._limit)
            end = max(at, end)
        self._hide(at, end)
        if following is None:
            # How many batches were here is known by what follows in the next segment.
            self._limit = end
            self._tail_hidden = True
        return end

    def _batch(self, at: int, head: BatchHead) -> int:
        """Apply the records of a batch; returns where the good ones end: its end, if it was
        durable."""
        state = self._state
        state.next_batch = max(state.next_batch, head.number + 1)
        stop = min(at + head.size_bytes, self._limit)
        made = self._redo.cursors_made
        reached = self._apply(at + BATCH_RECORD_BYTES, stop, head.number & U32_MASK)
        if reached < stop:
            if not self._was_durable(at, head):
                self.torn = head
                return reached
            while reached < stop:
                reached = self._pass_record(reached, stop, head.number & U32_MASK)
                reached = self._apply(reached, stop, head.number & U32_MASK)
            if reached < at + head.size_bytes and self._footer is None:
                self._tail_hidden = True
        if reached == at + head.size_bytes:
            state.last_batch = head.number
            state.next_ledger_id = max(state.next_ledger_id, head.next_ledger_id)
            state.next_cursor_id = max(state.next_cursor_id, head.next_cursor_id)
            if not self._entries_only:
                self.assessment.batch_ended(head.next_cursor_id, self._redo.cursors_made - made)
        return reached

    def _was_durable(self, at: int, head: BatchHead) -> bool:
        if self._entries_only or self._footer is not None or self._follows is not None:
            return True
        end = at + head.size_bytes
        if self._flush_position[0] == self._segment and end <= self._flush_position[1]:
            return True
        before, self._state.last_batch = self._state.last_batch, head.number - 1
        try:
            return self._head_after(end) is not None
        finally:
            self._state.last_batch = before

    # Records --------------------------------------------------------------------------------

    def _apply(self, at: int, stop: int, owner: int) -> int:
        """Apply records up to the first that is not sound; returns where it is."""
        data = self._data
        topics, records, segment = self._state.topics, self._redo, self._segment
        prefix, entry = PREFIX.unpack_from, ENTRY.unpack_from
        holed, only = self._holed, self._entries_only
        count = 0
        while at + PREFIX_BYTES <= stop:
            crc, size, kind, version, _, batch = prefix(data, at)
            end = at + PREFIX_BYTES + size
            if batch != owner or end > stop or crc32c(data[at + CRC_END : end]) != crc:
                break
            if version != RECORD_VERSION:
                raise CorruptionError(
                    f"{records.place(at)}: a record of version {version}; this release reads "
                    f"{RECORD_VERSION}"
                )
            if kind == KIND_ENTRY:
                _, _, _, _, _, _, number, messages, ordinal, received, lag = entry(data, at)
                topic = topics.get(number)
                if (
                    topic is None
                    or ordinal != topic.staged_end
                    or (holed and topic.segment != segment)
                ):
                    topic = records.misfit(number, ordinal, at)
                if topic is not None:
                    if holed:
                        self.assessment.is_complete(number)
                    topic.append(messages, size - ENTRY_FIXED_BYTES, received, lag, at)
                    topic.end = topic.staged_end
                else:
                    size_bytes = size - ENTRY_FIXED_BYTES
                    self._state.orphans.add(self._segment, number, 1, size_bytes)
            elif kind == KIND_RUN:
                records.run(data[at + PREFIX_BYTES : end], at)
            elif not only:
                records.control(kind, data[at + PREFIX_BYTES : end], at)
            at = end
            count += 1
        if not only:
            self._state.replayed_records += count
        return at

    def _pass_record(self, at: int, stop: int, owner: int) -> int:
        """Pass one damaged record of a durable batch; returns where the next one begins."""
        if self._correction_tries < CORRECTION_TRIES_MAX:
            self._correction_tries += 1
            whole = corrected_record(self._data, at, stop, owner)
            if whole is not None:
                return self._apply_corrected(whole, at, owner)
        indexed = self._indexed().get(at)
        if indexed is not None:
            self._append_indexed(indexed)
            return at + ENTRY_HEAD_BYTES + indexed.size_bytes
        end = self._legible_end(at, stop, owner)
        if end:
            if not self._lose_entry(at, end):
                self._hide(at, end, stop=stop)
            return end
        end = min((o for o in self._indexed() if at < o < stop), default=stop)
        self._hide(at, end, stop=stop)
        return end

    def _apply_corrected(self, whole: bytes, at: int, owner: int) -> int:
        end = at + len(whole)
        _, _, kind, _, _, _ = PREFIX.unpack_from(whole)
        if kind != KIND_ENTRY:  # an entry is known by it, and still cannot be read
            self._note_corrected(at)
        data = self._data
        self._data = data[:at] + whole + data[end:]
        self._apply(at, end, owner)
        self._data = data
        if kind == KIND_ENTRY:
            _, _, _, _, _, _, number, _, ordinal, _, _ = ENTRY.unpack_from(whole)
            if number in self._state.topics:
                self._redo.lost_entry(number, ordinal, at)
                self.damaged_places.append(self._redo.place(at, end))
        return end

    def _legible_end(self, at: int, stop: int, owner: int) -> int:
        """Where a damaged record ends, if what it says of that fits what follows; else 0."""
        if at + PREFIX_BYTES > stop:
            return 0
        _, size, kind, version, _, batch = PREFIX.unpack_from(self._data, at)
        end = at + PREFIX_BYTES + size
        if batch != owner or version != RECORD_VERSION or kind not in KINDS or end > stop:
            return 0
        return end if end == stop or self._is_sound(end, stop, owner) else 0

    def _is_sound(self, at: int, stop: int, owner: int) -> bool:
        if at + PREFIX_BYTES > stop:
            return False
        crc, size, _, _, _, batch = PREFIX.unpack_from(self._data, at)
        end = at + PREFIX_BYTES + size
        return bool(
            batch == owner and end <= stop and crc32c(self._data[at + CRC_END : end]) == crc
        )

    def _lose_entry(self, at: int, end: int) -> bool:
        """Index a damaged entry whose head fits its topic; False when it is something else."""
        _, size, kind, _, _, _ = PREFIX.unpack_from(self._data, at)
        if kind != KIND_ENTRY or size < ENTRY_FIXED_BYTES:
            return False
        _, _, _, _, _, _, number, messages, ordinal, received, lag = ENTRY.unpack_from(
            self._data, at
        )
        topic = self._state.topics.get(number)
        if topic is None or (ordinal, self._segment) != (topic.staged_end, topic.segment):
            return False
        topic.append(messages, size - ENTRY_FIXED_BYTES, received, lag, at)
        topic.end = topic.staged_end
        self.assessment.is_complete(number)
        self._redo.lost_entry(number, ordinal, at)
        self.damaged_places.append(self._redo.place(at, end))
        return True

    # Holes ----------------------------------------------------------------------------------

    def _hide(self, at: int, end: int, place: str = "", *, stop: int = 0) -> None:
        """Nobody knows what lay here, but for the entries that the footer says. Within a batch
        that ends at ``stop``, a RUN may have been last, and so the ledger of what follows."""
        if self._entries_only:
            return
        self._holed = True
        known = not place and self._footer is not None
        place = place or f"{self._redo.place(at, end)} is damaged"
        self.damaged_places.append(place)
        self.assessment.hidden(place, entries=not known)
        if end + ENTRY_HEAD_BYTES <= stop and self._data[end + 8] == KIND_ENTRY:
            number, _, ordinal = ENTRY.unpack_from(self._data, end)[6:9]
            self._doubt(number, ordinal, place)
        for offset in sorted(o for o in self._indexed() if at <= o < min(end + 1, stop or end)):
            found = self._indexed()[offset]
            topic = self._state.topics.get(found.topic)
            self._doubt(found.topic, found.ordinal, place)
            if offset < end and (topic is None or found.ordinal >= topic.staged_end):
                self._append_indexed(found)

    def _doubt(self, number: int, ordinal: int, place: str) -> None:
        what = f"{place}: what belongs before entry {ordinal} may be lost"
        self.assessment.doubts.setdefault(number, what)

    def _append_indexed(self, found: FooterEntry) -> None:
        """Index an entry as the footer has it, sound or not."""
        at, end = found.offset, found.offset + ENTRY_HEAD_BYTES + found.size_bytes
        topic = self._redo.misfit(found.topic, found.ordinal, at)
        if topic is None:
            return
        topic.append(found.messages, found.size_bytes, found.received_ms, found.lag_ms, at)
        topic.end = topic.staged_end
        (crc,) = PREFIX.unpack_from(self._data, at)[:1]
        if crc32c(self._data[at + CRC_END : end]) != crc:
            self._redo.lost_entry(found.topic, found.ordinal, at)
            self.damaged_places.append(self._redo.place(at, end))

    def _indexed(self) -> dict[int, FooterEntry]:
        """The entries of known topics that the footer knows, by offset."""
        if self._places is None:
            self._places = {} if self._footer is None else self._footer.entries()
        return self._places

    def _note_corrected(self, at: int) -> None:
        self.corrected.append(f"{segment_name(self._segment)} offset {at}")
