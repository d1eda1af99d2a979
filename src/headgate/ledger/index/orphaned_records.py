"""Orphaned records: entries of topic numbers that no topic has.

A topic is deleted in the metadata first; its records go with their segments, later. A crash in
between leaves records that a start cannot ascribe to a topic. They go as well, but never before a
line has said what they were: after a mistake of ours or of an operator it is the last trace.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

logger = logging.getLogger("headgate.ledger")

NUMBERS_SAID_MAX = 20
"""Topic numbers that one line names."""


@dataclass(slots=True)
class OrphanedRecords:
    """What recovery found of topic numbers that it was not told of."""

    number_seen: int = 0
    """The highest topic number in any record, known or not; 0 without one."""
    counts: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """By segment and topic number: entries and bytes of their bodies."""

    def see(self, number: int) -> None:
        """A record names this topic number."""
        if number > self.number_seen:
            self.number_seen = number

    def add(self, segment: int, number: int, entries: int, size_bytes: int) -> None:
        """Entries of a number that no topic has lie in a segment."""
        found = self.counts.setdefault(segment, {})
        entries_before, bytes_before = found.get(number, (0, 0))
        found[number] = (entries_before + entries, bytes_before + size_bytes)

    def log(self, segment: int, name: str, happens: str) -> None:
        """Tell what a segment holds of such numbers, if it does, before ``happens``."""
        found = self.counts.get(segment)
        if not found:
            return
        numbers = sorted(found)
        text = ", ".join(map(str, numbers[:NUMBERS_SAID_MAX]))
        more = len(numbers) - NUMBERS_SAID_MAX
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
        """A segment is gone."""
        self.counts.pop(segment, None)
