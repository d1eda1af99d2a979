"""The settings of the commit log, each checked against its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import GIB, KIB, MIB, MS_PER_MINUTE

_SEGMENT_BYTES_MIN = 4 * KIB


CHECKPOINT_PART_BYTES: Final = 8 * MIB
"""A checkpoint of very many topics, cursors and names of producers has hundreds of megabytes."""


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The sizes and ages of segments, ledgers and checkpoints."""

    segment_bytes: int = 64 * MIB
    """Size of a preallocated segment file. A larger batch gets a larger segment."""
    extent_bytes: int = 256 * KIB
    """Least bytes that one backlog read takes from the disk."""
    checkpoint_records: int = 500_000
    """Most records between checkpoints, so that replay stays short."""
    checkpoint_bytes: int = 256 * MIB
    """Most bytes of log between checkpoints."""
    checkpoint_part_bytes: int = CHECKPOINT_PART_BYTES
    """Bytes of a checkpoint that are collected in memory before they are written."""
    ledger_entries_max: int = 50_000
    """Entries that fill a ledger (managedLedgerMaxEntriesPerLedger)."""
    ledger_bytes_max: int = 2 * GIB
    """Bytes that fill a ledger (managedLedgerMaxSizePerLedgerMbytes)."""
    ledger_age_ms_min: int = 10 * MS_PER_MINUTE
    """A full ledger stays open until this age (managedLedgerMinLedgerRolloverTimeMinutes)."""
    ledger_age_ms_max: int = 240 * MS_PER_MINUTE
    """A ledger is closed at this age (managedLedgerMaxLedgerRolloverTimeMinutes)."""
    hole_bytes_min: int = 64 * KIB
    """Smallest hole to punch into a segment: smaller ones would fragment the file."""
    removed_piece_bytes: int = MIB
    """Bytes of a removed file that are freed at once: a commit waits as long as that takes."""
    index_cache_bytes: int = 32 * MIB
    """Most bytes of blocks of stored indexes in memory (see index/block_cache.py)."""
    slice_items: int = 64
    """Topics or cursors that one maintenance step handles on the loop: about a millisecond."""

    def __post_init__(self) -> None:
        """Check each bound and their relations. Raises :class:`InputError`."""
        _within("segment_bytes", self.segment_bytes, _SEGMENT_BYTES_MIN, GIB)
        _within("extent_bytes", self.extent_bytes, 512, 64 * MIB)
        _within("checkpoint_records", self.checkpoint_records, 2, 1 << 40)
        _within("checkpoint_bytes", self.checkpoint_bytes, self.segment_bytes, 1 << 50)
        _within("checkpoint_part_bytes", self.checkpoint_part_bytes, KIB, GIB)
        _within("ledger_entries_max", self.ledger_entries_max, 1, 1 << 40)
        _within("ledger_bytes_max", self.ledger_bytes_max, 1, 1 << 60)
        _within("ledger_age_ms_min", self.ledger_age_ms_min, 0, 1 << 60)
        _within("ledger_age_ms_max", self.ledger_age_ms_max, self.ledger_age_ms_min, 1 << 60)
        _within("hole_bytes_min", self.hole_bytes_min, 1, GIB)
        _within("removed_piece_bytes", self.removed_piece_bytes, 512, GIB)
        _within("index_cache_bytes", self.index_cache_bytes, 0, 1 << 40)
        _within("slice_items", self.slice_items, 1, 1 << 20)


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value}; {low} to {high} is allowed")
