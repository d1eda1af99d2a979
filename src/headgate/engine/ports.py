"""The stored entries of a topic as the engine and its users read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.base.positions import Position
from headgate.base.sequence_table import SequenceTable
from headgate.base.stored_total import StoredTotal


class LedgerRange(Protocol):
    """One ledger of a topic: a range of message ids. ``headgate.ledger.LedgerInfo`` is one."""

    @property
    def ledger_id(self) -> int:
        """Pulsar's number of the ledger."""

    @property
    def first_ordinal(self) -> int:
        """The ordinal of the ledger's entry 0."""

    @property
    def entries(self) -> int:
        """Entries that the ledger ever got, trimmed ones included."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the ledger's retained entries."""

    @property
    def created_ms(self) -> int:
        """When the ledger was opened, in the time of the log."""


class IndexPart(Protocol):
    """A part of a topic's index that is in memory as long as somebody holds it."""

    @property
    def first(self) -> int:
        """The first entry of the part."""


class IndexedEntries(Protocol):
    """Entries whose index may be on the disk."""

    def index_of(self, ordinals: Sequence[int], /) -> Sequence[IndexPart]:
        """The parts of the index with these entries, as far as they are stored apart.

        Raises an error, which the storage handles, if one of them is not in memory.
        """


class Totals(Protocol):
    """Running totals of a topic before an entry."""

    @property
    def messages(self) -> int:
        """Messages of all entries before it since the topic was created."""

    @property
    def size_bytes(self) -> int:
        """Bytes of those entries."""

    @property
    def received_ms(self) -> int:
        """The receive time of the entry before it."""


RunningTotals = tuple[Sequence[int], Sequence[int], int, int]
"""Running totals over consecutive entries: of their messages, of their bytes, the entry whose
totals come first in both, and one past the last entry. Item ``n`` is the totals before that entry
and ``n`` more. Only differences mean something, and only while nothing is appended or trimmed."""


class EntryLog(Protocol):
    """One topic's stored entries, known by ordinal. ``headgate.ledger.TopicLog`` is one.

    The ordinals are plain attributes because each message reads them. ``first`` is the first
    retained entry, ``end`` is one past the last durable entry (only these are visible) and
    ``staged_end`` is one past the last entry that was handed over for storing.
    """

    number: int
    """The topic's number in the log. The log identifies topics by it and never reuses it."""
    first: int
    end: int
    staged_end: int
    trim_end: int
    """One past the last entry that a staged trim removes: until it is durable, these are still
    there. What is delivered of them would be gone a moment later, with its index."""
    memory_first: int
    """The first entry whose index is always in memory. A look-up of an entry before it may need a
    part of the index that is on the disk: see :meth:`is_indexed`."""
    damage: str
    """Where and what the topic lost on the disk; empty if nothing or if that was accepted."""
    sequences: SequenceTable | None
    """The producers that deduplication knows; None while the topic has no deduplication."""
    stored_total: StoredTotal
    """What the topic, or all of its tenant, stores. The log counts it."""

    @property
    def current_ledger_entries(self) -> int:
        """Entries in the last ledger; 0 if there is no ledger."""

    @property
    def current_ledger_bytes(self) -> int:
        """Retained bytes in the last ledger; 0 if there is no ledger."""

    def ledgers(self) -> Sequence[LedgerRange]:
        """The ledgers with retained entries and the last ledger, oldest first."""

    def is_lost(self, ordinal: int, /) -> bool:
        """Whether the disk is known to have lost a retained entry."""

    def lost_from(self, ordinal: int, stop: int, /) -> int:
        """The first entry behind ``ordinal`` that is lost, or is not if ``ordinal`` is; at most
        ``stop``."""

    def lost_ranges(self) -> Sequence[tuple[int, int]]:
        """The ranges of retained entries that are known to be lost, ``(first, one past the
        last)``, ascending."""

    def last_kept(self) -> int:
        """The last durable entry that is not known to be lost; below ``first`` without one."""

    def position(self, ordinal: int, /) -> Position:
        """Pulsar's message id of a retained or staged entry."""

    def ordinal_at_or_after(self, ledger_id: int, entry_id: int, /) -> int:
        """The entry with this id, else the next retained one; ``end`` if there is none."""

    def ordinal_received_at_or_after(self, received_ms: int, /) -> int:
        """The first durable entry that the broker received then or later; ``end`` if none."""

    def ordinal_published_at_or_after(self, publish_ms: int, /) -> int:
        """The first durable entry that was published then or later; ``end`` if none."""

    def is_indexed(self, ordinal: int, /) -> bool:
        """Whether the index of a retained entry is in memory, so that a look-up reads nothing."""

    def indexed_stop(self, first: int, stop: int, /) -> int:
        """Up to where the index of the entries from ``first`` on is in memory, at most ``stop``."""

    def running_totals(self, first: int, stop: int, /) -> RunningTotals | None:
        """The totals of the entries from ``first`` on: up to ``stop``, or as far as they follow
        one another in memory. None if the index of ``first`` is on the disk."""

    def index_of(self, ordinals: Sequence[int], /) -> Sequence[IndexPart]:
        """As :meth:`IndexedEntries.index_of`."""

    def totals_near(self, ordinal: int, /) -> tuple[Totals, bool]:
        """The totals before an entry, and whether they are exact: for statistics, which must not
        wait. If its index is on the disk, they may be those before an entry shortly before it."""

    def received_latest_ms(self, ordinal: int, /) -> int:
        """The latest possible receive time of a retained entry, for statistics: if its index is on
        the disk, that of an entry shortly behind it."""

    def ledger_starts(self) -> Sequence[int]:
        """The first ordinals of the ledgers that :meth:`ledgers` lists."""

    def ordinal_with_bytes_before(self, size_bytes: int, first: int, stop: int, /) -> int:
        """The first entry from ``first`` on before which the topic has at least ``size_bytes``
        since it was created; ``stop`` if there is none before that."""

    def message_count(self, ordinal: int, /) -> int:
        """Messages in the entry: more than one for a batch."""

    def size_bytes(self, ordinal: int, /) -> int:
        """Bytes of the entry as the client sent it."""

    def received_ms(self, ordinal: int, /) -> int:
        """When the broker received it, ms since the epoch, never falling along the topic."""

    def messages_before(self, ordinal: int, /) -> int:
        """Messages in all entries below ``ordinal``, since the topic was created."""

    def live_bytes(self, first: int, end: int, /) -> int:
        """Bytes that a range of retained entries takes on the disk, with their heads."""

    def bytes_before(self, ordinal: int, /) -> int:
        """Bytes in all entries below ``ordinal``, since the topic was created."""
