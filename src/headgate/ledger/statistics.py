"""The statistics of a commit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class SpaceUse:
    """How a log uses the disk now; the bytes add up to its files."""

    live_bytes: int
    """Records of retained entries."""
    pinned_bytes: int
    """Records that nothing needs, in sealed segments that also hold retained entries."""
    dead_bytes: int
    """Sealed segments without a retained entry: deleted behind the next checkpoint."""
    index_bytes: int
    """Footers of the other sealed segments."""
    open_bytes: int
    """The segments that are being written or prepared, without the retained entries in them, and
    old files that become segments."""
    checkpoint_bytes: int
    """The checkpoint and its copy."""
    segments: int
    """Segment files, prepared ones and old files included."""
    segments_dead: int
    """Those without a retained entry."""
    unused_bytes: int
    """The part of ``open_bytes`` that no record was written to yet."""

    def by_state(self) -> dict[str, int]:
        """The bytes by what they are needed for."""
        return {
            "live": self.live_bytes,
            "pinned": self.pinned_bytes,
            "dead": self.dead_bytes,
            "index": self.index_bytes,
            "open": self.open_bytes,
            "checkpoint": self.checkpoint_bytes,
        }

    @property
    def file_bytes(self) -> int:
        """All of it."""
        return sum(self.by_state().values())

    @property
    def written_bytes(self) -> int:
        """What was written and not freed."""
        return self.file_bytes - self.unused_bytes


class IndexUse(NamedTuple):
    """The stored index of a log in memory, and what was read of it since the log was opened."""

    size_bytes: int
    """Memory of its cache: blocks, and remembered totals."""
    hits: int
    """Look-ups that found their block in memory."""
    misses: int
    """Blocks that were read from the disk."""
    read_at_once: int
    """Those of them that a look-up had to wait for on the event loop."""
    rebuilt: int
    """Damaged blocks that were rebuilt from the records."""
    lost: int
    """Damaged blocks that could not be rebuilt in full."""


class WrittenBytes(NamedTuple):
    """What a log has written since it was opened, by what it is for."""

    messages: int
    """Records of entries."""
    records: int
    """Other records: acknowledgements, cursors, trims, the frames of batches."""
    footers: int
    checkpoints: int
    """Checkpoints with their copies."""
    rewritten: int
    """New files of segments that little retained data pinned."""

    @property
    def amplification(self) -> float | None:
        """Bytes written for each byte of entries; None before the first entry."""
        return sum(self) / self.messages if self.messages else None


class SegmentWaste(NamedTuple):
    """What of one sealed segment nothing needs."""

    pinned_bytes: int
    """Records that nothing needs."""
    rest_bytes: int
    """Those and its footer: what its deletion frees besides the retained entries."""
    live_runs: int
    """Topics with retained entries in it."""


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
    segments_rewritten: int
    """Segments whose retained entries were copied into a new file."""
    replayed_records: int
    """Records that the start replayed."""
    records_since_checkpoint: int
    bytes_since_checkpoint: int
    full: bool
    """Whether publishing waits for room on the disk."""
    failed: str | None
    """Why the log stores nothing until a restart; None while it works."""
