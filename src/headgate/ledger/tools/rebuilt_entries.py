"""What reads find of the entries whose block of a footer is damaged."""

from __future__ import annotations

from typing import NamedTuple

from headgate.ledger.format.records import (
    CRC_END,
    ENTRY,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_ENTRY,
    RECORD_VERSION,
    crc32c,
)
from headgate.ledger.index.block_cache import RECORDS_BYTES_MAX
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.rebuilt_block import rebuild_block
from headgate.ledger.index.stored_run import StoredRun


class RebuiltEntries(NamedTuple):
    """The entries of a damaged block, as the broker rebuilds it from the records."""

    columns: Columns
    lost: tuple[int, ...]
    """Ordinals that reads refuse as damaged."""


def rebuild_entries(data: bytes, run: StoredRun, block: int) -> RebuiltEntries:
    """Rebuild a damaged block of a stored run. ``data`` are the bytes of its segment file, from the
    beginning of the file to the end of its blocks at least.

    The records are looked for where the broker looks for them: from the first record of the block
    to the first one of the next block, or to the index.
    """
    first, count, row = run.first_of(block), run.count_of(block), run.row + block
    is_last = block + 1 == run.blocks
    begin = run.sparse.offsets[row]
    end = run.place_of(block) if is_last else run.sparse.offsets[row + 1]
    records = data[begin : min(end, begin + RECORDS_BYTES_MAX)]
    before, after = run.totals_before(block), run.totals_before(block + 1)
    columns, is_whole = rebuild_block(
        records, begin, run.topic_number, first, first + count, before, after
    )
    if is_whole:
        return RebuiltEntries(columns, ())
    lost = tuple(
        first + at
        for at in range(count)
        if not _is_readable(data, columns, at, run.topic_number, first + at)
    )
    return RebuiltEntries(columns, lost)


def _is_readable(data: bytes, columns: Columns, at: int, topic: int, ordinal: int) -> bool:
    """Whether a read with this index finds the entry, and its record sound."""
    offset, size = columns.offsets[at], columns.sizes[at + 1] - columns.sizes[at]
    end = offset + ENTRY_HEAD_BYTES + size
    if end > len(data):
        return False
    crc, rest_bytes, kind, version, _, _, number, _, found, _, _ = ENTRY.unpack_from(data, offset)
    return bool(
        (kind, version, rest_bytes) == (KIND_ENTRY, RECORD_VERSION, size + ENTRY_FIXED_BYTES)
        and (number, found) == (topic, ordinal)
        and crc == crc32c(data[offset + CRC_END : end])
    )
