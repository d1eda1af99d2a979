"""Replays the records of segments, and distinguishes a torn tail from damage.

The log writes a batch only when the one before it is durable, and every BATCH record names that one
(see headgate.ledger.format.records). So bytes that break this chain are damage if a later batch, a
footer or the flush position shows that they were durable. Otherwise they are the torn tail.

Replay skips damage in four steps, and takes the first that works:

1. A record with one flipped bit is corrected (bit_correction.py).
2. The footer tells which entry lay there.
3. If the record's length fits the record behind it, only this record is lost.
4. Else the range up to the next known record is unreadable: each topic and cursor may have lost
   something in it (loss_assessment.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection

from headgate.base.errors import CorruptionError
from headgate.ledger.format.records import (
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CRC_END,
    ENTRY,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_ENTRY,
    KIND_RUN,
    KINDS,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    SEGMENT_HEADER_BYTES,
    crc32c,
    segment_name,
    segment_stamp,
)
from headgate.ledger.index.footer import Footer, FooterEntry
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.batch_head import BatchHead, batch_head, corrected_head, first_head
from headgate.ledger.recovery.bit_correction import corrected_header, corrected_record
from headgate.ledger.recovery.index_rows import IndexRow
from headgate.ledger.recovery.loss_assessment import Doubt, LossAssessment
from headgate.ledger.recovery.redo import Redo

SequenceOf = Callable[[bytes], tuple[str, int, int] | None]
"""The producer's name and the first and last sequence id in an entry; None if it has none."""


def no_sequence(_: bytes) -> tuple[str, int, int] | None:
    """Entries have no sequence ids that count."""
    return None


CORRECTION_TRIES_MAX = 1_000
"""Records that one start tries to correct. A try takes about a millisecond, and damage of more
records has another cause than single bits."""


class Replay:
    """Applies segments, in order, to a :class:`LogState`."""

    def __init__(
        self,
        state: LogState,
        topic_numbers: Collection[int],
        *,
        flush_position: tuple[int, int] = (0, 0),
        without_checkpoint: bool = False,
        sequence_of: SequenceOf = no_sequence,
    ) -> None:
        """``flush_position`` is a segment, and the offset in it up to which the log was durable.
        ``without_checkpoint``: the state starts empty, and older segments were deleted.
        ``sequence_of`` as in :meth:`headgate.ledger.CommitLog.open`."""
        self._state = state
        known = self._known = frozenset(topic_numbers)
        self.assessment = LossAssessment(state, known)
        self._redo = Redo(state, known, self.assessment)
        self._redo.without_checkpoint = without_checkpoint
        self._flush_position = flush_position
        self._sequence_of = sequence_of
        self._follows: int | None = None
        """The argument of :meth:`segment`."""
        self.torn: BatchHead | None = None
        """The batch that the torn tail of the last segment cuts; None if it is unknown."""
        self.corrected: list[str] = []
        """Places where one flipped bit was corrected."""
        self.damaged_places: list[str] = []
        """Places where something was lost."""
        self._is_index_only = False
        self._data = b""
        self._segment = 0
        self._limit = 0
        self._stamp: int | None = None
        self._footer: Footer | None = None
        self._footer_entries: dict[int, FooterEntry] | None = None
        self._footer_offsets: list[int] = []
        """Its entries' offsets, in order."""
        self._has_unreadable = False
        self._correction_tries = 0
        self._tail_unreadable = False
        """The end of the segment before is already noted as lost."""

    @property
    def trims(self) -> dict[int, int]:
        """The highest TRIM seen of each known topic."""
        return self._redo.trims

    def index_only(self, data: bytes, segment: int) -> tuple[int, list[IndexRow]]:
        """The index of a segment before the checkpoint, rebuilt from its records.

        Returns the offset behind the last record, and the rows.
        """
        apart = Replay(LogState(), self._known, without_checkpoint=True)
        apart._correction_tries = self._correction_tries
        end = apart._index(data, segment)
        self._correction_tries = apart._correction_tries
        state, own = self._state, apart._state
        state.next_batch = max(state.next_batch, own.next_batch)
        state.next_ledger_id = max(state.next_ledger_id, own.next_ledger_id)
        state.orphans.include(own.orphans)
        self.corrected += apart.corrected
        self.damaged_places += apart.damaged_places
        doubts = apart.assessment.doubts
        self.assessment.losses += apart.assessment.losses
        for number, found in doubts.items():
            topic = state.topics.get(number)
            if topic is None or own.topics[number].end > topic.first:  # else all is released
                for doubt in found:
                    self.assessment.note_doubt(number, doubt._replace(is_repeated=True))
        rows = [
            IndexRow(n, topic.base, segment, topic.columns(topic.base, topic.end), n not in doubts)
            for n, topic in own.topics.items()
            if topic.base < topic.end
        ]
        return end, rows

    def _index(self, data: bytes, segment: int) -> int:
        self._is_index_only = True
        head = first_head(data, segment)
        self._state.last_batch = 0 if head is None else head.previous
        return self.segment(data, segment, len(data))

    def segment(
        self,
        data: bytes,
        segment: int,
        limit: int,
        footer: Footer | None = None,
        *,
        follows: int | None = None,
    ) -> int:
        """Apply the records of a segment up to ``limit``; returns the offset behind the last one.

        A ``footer`` shows that everything up to ``limit`` was durable. ``follows`` is the number
        of the batch before the next segment's first one: 0 if that is unreadable, None if no
        later segment has a batch. Raises :class:`CorruptionError` for a record of another version
        or kind than this release writes.
        """
        self._data, self._segment, self._limit = data, segment, limit
        self._footer, self._footer_entries, self._follows = footer, None, follows
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
            at = self._skip_batches(at, following)
        in_segment, end = self._flush_position
        if in_segment == segment and at < end and footer is None and not self._tail_unreadable:
            self._note_unreadable(at, end)  # the file was cut short
            self._tail_unreadable = True
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
        """The head at an offset, if it continues the chain of batches; None otherwise."""
        last = self._state.last_batch
        head = batch_head(self._data, at)
        if head is None:
            head = corrected_head(self._data, at)
            if not self._is_of_segment(head) or head is None or head.previous != last:
                return None
            self._note_corrected(at)
        if not self._is_of_segment(head) or head.number <= head.previous:
            return None
        # A crash may leave segments beside the one that replaces them.
        if (head.number if head.is_rewritten else head.previous) < last:
            return None
        if head.previous > last:
            # Only at the beginning of a segment: batches at the end of the one before are lost.
            if not self._tail_unreadable:
                self._note_unreadable(at, at, f"before {self._redo.place(at)}")
            self._state.last_batch = head.previous
        self._tail_unreadable = False
        return head

    def _is_of_segment(self, head: BatchHead | None) -> bool:
        return head is not None and (head.segment, head.stamp) == (self._segment, self._stamp)

    def _head_after(self, at: int) -> tuple[int, BatchHead] | None:
        """The next head from an offset on, with its offset: it proves that what lies before it was
        durable. A message cannot forge one, because no client knows the segment's stamp."""
        found = self._data.find(BATCH_MAGIC, at, self._limit)
        while found >= 0:
            head = batch_head(self._data, found - PREFIX_BYTES)
            if (
                head is not None
                and self._is_of_segment(head)
                and head.previous > self._state.last_batch
            ):
                return found - PREFIX_BYTES, head
            found = self._data.find(BATCH_MAGIC, found + 1, self._limit)
        return None

    def _was_more(self, at: int) -> bool:
        """Whether bytes behind an offset were durable, although no head follows there."""
        if self._is_index_only:
            return False
        if self._footer is not None or (self._follows or 0) > self._state.last_batch:
            return True
        segment, offset = self._flush_position
        return segment == self._segment and at < offset

    def _skip_batches(self, at: int, following: tuple[int, BatchHead] | None) -> int:
        """Skip the damaged bytes before the next head; returns the offset to continue from."""
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
        self._note_unreadable(at, end)
        if following is None:
            # The first batch of the next segment tells how many batches were here.
            self._limit = end
            self._tail_unreadable = True
        return end

    def _batch(self, at: int, head: BatchHead) -> int:
        """Apply the records of a batch; returns the offset behind the last sound one, which is the
        end of the batch if it was durable."""
        state = self._state
        state.next_batch = max(state.next_batch, head.number + 1)
        stop = min(at + head.size_bytes, self._limit)
        made = self._redo.cursors_made
        owner = head.owner
        if head.is_rewritten and not self._is_index_only:
            place = f"{segment_name(self._segment)} is rewritten"
            self.assessment.note_unreadable(place, entries=False)
        reached = self._apply(at + BATCH_RECORD_BYTES, stop, owner)
        if reached < stop:
            if not self._was_durable(at, head):
                self.torn = head
                return reached
            while reached < stop:
                reached = self._skip_record(reached, stop, owner)
                reached = self._apply(reached, stop, owner)
            if reached < at + head.size_bytes and self._footer is None:
                self._tail_unreadable = True
        if reached == at + head.size_bytes:
            state.last_batch = head.number
            state.next_ledger_id = max(state.next_ledger_id, head.next_ledger_id)
            state.next_cursor_id = max(state.next_cursor_id, head.next_cursor_id)
            if not (self._is_index_only or head.is_rewritten):
                self.assessment.batch_ended(head.next_cursor_id, self._redo.cursors_made - made)
        return reached

    def _was_durable(self, at: int, head: BatchHead) -> bool:
        if self._is_index_only or self._footer is not None or self._follows is not None:
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

    def _apply(self, at: int, stop: int, owner: int | None) -> int:
        """Apply records up to the first damaged one; returns its offset, or ``stop``. Records of a
        rewritten segment have any ``owner``: None."""
        data = self._data
        topics, records, segment = self._state.topics, self._redo, self._segment
        prefix, entry = PREFIX.unpack_from, ENTRY.unpack_from
        has_unreadable, only = self._has_unreadable, self._is_index_only
        count = 0
        while at + PREFIX_BYTES <= stop:
            crc, size, kind, version, _, batch = prefix(data, at)
            end = at + PREFIX_BYTES + size
            if batch != owner and owner is not None:
                break
            if end > stop or crc32c(data[at + CRC_END : end]) != crc:
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
                    or (has_unreadable and topic.segment != segment)
                ):
                    topic = records.entry_out_of_sequence(number, ordinal, at)
                if topic is not None:
                    if has_unreadable:
                        self.assessment.topic_is_complete(number)
                    topic.append(messages, size - ENTRY_FIXED_BYTES, received, lag, at)
                    topic.end = topic.staged_end
                    if topic.sequences is not None:
                        sequence = self._sequence_of(data[at + ENTRY_HEAD_BYTES : end])
                        if sequence is not None:
                            topic.sequences.store(sequence[0], sequence[2])
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

    def _skip_record(self, at: int, stop: int, owner: int | None) -> int:
        """Skip one damaged record of a durable batch; returns the offset of the next one."""
        if self._correction_tries < CORRECTION_TRIES_MAX:
            self._correction_tries += 1
            whole = corrected_record(self._data, at, stop, owner)
            if whole is not None:
                return self._apply_corrected(whole, at, owner)
        indexed = self._entries_in_footer().get(at)
        if indexed is not None:
            self._append_indexed(indexed)
            return at + ENTRY_HEAD_BYTES + indexed.size_bytes
        end = self._plausible_end(at, stop, owner)
        if end:
            if not self._index_damaged_entry(at, end):
                self._note_unreadable(at, end, stop=stop)
            return end
        end = self._next_in_footer(at, stop)
        self._note_unreadable(at, end, stop=stop)
        return end

    def _apply_corrected(self, whole: bytes, at: int, owner: int | None) -> int:
        end = at + len(whole)
        _, _, kind, _, _, _ = PREFIX.unpack_from(whole)
        if kind != KIND_ENTRY:  # an entry is indexed, but its stored bytes stay damaged
            self._note_corrected(at)
        data = self._data
        self._data = data[:at] + whole + data[end:]
        self._apply(at, end, owner)
        self._data = data
        if kind == KIND_ENTRY:
            _, _, _, _, _, _, number, _, ordinal, _, _ = ENTRY.unpack_from(whole)
            if number in self._state.topics:
                self._redo.note_damaged_entry(number, ordinal, at)
                self.damaged_places.append(self._redo.place(at, end))
        return end

    def _plausible_end(self, at: int, stop: int, owner: int | None) -> int:
        """The end of a damaged record, if a sound record follows at the length that it says; else
        0."""
        if at + PREFIX_BYTES > stop:
            return 0
        _, size, kind, version, _, batch = PREFIX.unpack_from(self._data, at)
        end = at + PREFIX_BYTES + size
        if batch != owner and owner is not None:
            return 0
        if version != RECORD_VERSION or kind not in KINDS or end > stop:
            return 0
        return end if end == stop or self._is_sound(end, stop, owner) else 0

    def _is_sound(self, at: int, stop: int, owner: int | None) -> bool:
        if at + PREFIX_BYTES > stop:
            return False
        crc, size, _, _, _, batch = PREFIX.unpack_from(self._data, at)
        end = at + PREFIX_BYTES + size
        if batch != owner and owner is not None:
            return False
        return bool(end <= stop and crc32c(self._data[at + CRC_END : end]) == crc)

    def _index_damaged_entry(self, at: int, end: int) -> bool:
        """Index a damaged entry that continues its topic; False if the record is anything else."""
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
        self.assessment.topic_is_complete(number)
        self._redo.note_damaged_entry(number, ordinal, at)
        self.damaged_places.append(self._redo.place(at, end))
        return True

    # Unreadable ranges ----------------------------------------------------------------------

    def _note_unreadable(self, at: int, end: int, place: str = "", *, stop: int = 0) -> None:
        """Note that the records from ``at`` to ``end`` are lost; entries that the footer lists are
        indexed. Within a batch that ends at ``stop``, the last of them may have been the RUN of the
        record that follows, which names its ledger."""
        if self._is_index_only:
            return
        self._has_unreadable = True
        known = not place and self._footer is not None
        place = place or f"{self._redo.place(at, end)} is damaged"
        self.damaged_places.append(place)
        self.assessment.note_unreadable(place, entries=not known)
        if end + ENTRY_HEAD_BYTES <= stop and self._data[end + 8] == KIND_ENTRY:
            number, _, ordinal = ENTRY.unpack_from(self._data, end)[6:9]
            self._note_doubt(number, ordinal, place)
        for offset in self._offsets_in_footer(at, min(end + 1, stop or end)):
            found = self._entries_in_footer()[offset]
            topic = self._state.topics.get(found.topic)
            self._note_doubt(found.topic, found.ordinal, place)
            if offset < end and (topic is None or found.ordinal >= topic.staged_end):
                self._append_indexed(found)

    def _note_doubt(self, number: int, ordinal: int, place: str) -> None:
        what = f"{place}: what belongs before entry {ordinal} may be lost"
        self.assessment.note_doubt(number, Doubt(what))

    def _append_indexed(self, found: FooterEntry) -> None:
        """Index an entry by its footer, whether or not its record is sound."""
        at, end = found.offset, found.offset + ENTRY_HEAD_BYTES + found.size_bytes
        topic = self._redo.entry_out_of_sequence(found.topic, found.ordinal, at)
        if topic is None:
            return
        topic.append(found.messages, found.size_bytes, found.received_ms, found.lag_ms, at)
        topic.end = topic.staged_end
        (crc,) = PREFIX.unpack_from(self._data, at)[:1]
        if crc32c(self._data[at + CRC_END : end]) != crc:
            self._redo.note_damaged_entry(found.topic, found.ordinal, at)
            self.damaged_places.append(self._redo.place(at, end))

    def _entries_in_footer(self) -> dict[int, FooterEntry]:
        """The entries that the segment's footer lists, by offset; none without a footer."""
        if self._footer_entries is None:
            self._footer_entries = {} if self._footer is None else self._footer.entries()
            self._footer_offsets = sorted(self._footer_entries)
        return self._footer_entries

    def _next_in_footer(self, at: int, stop: int) -> int:
        """Where the next entry behind ``at`` that the footer lists begins, or ``stop``."""
        self._entries_in_footer()
        offsets = self._footer_offsets
        place = bisect_right(offsets, at)
        return min(offsets[place], stop) if place < len(offsets) else stop

    def _offsets_in_footer(self, begin: int, end: int) -> list[int]:
        """Where the entries that the footer lists begin, from ``begin`` to before ``end``."""
        self._entries_in_footer()
        offsets = self._footer_offsets
        return offsets[bisect_left(offsets, begin) : bisect_left(offsets, end)]

    def _note_corrected(self, at: int) -> None:
        self.corrected.append(f"{segment_name(self._segment)} offset {at}")
