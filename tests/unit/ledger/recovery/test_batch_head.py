"""Only a sound BATCH record is the head of a batch."""

from __future__ import annotations

from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    KIND_BATCH,
    record,
    segment_header,
)
from headgate.ledger.recovery.batch_head import batch_head


def segment(*records: bytes, number: int = 1, previous: int = 0) -> bytes:
    size = 80 + sum(map(len, records))
    payload = BATCH.pack(BATCH_MAGIC, number, previous, 1, 1, 1, 9, len(records), size)
    return segment_header(1, 9) + record(KIND_BATCH, payload, number) + b"".join(records)


def test_a_batch_head_is_checked() -> None:
    data = segment()
    assert batch_head(data, 64) is not None
    assert batch_head(data, -1) is None
    assert batch_head(data[:-1], 64) is None
    for at in range(64, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1
        assert batch_head(bytes(damaged), 64) is None
