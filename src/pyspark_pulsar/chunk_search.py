"""Finds the chunks of a message that are before the range of a task.

A message belongs to the range with its last chunk, and may begin before it. The task then reads
entries before the range once more, and takes the chunks of that message alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Protocol

from pyspark_pulsar.chunk_parts import ChunkParts, Headless, Joined
from pyspark_pulsar.commands import StoredEntry
from pyspark_pulsar.entries import ChunkPart, EntryId, Kind, parse_entry
from pyspark_pulsar.errors import ReadTimeoutError
from pyspark_pulsar.losses import entry_text
from pyspark_pulsar.offsets import WHOLE_ENTRY, Position
from pyspark_pulsar.ranges import LedgerSpan

ENTRIES_BEFORE_MAX = 16_384
"""How many entries before a chunk are searched. A producer sends its chunks one after the other, so
more entries lie between two chunks only if one is missing, or seconds late in a topic with tens of
thousands of entries per second."""

ENTRIES_BEFORE_FIRST = 256
"""How many are searched at first, and for each chunk that is missing one more."""

SEARCHED_MAX = 131_072
"""How many entries the searches of a task read: beyond it each reads the first ones alone, if few
chunks are missing. Producers may send last chunks of messages that never began, with any index."""

SEARCHES_MAX = 1_000
"""How many searches a task makes; each takes a connection. Those that it needs come at the begin of
its range, within :data:`ENTRIES_BEFORE_FIRST` entries or a few more."""


class ClosingStream(Protocol):
    """What this module uses of :class:`pyspark_pulsar.entry_stream.EntryStream`."""

    def next_entry(self, timeout_s: float) -> StoredEntry | None: ...
    def taken(self, messages: int) -> None: ...
    def has_more(self) -> bool: ...
    def close(self) -> None: ...


def position_before(
    ledgers: Sequence[LedgerSpan], entry: EntryId, count: int
) -> tuple[EntryId, int]:
    """The entry that is ``count`` entries before ``entry``, which is none of them, and how many
    there are. ``ledgers`` are in order.

    The id may be -1, which stands before the first entry of the ledger.
    """
    found = 0
    begin = entry[0], entry[1] - 1
    for ledger in reversed(ledgers):
        if ledger.ledger_id > entry[0]:
            continue
        behind = entry[1] if ledger.ledger_id == entry[0] else ledger.entries
        taken = min(behind, count - found)
        found += taken
        begin = ledger.ledger_id, behind - taken - 1
        if found == count:
            break
    return begin, found


class ChunkSearch:
    """The searches of one task, which have a bound together."""

    def __init__(
        self,
        open_stream: Callable[[Position], ClosingStream],
        ledgers: Callable[[], Sequence[LedgerSpan]],
        partition: int,
        message_bytes_max: int,
        poll_timeout_s: float,
    ) -> None:
        """``open_stream`` gives the entries behind a position of the topic, and ``ledgers`` those
        that the topic has."""
        self._open_stream = open_stream
        self._ask_ledgers = ledgers
        self._ledgers: Sequence[LedgerSpan] | None = None
        self._partition = partition
        self._message_bytes_max = message_bytes_max
        self._poll_timeout_s = poll_timeout_s
        self._left = SEARCHED_MAX
        self._searches_left = SEARCHES_MAX

    def __call__(self, parts: ChunkParts, message: Headless) -> Joined | Headless | None:
        """The message; None if its first chunks are not there, or are too far away, or other
        messages have taken the bounds of all searches. ``message`` itself if it was complete
        before: a producer that lost its connection sends chunks again.

        Raises :class:`ReadTimeoutError` if entries that are there do not arrive.
        """
        if not self._searches_left:
            return None
        self._searches_left -= 1
        if self._ledgers is None:
            self._ledgers = self._ask_ledgers()
        searched = 0
        for count in (ENTRIES_BEFORE_FIRST + message.indexes, ENTRIES_BEFORE_MAX):
            if searched and self._left <= 0:
                return None
            begin, held = position_before(self._ledgers, message.before, count)
            if held == searched or held > max(self._left, 2 * ENTRIES_BEFORE_FIRST):
                return None
            searched = held
            head, is_complete = self._head(begin, message)
            if is_complete:
                return message
            if head:
                return parts.complete(message.uuid, [part for _, part in head], head[0][0])
        return None

    def _head(
        self, begin: EntryId, message: Headless
    ) -> tuple[list[tuple[EntryId, ChunkPart]], bool]:
        """The first chunks, in order, among the entries behind ``begin``, and whether the message
        was complete there. Nothing if not all of them are there.

        The last ones: a producer that begins again with its name may use an id again.
        """
        head: list[tuple[EntryId, ChunkPart]] = []
        size_bytes, is_complete = 0, False
        position = Position(*begin, self._partition, WHOLE_ENTRY)
        with closing(self._open_stream(position)) as stream:
            while True:
                stored = stream.next_entry(self._poll_timeout_s)
                if stored is None and stream.has_more():
                    raise ReadTimeoutError(
                        f"the entries before {entry_text(message.before)} did not arrive within "
                        f"{self._poll_timeout_s:g} s (pollTimeoutMs)"
                    )
                if stored is None or (stored.ledger_id, stored.entry_id) >= message.before:
                    break
                self._left -= 1
                entry = parse_entry(stored.body, self._message_bytes_max)
                stream.taken(entry.messages_claimed)
                part = entry.chunk
                if entry.kind is not Kind.CHUNK or part is None or part.uuid != message.uuid:
                    continue
                if part.index == 0:
                    head, size_bytes, is_complete = [], 0, False
                elif part.index != len(head) or part.index >= message.indexes:
                    is_complete |= len(head) == message.indexes and part.index + 1 == part.count
                    continue
                size_bytes += part.size_bytes
                if size_bytes > self._message_bytes_max:
                    head = []
                    continue
                head.append(((stored.ledger_id, stored.entry_id), part))
        return (head if len(head) == message.indexes else []), is_complete
