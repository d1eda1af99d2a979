"""A batch: the records of one group commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.ledger.format.records import BATCH_RECORD_BYTES, KIND_TRIM
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.write.deferred_controls import Control


@dataclass(slots=True)
class Chunk:
    """The part of a batch in one segment: a BATCH record and the records after it."""

    number: int
    """Its batch number, which each of its records has."""
    segment: int
    start: int
    """Offset of its BATCH record in the segment."""
    end: int
    """One past its last byte."""
    parts: list[bytes]
    """Its bytes. Sealing the batch fills in ``parts[0]``, the BATCH record."""
    next_cursor_id: int = 0
    """The first cursor id that is unused up to its end."""
    records: int = 0
    """Records in it, without the BATCH record."""
    overhead_bytes: int = BATCH_RECORD_BYTES
    """Its bytes that are no ENTRY records."""
    touched: list[TopicLog] = field(default_factory=list)
    """Topics that got entries."""
    controls: list[Control] = field(default_factory=list)
    """The control records, which are staged again if the batch fails."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The records staged before one :meth:`CommitLog.seal_batch`, ready for the commit thread.

    The commit thread reads ``chunks`` only.
    """

    chunks: tuple[Chunk, ...]
    ends: tuple[tuple[TopicLog, int], ...]
    """Topics with entries in the batch, and their ``end`` once it is durable."""
    trims: tuple[tuple[TopicLog, int], ...]
    """Trimmed topics, and their ``first`` once the batch is durable."""
    size_bytes: int
    records: int

    @property
    def has_only_trims(self) -> bool:
        """Whether it frees room on the disk, and takes none for anything else."""
        return all(
            len(chunk.controls) == chunk.records
            and all(control.kind == KIND_TRIM for control in chunk.controls)
            for chunk in self.chunks
        )
