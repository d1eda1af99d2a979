"""Walks the records of one segment file, sound or damaged, without any state of the log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CRC_END,
    ENTRY,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_ACCEPT,
    KIND_ACKS,
    KIND_BATCH,
    KIND_CREATE,
    KIND_DELETE,
    KIND_ENTRY,
    KIND_PROPERTIES,
    KIND_RUN,
    KIND_SEQUENCES,
    KIND_TRIM,
    KINDS,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    SEGMENT_HEADER_BYTES,
    U32_MASK,
    crc32c,
    has_bytes,
    segment_stamp,
)
from headgate.ledger.recovery.bit_correction import (
    corrected_batch_record,
    corrected_header,
    corrected_record,
)
from headgate.ledger.recovery.replay import CORRECTION_TRIES_MAX

_NAMES: Final = {
    KIND_RUN: "the start of a run of messages",
    KIND_ENTRY: "a message",
    KIND_TRIM: "a trim",
    KIND_CREATE: "the creation of a subscription",
    KIND_DELETE: "the deletion of a subscription",
    KIND_ACKS: "acknowledgements",
    KIND_ACCEPT: "an accepted loss",
    KIND_SEQUENCES: "the begin or end of deduplication",
    KIND_PROPERTIES: "the properties of a subscription",
}

CUT_BATCH: Final = "the rest of a batch is missing: the file was cut short"
"""What is wrong with a piece of no bytes, at which a file ends too early."""
UNREADABLE: Final = 0
"""The kind of a piece whose records are unknown."""


class IndexedEntry(NamedTuple):
    """An entry as the segment's footer lists it."""

    topic: int
    ordinal: int
    end: int
    """Offset behind its record."""


class Head(NamedTuple):
    """The fields of a BATCH record."""

    number: int
    previous: int
    next_ledger_id: int
    next_cursor_id: int
    segment: int
    stamp: int
    records: int
    size_bytes: int

    @property
    def is_rewritten(self) -> bool:
        """Whether it is the head of a rewritten segment."""
        return self.next_ledger_id == 0

    @property
    def owner(self) -> int | None:
        """What records of the batch have as its number; None if they may have any."""
        return None if self.is_rewritten else self.number & U32_MASK


class Piece(NamedTuple):
    """One record of a segment, or a range between records that are readable."""

    offset: int
    end: int
    kind: int
    what: str = ""
    """How it is damaged; empty if it is sound."""
    is_corrected: bool = False
    """One bit is wrong, and a start reads the record as it was."""
    is_followed: bool = False
    """Of a damaged piece: a batch follows in the segment, so these bytes were durable."""
    batch_end: int = 0
    """Offset behind its batch; the end of the piece if that is unknown."""
    head: Head | None = None
    """Of a BATCH record."""
    entry: tuple[int, int] | None = None
    """Topic number and ordinal of an entry, also of a damaged one if its head or the footer tells
    them."""
    is_outside: bool = False
    """Outside of all batches with a readable head."""
    is_in_gap: bool = False
    """An entry that the footer lists, with no readable record around it."""
    is_indexed: bool = False
    """Of a damaged entry: the footer tells which one it is."""
    payload: bytes = b""
    """Of a readable record of any kind but BATCH and ENTRY."""
    corrected: bytes = b""
    """The whole record as it was before one bit of it turned."""

    @property
    def is_sound(self) -> bool:
        """Whether the stored bytes are as they were written."""
        return not self.what


class Walk:
    """The pieces of one segment, in the order of their offsets."""

    def __init__(
        self, data: bytes, segment: int, stop: int, index: Mapping[int, IndexedEntry]
    ) -> None:
        """``stop`` is the end of the records, or of the file if that is unknown. ``index`` has the
        entries of the footer by offset; it is empty without one."""
        self._data = data
        self._segment = segment
        self._stop = stop
        self._index = index
        self._offsets: Sequence[int] = sorted(index)
        self._tries = 0
        stamp = segment_stamp(data, segment)
        self.is_header_sound = stamp is not None
        self.is_header_corrected = False
        self.corrected_header = b""
        """The header as it was, if one bit of it is wrong."""
        if stamp is None:
            corrected = corrected_header(data, segment)
            head = self._head_at(SEGMENT_HEADER_BYTES)
            if corrected is not None:
                stamp = segment_stamp(corrected, segment)
                self.corrected_header = corrected
            elif head is not None and head.segment == segment:
                stamp = head.stamp
            self.is_header_corrected = stamp is not None
        self._stamp = stamp

    def pieces(self) -> Iterator[Piece]:
        """All pieces up to ``stop``. Zeros at the end are left out."""
        at = SEGMENT_HEADER_BYTES
        last: int | None = None
        while at < self._stop:
            head, corrected = self._continuing(at, last)
            if head is None:
                found = self._next_head(at, -1 if last is None else last)
                end = self._stop if found is None else found[0]
                if found is None and not self._offsets and not has_bytes(self._data, at, end):
                    return
                for piece in self._unreadable(at, end, end, is_followed=found is not None):
                    yield piece._replace(is_outside=True)
                at, last = end, None if found is None else found[1].previous
                continue
            last = head.number
            stop = at + BATCH_RECORD_BYTES
            yield Piece(
                at, stop, KIND_BATCH, "one wrong bit in the head of a batch" if corrected else "",
                bool(corrected), False, at + head.size_bytes, head, corrected=corrected,
            )  # fmt: skip
            end = min(at + head.size_bytes, self._stop)
            yield from self._records(stop, end, head.owner)
            if at + head.size_bytes > end:
                yield Piece(end, end, UNREADABLE, CUT_BATCH, batch_end=at + head.size_bytes)
            at = end

    # Batches ---------------------------------------------------------------------------------

    def _head_at(self, at: int) -> Head | None:
        end = at + BATCH_RECORD_BYTES
        record = self._data[at:end]
        return _head_of(record) if at >= 0 and len(record) == BATCH_RECORD_BYTES else None

    def _is_ours(self, head: Head) -> bool:
        return (head.segment, head.stamp) == (self._segment, self._stamp)

    def _continuing(self, at: int, last: int | None) -> tuple[Head | None, bytes]:
        """The head at an offset if it continues the chain, and its record as it was if one bit of
        it is wrong."""
        head, corrected = self._head_at(at), b""
        if head is None:
            corrected = corrected_batch_record(self._data, at) or b""
            head = _head_of(corrected) if corrected else None
        if head is None or not self._is_ours(head) or head.number <= head.previous:
            return None, b""
        return (head, corrected) if last in (None, head.previous) else (None, b"")

    def _next_head(self, at: int, last: int) -> tuple[int, Head] | None:
        """The next head behind an offset that a client cannot have made."""
        found = self._data.find(BATCH_MAGIC, at + 1, self._stop)
        while found >= 0:
            head = self._head_at(found - PREFIX_BYTES)
            is_later = found - PREFIX_BYTES > at
            if head is not None and is_later and self._is_ours(head) and head.previous > last:
                return found - PREFIX_BYTES, head
            found = self._data.find(BATCH_MAGIC, found + 1, self._stop)
        return None

    # Records ---------------------------------------------------------------------------------

    def _records(self, at: int, stop: int, owner: int | None) -> Iterator[Piece]:
        data = self._data
        is_followed: bool | None = None
        while at < stop:
            if at + PREFIX_BYTES <= stop:
                crc, size, kind, version, _, batch = PREFIX.unpack_from(data, at)
                end = at + PREFIX_BYTES + size
                is_known = version == RECORD_VERSION and kind in KINDS
                is_known = is_known and batch == (batch if owner is None else owner)
                if is_known and end <= stop and crc32c(data[at + CRC_END : end]) == crc:
                    entry = self._entry_at(at, kind)
                    payload = b"" if entry else data[at + PREFIX_BYTES : end]
                    yield Piece(at, end, kind, batch_end=stop, entry=entry, payload=payload)
                    at = end
                    continue
            if is_followed is None:
                is_followed = self._next_head(stop - 1, -1) is not None
            for piece in self._damaged(at, stop, owner, is_followed=is_followed):
                yield piece
                at = piece.end

    def _damaged(
        self, at: int, stop: int, owner: int | None, *, is_followed: bool
    ) -> Iterator[Piece]:
        """The pieces from a damaged record up to where reading can continue."""
        data = self._data
        if self._tries < CORRECTION_TRIES_MAX:
            self._tries += 1
            whole = corrected_record(data, at, stop, owner)
            if whole is not None:
                _, size, kind, _, _, _ = PREFIX.unpack_from(whole)
                end = at + PREFIX_BYTES + size
                entry = ENTRY.unpack_from(whole)[6:9:2] if kind == KIND_ENTRY else None
                payload = b"" if entry else whole[PREFIX_BYTES:]
                what = f"one wrong bit in {_NAMES[kind]}"
                yield Piece(
                    at, end, kind, what, True, is_followed, stop,
                    entry=entry, payload=payload, corrected=whole,
                )  # fmt: skip
                return
        indexed = self._index.get(at)
        if indexed is not None:
            yield self._indexed_piece(at, indexed, stop, is_followed=is_followed)
            return
        end = self._plausible_end(at, stop, owner)
        if end:
            kind = data[at + 8]
            entry = self._entry_at(at, kind) if end - at >= ENTRY_HEAD_BYTES else None
            what = f"{_NAMES[kind]} has a wrong checksum"
            yield Piece(at, end, kind, what, False, is_followed, stop, entry=entry)
            return
        offsets = self._offsets
        place = bisect_right(offsets, at)
        end = min(offsets[place], stop) if place < len(offsets) else stop
        yield from self._unreadable(at, end, stop, is_followed=is_followed)

    def _plausible_end(self, at: int, stop: int, owner: int | None) -> int:
        """The end of a damaged record if a sound one follows at the length that it says; else 0."""
        if at + PREFIX_BYTES > stop:
            return 0
        _, size, kind, version, _, batch = PREFIX.unpack_from(self._data, at)
        end = at + PREFIX_BYTES + size
        if batch != (batch if owner is None else owner) or end > stop:
            return 0
        if version != RECORD_VERSION or kind not in KINDS:
            return 0
        if end == stop:
            return int(end)
        if end + PREFIX_BYTES > stop:
            return 0
        crc, size, _, _, _, batch = PREFIX.unpack_from(self._data, end)
        after = end + PREFIX_BYTES + size
        is_sound = after <= stop and crc32c(self._data[end + CRC_END : after]) == crc
        is_owned = owner is None or batch == owner
        return int(end) if is_owned and is_sound else 0

    def _entry_at(self, at: int, kind: int) -> tuple[int, int] | None:
        if kind != KIND_ENTRY or at + ENTRY_HEAD_BYTES > len(self._data):
            return None
        return ENTRY.unpack_from(self._data, at)[6:9:2]

    # Ranges without readable records ---------------------------------------------------------

    def _unreadable(
        self, at: int, end: int, batch_end: int, *, is_followed: bool
    ) -> Iterator[Piece]:
        """A range without a chain of records; entries that the footer lists there are read."""
        offsets = self._offsets
        for place in range(bisect_left(offsets, at), bisect_left(offsets, end)):
            offset = offsets[place]
            if offset < at:
                continue
            if offset > at:
                yield self._gap(at, offset, batch_end, is_followed=is_followed)
            indexed = self._index[offset]
            piece = self._indexed_piece(offset, indexed, batch_end, is_followed=is_followed)
            yield piece._replace(is_in_gap=True)
            at = max(at, indexed.end)
        if at < end:
            yield self._gap(at, end, batch_end, is_followed=is_followed)

    def _gap(self, at: int, end: int, batch_end: int, *, is_followed: bool) -> Piece:
        what = "no readable record"
        return Piece(at, end, UNREADABLE, what, False, is_followed, max(batch_end, end))

    def _indexed_piece(
        self, at: int, indexed: IndexedEntry, batch_end: int, *, is_followed: bool
    ) -> Piece:
        """An entry that the footer lists at an offset, sound or damaged."""
        record = self._data[at : indexed.end]
        crc, size, kind, version, _, _ = PREFIX.unpack_from(record.ljust(PREFIX_BYTES, b"\0"))
        is_sound = (
            (kind, version, size) == (KIND_ENTRY, RECORD_VERSION, len(record) - PREFIX_BYTES)
            and crc == crc32c(record[CRC_END:])
            and size >= ENTRY_FIXED_BYTES
        )
        what = "" if is_sound else f"{_NAMES[KIND_ENTRY]} has a wrong checksum"
        entry = self._entry_at(at, KIND_ENTRY) if is_sound else (indexed.topic, indexed.ordinal)
        return Piece(
            at, indexed.end, KIND_ENTRY, what, False, is_followed, batch_end,
            entry=entry, is_indexed=not is_sound,
        )  # fmt: skip


def _head_of(record: bytes) -> Head | None:
    """The fields of a whole BATCH record; None if it is not sound."""
    crc, size, kind, _, _, _ = PREFIX.unpack_from(record)
    if kind != KIND_BATCH or size != BATCH.size or crc32c(record[CRC_END:]) != crc:
        return None
    magic, *fields = BATCH.unpack_from(record, PREFIX_BYTES)
    return Head(*fields) if magic == BATCH_MAGIC else None
