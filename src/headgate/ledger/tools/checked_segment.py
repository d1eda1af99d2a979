"""A segment while its records are checked, and what a start takes from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.ledger.format.records import SEGMENT_HEADER_BYTES
from headgate.ledger.tools.findings import Finding
from headgate.ledger.tools.footer_check import FooterCheck


@dataclass(frozen=True, slots=True)
class SegmentRole:
    """What a start takes from a segment, and what later files prove of it."""

    segment: int
    is_replayed: bool
    """A start reads its records, not only its footer."""
    has_later: bool
    """A later segment has a batch."""
    follows: int
    """Number of the batch before the next segment's first one; 0 if that is unknown."""


@dataclass(slots=True)
class CheckedSegment:
    """The segment that is being checked."""

    role: SegmentRole
    footer: FooterCheck
    data: bytes
    name: str
    reached: int = SEGMENT_HEADER_BYTES
    has_batch: bool = False
    gaps: list[Finding] = field(default_factory=list)
    damaged_entries: list[Finding] = field(default_factory=list)
    footer_findings: list[Finding] = field(default_factory=list)
    topics: set[int] = field(default_factory=set)
    """Numbers of the topics with sound entries in it."""
    sequence: dict[int, int] = field(default_factory=dict)
    """The next ordinal of each topic, by the records of this segment alone."""
    has_holes: bool = False
    """Maintenance has punched a hole, so what lies between retained messages is unknown."""
    lost: frozenset[tuple[int, int]] = frozenset()
    """Topic number and ordinal of the entries that a damaged part of the footer lists, and that
    reads do not find by the records."""

    @property
    def reads_records(self) -> bool:
        """Whether a start finds the entries by the records."""
        return self.role.is_replayed or not self.footer.is_usable
