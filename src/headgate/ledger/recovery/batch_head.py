"""The BATCH record at the head of a batch, as recovery reads it."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.fs.api import Fs
from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CRC_END,
    KIND_BATCH,
    PREFIX,
    PREFIX_BYTES,
    SEGMENT_HEADER_BYTES,
    U32_MASK,
    crc32c,
)
from headgate.ledger.recovery.bit_correction import corrected_batch_record


@dataclass(frozen=True, slots=True)
class BatchHead:
    """The fields of a BATCH record."""

    number: int
    previous: int
    """Number of the batch before it in the log."""
    next_ledger_id: int
    next_cursor_id: int
    segment: int
    stamp: int
    records: int
    size_bytes: int
    """Bytes of the whole batch, this record included."""

    @property
    def is_rewritten(self) -> bool:
        """Whether it is the head of a rewritten segment."""
        return self.next_ledger_id == 0

    @property
    def owner(self) -> int | None:
        """What records of the batch have as its number; None if they may have any."""
        return None if self.is_rewritten else self.number & U32_MASK


def read_beginning(fs: Fs, directory: str, name: str) -> bytes:
    """The beginning of a segment file, for :func:`first_head`. Raises :class:`OSError`."""
    file = fs.open(f"{directory}/{name}")
    try:
        return file.read_at(0, SEGMENT_HEADER_BYTES + BATCH_RECORD_BYTES)
    finally:
        file.close()


def batch_head(data: bytes, at: int) -> BatchHead | None:
    """The BATCH record at an offset; None unless its checksum is right."""
    end = at + BATCH_RECORD_BYTES
    if at < 0 or end > len(data) or data[at + PREFIX_BYTES : at + PREFIX_BYTES + 8] != BATCH_MAGIC:
        return None
    crc, size, kind, _, _, _ = PREFIX.unpack_from(data, at)
    if kind != KIND_BATCH or size != BATCH.size or crc32c(data[at + CRC_END : end]) != crc:
        return None
    return BatchHead(*BATCH.unpack_from(data, at + PREFIX_BYTES)[1:])


def corrected_head(data: bytes, at: int) -> BatchHead | None:
    """The BATCH record at an offset with its one flipped bit corrected; None if more is wrong."""
    corrected = corrected_batch_record(data, at)
    return None if corrected is None else batch_head(corrected, 0)


def first_head(data: bytes, segment: int) -> BatchHead | None:
    """The head of the first batch of a segment, from the beginning of its file.

    None if the segment has no batch, or if more than one bit of the head is wrong.
    """
    at = SEGMENT_HEADER_BYTES
    head = batch_head(data, at) or corrected_head(data, at)
    return head if head is not None and head.segment == segment else None
