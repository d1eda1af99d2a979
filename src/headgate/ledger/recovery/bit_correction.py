"""Corrects a single flipped bit in a record by means of its checksum.

The CRC32C of a few hundred bytes distinguishes a record with one flipped bit from every other sound
record, so such a record can be read as it was written. Recovery corrects segment headers, heads of
batches, small records and the heads of entries. It never corrects the body of a message: that
entry counts as damaged.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.ledger.format.records import (
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    CRC_END,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_BATCH,
    KIND_ENTRY,
    KINDS,
    PREFIX,
    PREFIX_BYTES,
    RECORD_VERSION,
    SEGMENT_HEADER_BYTES,
    crc32c,
    crc32c_extend,
    segment_stamp,
)

_RECORD_BYTES_MAX = 4096
"""In longer records only the head is corrected."""


def corrected_header(data: bytes, segment: int) -> bytes | None:
    """A segment's header with its one flipped bit corrected; None if more is wrong."""
    head = data[:SEGMENT_HEADER_BYTES]
    if not head.strip(b"\0"):
        return None
    for flipped in _flipped(head):
        if segment_stamp(flipped, segment) is not None:
            return flipped
    return None


def corrected_batch_record(data: bytes, at: int) -> bytes | None:
    """The BATCH record at an offset with its one flipped bit corrected; None if more is wrong."""
    head = data[at : at + BATCH_RECORD_BYTES]
    magic = head[PREFIX_BYTES : PREFIX_BYTES + len(BATCH_MAGIC)]
    alike = sum(found == meant for found, meant in zip(magic, BATCH_MAGIC, strict=False))
    if len(head) < BATCH_RECORD_BYTES or alike < len(BATCH_MAGIC) - 1:
        return None
    for flipped in _flipped(head):
        crc, size, kind, _, _, _ = PREFIX.unpack_from(flipped)
        if kind == KIND_BATCH and size == len(head) - PREFIX_BYTES and _is_sound(flipped, crc):
            return flipped
    return None


def corrected_record(data: bytes, at: int, stop: int, owner: int | None) -> bytes | None:
    """The record at an offset with its one flipped bit corrected; None if more is wrong, or if the
    bit is in the body of an entry. ``owner`` is the low half of the number of its batch; None if
    that is unknown."""
    head = data[at : min(at + ENTRY_HEAD_BYTES, stop)]
    if len(head) < PREFIX_BYTES:
        return None
    for flipped in _flipped(head):
        crc, size, kind, version, _, batch = PREFIX.unpack_from(flipped)
        end = at + PREFIX_BYTES + size
        if owner is not None and batch != owner:
            continue
        if version != RECORD_VERSION or kind not in KINDS or end > stop:
            continue
        if kind == KIND_ENTRY and size < ENTRY_FIXED_BYTES:
            continue
        rest = data[at + len(head) : end]
        own = flipped[: end - at]
        if crc == crc32c_extend(crc32c(own[CRC_END:]), rest):
            return own + rest
    _, size, kind, _, _, batch = PREFIX.unpack_from(head)
    end = at + PREFIX_BYTES + size
    if (
        batch == (batch if owner is None else owner)
        and kind != KIND_ENTRY
        and end <= min(stop, at + _RECORD_BYTES_MAX)
    ):
        whole = data[at:end]
        for flipped in _flipped(whole, ENTRY_HEAD_BYTES):
            if _is_sound(flipped, PREFIX.unpack_from(flipped)[0]):
                return flipped
    return None


def _is_sound(record: bytes, crc: int) -> bool:
    return bool(crc == crc32c(record[CRC_END:]))


def _flipped(data: bytes, start: int = 0) -> Iterator[bytes]:
    """Copies of the bytes, each with one bit flipped: every bit from byte ``start`` on in turn."""
    copy = bytearray(data)
    for at in range(start, len(copy)):
        for bit in range(8):
            copy[at] ^= 1 << bit
            yield bytes(copy)
            copy[at] ^= 1 << bit
