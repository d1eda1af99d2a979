"""A batch: everything that one group commit writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.write.deferred_controls import Control


@dataclass(slots=True)
class Chunk:
    """The part of a batch that lies in one segment: one BATCH record and what belongs to it."""

    number: int
    """Its batch number, in each of its records."""
    segment: int
    start: int
    """Offset of its BATCH record in the segment."""
    end: int
    """One past its last byte."""
    parts: list[bytes]
    """Its bytes; ``parts[0]`` is the BATCH record, filled in when the batch is sealed."""
    next_cursor_id: int = 0
    """The first cursor id that neither it nor what is before it uses."""
    records: int = 0
    """Records in it, the BATCH record not counted."""
    touched: list[TopicLog] = field(default_factory=list)
    """Topics that got entries."""
    controls: list[Control] = field(default_factory=list)
    """The records that are made and staged again when the batch fails."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything staged up to one :meth:`CommitLog.seal_batch`, ready for the commit thread.

    The commit thread reads ``chunks`` and nothing else.
    """

    chunks: tuple[Chunk, ...]
    ends: tuple[tuple[TopicLog, int], ...]
    """Where ``end`` of each touched topic goes when the batch is durable."""
    trims: tuple[tuple[TopicLog, int], ...]
    """Where ``first`` of trimmed topics goes."""
    size_bytes: int
    records: int
