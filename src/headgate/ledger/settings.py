"""The settings of the commit log, each checked against its bounds."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.errors import InputError
from headgate.base.units import GIB, KIB, MIB, MS_PER_MINUTE

_SEGMENT_BYTES_MIN = 4 * KIB


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """How the log is cut into segments, ledgers and checkpoints."""

    segment_bytes: int = 64 * MIB
    """Size of a preallocated segment file. A larger batch gets a larger segment."""
    extent_bytes: int = 256 * KIB
    """How much one backlog read takes from the disk at least."""
    checkpoint_records: int = 500_000
    """A checkpoint is complete at least every so many records, so that replay stays short."""
    checkpoint_bytes: int = 256 * MIB
    """The same bound in bytes of log."""
    ledger_entries_max: int = 50_000
    """A topic's ledger with so many entries is full (managedLedgerMaxEntriesPerLedger)."""
    ledger_bytes_max: int = 2 * GIB
    """A ledger of so many bytes is full (managedLedgerMaxSizePerLedgerMbytes)."""
    ledger_age_ms_min: int = 10 * MS_PER_MINUTE
    """A full ledger younger than this is kept (managedLedgerMinLedgerRolloverTimeMinutes)."""
    ledger_age_ms_max: int = 240 * MS_PER_MINUTE
    """A ledger older than this is full (managedLedgerMaxLedgerRolloverTimeMinutes)."""
    hole_bytes_min: int = 64 * KIB
    """Smaller parts of a segment that nobody holds stay: they would cut files into many pieces."""
    slice_items: int = 256
    """How many topics or cursors one step of maintenance handles on the loop."""

    def __post_init__(self) -> None:
        """Check each bound and their relations. Raises :class:`InputError`."""
        _within("segment_bytes", self.segment_bytes, _SEGMENT_BYTES_MIN, GIB)
        _within("extent_bytes", self.extent_bytes, 512, 64 * MIB)
        _within("checkpoint_records", self.checkpoint_records, 2, 1 << 40)
        _within("checkpoint_bytes", self.checkpoint_bytes, self.segment_bytes, 1 << 50)
        _within("ledger_entries_max", self.ledger_entries_max, 1, 1 << 40)
        _within("ledger_bytes_max", self.ledger_bytes_max, 1, 1 << 60)
        _within("ledger_age_ms_min", self.ledger_age_ms_min, 0, 1 << 60)
        _within("ledger_age_ms_max", self.ledger_age_ms_max, self.ledger_age_ms_min, 1 << 60)
        _within("hole_bytes_min", self.hole_bytes_min, 1, GIB)
        _within("slice_items", self.slice_items, 1, 1 << 20)


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value}; {low} to {high} is allowed")
