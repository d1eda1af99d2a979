"""Joins the chunks of messages.

A producer splits a large message into chunks. Each chunk is an entry, and entries of other
producers may lie between them. A message belongs to the entry with its last chunk. So every message
belongs to exactly one range, in each read.

Pure: no I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from pyspark_pulsar.entries import ChunkPart, Entry, EntryId, Kind, assembled

OPEN_MESSAGES_MAX = 10_000
"""Messages of which only the first chunks came: a producer that ends leaves one behind."""

CHUNKS_MAX = 1_000_000
"""Chunks of such messages: one of a byte takes 300 bytes of memory."""


@dataclass(slots=True)
class _Open:
    """A message of which some chunks are there."""

    first: EntryId
    """The entry of the first chunk that is there."""
    parts: list[ChunkPart] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def next_index(self) -> int:
        return self.parts[-1].index + 1


@dataclass(frozen=True, slots=True)
class Joined:
    """A message whose last chunk came."""

    entry: Entry
    """The message; malformed if its chunks do not fit together."""
    first: EntryId
    """The entry of its first chunk."""


@dataclass(frozen=True, slots=True)
class Headless:
    """A last chunk came, and earlier ones did not."""

    uuid: str
    before: EntryId
    """They are before this entry."""
    indexes: int
    """How many are missing: the chunks 0 to ``indexes - 1``."""


class ChunkParts:
    """The chunks of the messages of a topic that are not complete.

    They have a bound together: beyond it the message that began first is forgotten. A task then
    finds its chunks again when the last one comes, as those before its range.
    """

    def __init__(self, message_bytes_max: int) -> None:
        self._message_bytes_max = message_bytes_max
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._size_bytes = self._chunks = 0

    def add(self, place: EntryId, part: ChunkPart) -> Joined | Headless | None:
        """Take a chunk; returns the message if it is the last one, or that earlier ones are
        missing. None if others follow."""
        found = self._open.get(part.uuid)
        if part.index == 0 or found is None or part.index > found.next_index:
            self.forget(part.uuid)
            found = self._open[part.uuid] = _Open(place)
        elif part.index < found.next_index:  # sent twice
            return None
        found.parts.append(part)
        found.size_bytes += part.size_bytes
        self._size_bytes += part.size_bytes + len(part.uuid)  # a text of any length
        self._chunks += 1
        is_last = part.index + 1 == part.count
        if max(found.size_bytes, part.total_bytes) > self._message_bytes_max:
            self.forget(part.uuid)
            return Joined(self._too_large_entry(), found.first) if is_last else None
        if not is_last:
            self._make_room(part.uuid)
            return None
        missing = found.parts[0].index
        if missing:
            return Headless(part.uuid, found.first, missing)
        self.forget(part.uuid)
        return Joined(self._joined(found), found.first)

    def complete(self, uuid: str, head: list[ChunkPart], first: EntryId) -> Joined:
        """The message of a :class:`Headless`, with the chunks that were missing, in order."""
        found = self._open[uuid]
        self.forget(uuid)
        found.parts[:0] = head
        found.size_bytes += sum(part.size_bytes for part in head)
        return Joined(self._joined(found), first)

    def forget(self, uuid: str) -> None:
        """Drop the chunks of a message."""
        found = self._open.pop(uuid, None)
        if found is not None:
            self._size_bytes -= found.size_bytes + len(uuid) * len(found.parts)
            self._chunks -= len(found.parts)

    def _joined(self, found: _Open) -> Entry:
        if found.size_bytes > self._message_bytes_max:
            return self._too_large_entry()
        payload = b"".join(part.payload for part in found.parts)
        return assembled(found.parts[0], payload, self._message_bytes_max)

    def _too_large_entry(self) -> Entry:
        why = f"it has more than {self._message_bytes_max:,} bytes (maxMessageBytes)"
        return Entry(Kind.MALFORMED, 1, 0, why=why)

    def _make_room(self, newest: str) -> None:
        while (
            self._size_bytes > self._message_bytes_max
            or self._chunks > CHUNKS_MAX
            or len(self._open) > OPEN_MESSAGES_MAX
        ):
            oldest = next(iter(self._open))
            self.forget(oldest)
            if oldest == newest:
                return
