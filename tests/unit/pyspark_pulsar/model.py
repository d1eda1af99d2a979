"""A topic with entries of all kinds, and a process that reads it and may end at any instant."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pulsar

from pyspark_pulsar import attempts
from pyspark_pulsar.attempts import Attempt, AttemptEnd
from pyspark_pulsar.chunks import Chunk, EntryId, NoChunk
from pyspark_pulsar.columns import Message
from pyspark_pulsar.errors import ReaderProcessError
from pyspark_pulsar.keys import KeyKind, MessageRef
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.range_reader import Step
from pyspark_pulsar.ranges import LedgerSpan
from tests.unit.pyspark_pulsar.fakes import FakeMessage, no_keys

FAULT = ReaderProcessError("with signal SIGSEGV", is_by_client=True)
KILLED = ReaderProcessError("with signal SIGKILL", is_by_client=False)


class Odd(enum.Enum):
    """Entries from which no reader receives a message."""

    MARKER = NoChunk.WHOLE, ""
    SEALED = NoChunk.ENCRYPTED, ""
    SEALED_BATCH = NoChunk.ENCRYPTED, "stalls"
    """Takes all that the client asked for."""
    STALLING = NoChunk.MALFORMED, "stalls"
    FATAL = NoChunk.WHOLE, "ends"
    """Ends the client's process."""
    FATAL_UNREADABLE = NoChunk.UNREADABLE, "ends"
    FATAL_CHUNK = Chunk("fatal", 1, 2), "ends"


Entry = int | Chunk | Odd
"""How many messages a batch has, 0 for a message outside one; or another kind."""


def message_of(place: EntryId, index: int = -1, size: int = 0) -> FakeMessage:
    """A message; its value tells its place, and its time the entry."""
    value = f"{place[0]}:{place[1]}:{index}".encode()
    return FakeMessage(Position(*place, -1, index), size, value, publish_ms=1 + place[1])


@dataclass
class Topic:
    """What is stored, in order. Has the methods of a client and of the admin API."""

    log: Mapping[EntryId, Entry]
    spans: tuple[LedgerSpan, ...]
    draw: Callable[[int], int]
    """A number from 0 to this one, which decides what happens."""
    faults: int = 0
    """How often the process ends by a fault that is no entry's."""
    kills: int = 0
    """How often something else ends it."""
    dropped: int = 0
    """Messages that the client dropped, because its listener had no memory."""

    def honest(self) -> list[FakeMessage]:
        """All messages that a reader from the begin has to receive."""
        return list(_received(self.log, (-1, -1)))

    def ledgers(self, _topic: str) -> tuple[LedgerSpan, ...]:
        return self.spans

    def entries(self, _topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        return {place: self._kind(place) for place in places}

    def _kind(self, place: EntryId) -> Chunk | NoChunk:
        entry = self.log.get(place, NoChunk.GONE)
        if isinstance(entry, Odd):
            kind: Chunk | NoChunk = entry.value[0]
            return kind
        return NoChunk.WHOLE if isinstance(entry, int) else entry

    def key_kinds(
        self, _topic: str, places: Iterable[MessageRef]
    ) -> dict[MessageRef, KeyKind | None]:
        return no_keys(list(places))

    def create_reader(self, _topic: str, first: pulsar.MessageId, **how: object) -> Reader:
        begin = (first.ledger_id(), first.entry_id(), first.batch_index())
        return Reader(self, begin, is_stepwise="reader_listener" in how)

    def read(self, attempt: Attempt) -> Iterator[Step | AttemptEnd]:
        """The process. A part that it has not sent when it ends is lost."""
        try:
            for part in attempts.read(attempt, self):
                self.survive()
                yield part
        except MemoryError:
            raise ReaderProcessError("for want of memory", is_by_client=True) from None

    def survive(self) -> None:
        """Raise if the process ends now."""
        if self.kills and not self.draw(3):
            self.kills -= 1
            raise KILLED
        if self.faults and not self.draw(3):
            self.faults -= 1
            raise FAULT


def _received(log: Mapping[EntryId, Entry], begin: EntryId) -> Iterator[FakeMessage]:
    """The messages that a client receives that begins with this entry, if none is odd."""
    uncut: dict[str, int] = {}
    for place, entry in log.items():
        if place < begin or isinstance(entry, Odd):
            continue
        if isinstance(entry, Chunk):
            if uncut.get(entry.uuid, 0) == entry.index:
                uncut[entry.uuid] = entry.index + 1
                if entry.is_last:
                    yield message_of(place)
        elif entry:
            yield from (message_of(place, index, entry) for index in range(entry))
        else:
            yield message_of(place)


class Reader:
    """A reader of the client. It prefetches some entries, unless it is stepwise."""

    def __init__(self, topic: Topic, begin: tuple[int, int, int], *, is_stepwise: bool) -> None:
        self.topic = topic
        self.is_stepwise = is_stepwise
        self.messages = [
            message
            for message in _received(topic.log, begin[:2])
            if message.position.order_key >= Position(*begin[:2], -1, begin[2]).order_key
            or begin[2] < 0
        ]
        odd = [
            (place, entry.value[1])
            for place, entry in topic.log.items()
            if isinstance(entry, Odd) and entry.value[1] and place >= begin[:2]
        ]
        self.barrier, self.effect = odd[0] if odd else ((1 << 62, 0), "")
        self.chunks = [
            place
            for place, entry in topic.log.items()
            if isinstance(entry, Chunk) and place >= begin[:2]
        ]
        self.dequeued = begin[0], begin[1] - 1

    def read_next(self, timeout_millis: int) -> Message:
        assert timeout_millis > 0
        self.topic.survive()
        while self.messages and self._place(0) < self.barrier:
            if self.effect == "ends" and not self.is_stepwise:
                ahead = self.topic.draw(3)
                if ahead and (len(self.messages) <= ahead or self._place(ahead) > self.barrier):
                    raise FAULT
            message = self.messages.pop(0)
            self.dequeued = message.position[:2]
            if not self._is_dropped():
                return message
        if self.effect == "ends":
            raise FAULT
        raise pulsar.Timeout("TimeOut")

    def _place(self, number: int) -> EntryId:
        return self.messages[number].position[:2]

    def _is_dropped(self) -> bool:
        """Whether chunks before it take the memory of a listener."""
        hoards = bool(self.chunks) and self.chunks[0] < self.dequeued
        is_dropped = self.is_stepwise and hoards and self.topic.draw(3) == 1
        self.topic.dropped += is_dropped
        return is_dropped

    def has_message_available(self) -> bool:
        shown = [place for place, entry in self.topic.log.items() if entry is not Odd.MARKER]
        return bool(shown) and self.dequeued < shown[-1]

    def close(self) -> None:
        self.messages = []
