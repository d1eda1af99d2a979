"""What the engine needs of the log to append entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.engine.ports import EntryLog


class EntryAppender(Protocol):
    """The log, as far as publishing needs it."""

    def append(self, log: EntryLog, message_count: int, log_ms: int, body: bytes, /) -> int:
        """Stage an entry for the next group commit and return its ordinal."""

    def sequence_of(self, body: bytes, /) -> tuple[str, int, int] | None:
        """The producer's name and the first and last sequence id in an entry's metadata; None if
        deduplication ignores the entry."""

    def name_test(self, name: str, /) -> Callable[[bytes], object]:
        """A quick test of entries: true only for those that name this producer."""

    def track_sequences(self, log: EntryLog, is_on: bool, /) -> None:
        """Begin or end to keep ``log.sequences``, from the next entry on."""
