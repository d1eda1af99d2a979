"""The statistics of a commit log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """A snapshot of :class:`headgate.ledger.CommitLog`; counts begin when it was opened."""

    topics: int
    cursors: int
    segments: int
    """Segment files, with the open one."""
    segments_sealed: int
    log_bytes: int
    """Bytes of durable records in all segments."""
    staged_records: int
    staged_bytes: int
    batches: int
    """Batches that became durable."""
    records: int
    """Records that became durable."""
    bytes_written: int
    batches_failed: int
    checkpoints: int
    segments_deleted: int
    replayed_records: int
    """Records that the start replayed."""
    records_since_checkpoint: int
    bytes_since_checkpoint: int
    full: bool
    """Whether publishing waits for room on the disk."""
    failed: str | None
    """Why the log stores nothing until a restart; None while it works."""
