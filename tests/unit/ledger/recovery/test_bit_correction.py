"""Records with one wrong bit are read as they were; with more they are not."""

from __future__ import annotations

import random

import pytest

from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    ENTRY_REST,
    KIND_ACKS,
    KIND_BATCH,
    KIND_ENTRY,
    RECORD_VERSION,
    SEGMENT_HEADER_BYTES,
    crc32c,
    record,
    segment_header,
)
from headgate.ledger.recovery.bit_correction import (
    corrected_batch_record,
    corrected_header,
    corrected_record,
)

BEFORE = b"before"


def entry(body: bytes) -> bytes:
    rest = ENTRY_REST.pack(
        len(body) + ENTRY_FIXED_BYTES, KIND_ENTRY, RECORD_VERSION, 0, 7, 1, 1, 5, 0, 0
    )
    return crc32c(rest + body).to_bytes(4, "little") + rest + body


def flipped(data: bytes, *bits: int) -> bytes:
    copy = bytearray(data)
    for bit in bits:
        copy[bit // 8] ^= 1 << bit % 8
    return bytes(copy)


def mend(data: bytes) -> bytes | None:
    return corrected_record(BEFORE + data + bytes(90), len(BEFORE), len(BEFORE + data), 7)


def test_a_small_record_is_mended_whatever_its_bit() -> None:
    whole = record(KIND_ACKS, b"x" * 24, 7)
    for bit in range(8 * len(whole)):
        assert mend(flipped(whole, bit)) == whole


def test_of_an_entry_the_head_is_mended_and_the_body_is_not() -> None:
    whole = entry(b"y" * 30)
    for bit in range(8 * len(whole)):
        expected = whole if bit < 8 * ENTRY_HEAD_BYTES else None
        assert mend(flipped(whole, bit)) == expected


def test_more_wrong_bits_are_not_mended() -> None:
    chance = random.Random(1)
    whole = record(KIND_ACKS, b"x" * 24, 7)
    for _ in range(300):
        bits = chance.sample(range(8 * len(whole)), chance.randrange(2, 5))
        assert mend(flipped(whole, *bits)) is None


def test_a_record_of_another_batch_is_not_mended() -> None:
    whole = record(KIND_ACKS, b"x" * 24, 8)
    assert mend(flipped(whole, 190)) is None


def test_a_batch_record_is_mended_whatever_its_bit() -> None:
    whole = record(KIND_BATCH, BATCH.pack(BATCH_MAGIC, 3, 2, 1, 1, 1, 99, 4, 500), 3)
    for bit in range(8 * len(whole)):
        assert corrected_batch_record(BEFORE + flipped(whole, bit), len(BEFORE)) == whole
    assert corrected_batch_record(flipped(whole, 1, 400), 0) is None
    assert corrected_batch_record(whole[:-1], 0) is None
    assert corrected_batch_record(bytes(200), 0) is None


@pytest.mark.parametrize("segment", [1, 2**40])
def test_a_header_is_mended_whatever_its_bit(segment: int) -> None:
    whole = segment_header(segment, 2**63 + 5)
    for bit in range(8 * SEGMENT_HEADER_BYTES):
        assert corrected_header(flipped(whole, bit) + b"more", segment) == whole
    assert corrected_header(flipped(whole, 7, 90), segment) is None
    assert corrected_header(bytes(SEGMENT_HEADER_BYTES), segment) is None
