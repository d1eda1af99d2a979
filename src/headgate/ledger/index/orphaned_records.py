"""Orphaned records: entries of topic numbers that no topic has.

The metadata deletes a topic first; its records are deleted later, with their segments. If the
broker crashes in between, a start finds records without a topic. Maintenance deletes them as well,
but it first logs what they were: after a bug or an operator's mistake that line is the last trace.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

logger = logging.getLogger("headgate.ledger")

NUMBERS_NAMED_MAX = 20
"""Topic numbers that one line names."""


@dataclass(slots=True)
class OrphanedRecords:
    """Counts of the records of unknown topic numbers that recovery found."""

    number_seen: int = 0
    """The highest topic number in any record, known or not; 0 without a record."""
    counts: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """By segment and topic number: entries and bytes of their bodies."""

    def note_number(self, number: int) -> None:
        """Note that a record names this topic number."""
        if number > self.number_seen:
            self.number_seen = number

    def add(self, segment: int, number: int, entries: int, size_bytes: int) -> None:
        """Count entries of an unknown topic number in a segment."""
        found = self.counts.setdefault(segment, {})
        entries_before, bytes_before = found.get(number, (0, 0))
        found[number] = (entries_before + entries, bytes_before + size_bytes)

    def include(self, other: OrphanedRecords) -> None:
        """Add what another part of the log has."""
        self.note_number(other.number_seen)
        for segment, found in other.counts.items():
            for number, (entries, size_bytes) in found.items():
                self.add(segment, number, entries, size_bytes)

    def log(self, segment: int, name: str, happens: str) -> None:
        """Log what a segment holds of unknown topics, if anything, and what happens to it now."""
        found = self.counts.get(segment)
        if not found:
            return
        numbers = sorted(found)
        text = ", ".join(map(str, numbers[:NUMBERS_NAMED_MAX]))
        more = len(numbers) - NUMBERS_NAMED_MAX
        logger.info(
            "%s %s: it holds %d entries with %d bytes of topic number%s %s%s, which no topic of "
            "this log has: deleted or moved before the broker last started",
            name,
            happens,
            sum(entries for entries, _ in found.values()),
            sum(size_bytes for _, size_bytes in found.values()),
            "" if len(numbers) == 1 else "s",
            text,
            f" and {more} more" if more > 0 else "",
        )

    def forget(self, segment: int) -> None:
        """Forget a segment that is deleted."""
        self.counts.pop(segment, None)
