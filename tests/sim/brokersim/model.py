"""What must be true of a broker, as its clients know it: what was sent, promised, acknowledged.

The model knows only what clients sent and how they were answered. Where an answer never came, both
outcomes are allowed: every set comes twice, as what *may* be and what *must* be.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from headgate.base.names import PARTITION_SUFFIX
from headgate.base.positions import Position
from headgate.base.units import INT64_MAX, NS_PER_S

START = Position(-1, -1)
END = Position(INT64_MAX, -1)
ACK_SAFE_NS = NS_PER_S
"""An acknowledgement that is older than this is durable, answered or not."""


def just_after(position: Position) -> Position:
    """The place that follows an entry."""
    return Position(position.ledger_id, position.entry_id + 1)


class ViolationError(AssertionError):
    """The broker broke a promise."""


@dataclass(slots=True, eq=False)
class Entry:
    """One SEND: a message, or a batch of them."""

    uid: int
    topic: str
    session: int
    """The producer, from its creation to its end."""
    index: int
    """Its place among the sends of that producer."""
    payloads: tuple[bytes, ...]
    position: Position | None = None
    number: int = -1
    """The topic's incarnation that stores it, once that is known."""
    refused: bool = False
    promised: bool = False
    """A receipt came, or it was delivered: it must be there from then on."""


class Presence(Enum):
    """What is known about a subscription's existence."""

    ABSENT = "absent"
    PRESENT = "present"
    UNKNOWN = "unknown"


@dataclass(slots=True, eq=False)
class Acknowledgement:
    """Acknowledgements that were sent in one command."""

    generation: int
    positions: tuple[Position, ...]
    before: Position
    """Cumulative: everything before this; else :data:`START`."""
    parts: tuple[tuple[Position, int], ...] = ()
    """Batches of which only messages are acknowledged, each with the mask of those that it leaves.
    """
    arrived_ns: int | None = None
    """When the broker took note of it, if it did."""


@dataclass(slots=True, eq=False)
class Cursor:
    """One subscription: what may and what must be acknowledged."""

    topic: str
    name: str
    presence: Presence = Presence.ABSENT
    generation: int = 0
    """Goes up whenever older acknowledgements stop counting."""
    moves: int = 0
    touches: int = 0
    muddled: bool = False
    """Several moved it at once: what came of it is only known by looking."""
    may: set[Position] = field(default_factory=set)
    may_before: Position = START
    may_uid: int = -1
    """Entries sent until then may have been skipped."""
    must: set[Position] = field(default_factory=set)
    must_before: Position = START
    may_left: dict[Position, int] = field(default_factory=dict)
    must_left: dict[Position, int] = field(default_factory=dict)
    """Of batches of which messages may be, or must be, acknowledged: the mask of the others."""
    unanswered: list[Acknowledgement] = field(default_factory=list)

    @property
    def settled(self) -> bool:
        """Whether nobody creates, deletes or moves it."""
        return not self.moves and (not self.touches or self.presence is Presence.PRESENT)

    def may_be_acked(self, entry: Entry) -> bool:
        """Whether anything that was asked for can have acknowledged the entry."""
        position = entry.position or START
        return (
            position < self.may_before
            or position in self.may
            or entry.uid <= self.may_uid
            or self.may_left.get(position) == 0
        )

    def must_be_acked(self, position: Position) -> bool:
        """Whether it was promised that the entry is acknowledged."""
        return (
            position < self.must_before
            or position in self.must
            or self.must_left.get(position) == 0
        )

    def sent(self, ack: Acknowledgement) -> None:
        """A consumer sent acknowledgements."""
        self.may.update(ack.positions)
        self.may_before = max(self.may_before, ack.before)
        _leave(self.may_left, ack.parts)
        self.unanswered.append(ack)

    def confirm(self, ack: Acknowledgement) -> None:
        """They are durable."""
        if ack in self.unanswered:
            self.unanswered.remove(ack)
        if ack.generation == self.generation and self.settled:
            self.must.update(ack.positions)
            self.must_before = max(self.must_before, ack.before)
            _leave(self.must_left, ack.parts)

    def arrived(
        self,
        positions: tuple[Position, ...],
        before: Position,
        parts: tuple[tuple[Position, int], ...],
        now_ns: int,
    ) -> None:
        """The broker took note of acknowledgements."""
        named = positions, before, parts
        for ack in self.unanswered:
            if ack.arrived_ns is None and (ack.positions, ack.before, ack.parts) == named:
                ack.arrived_ns = now_ns
                return

    def settle_by_age(self, now_ns: int, calm_since_ns: int, safe_ns: int) -> None:
        """The machine stopped: acknowledgements that were old enough by then are durable."""
        for ack in list(self.unanswered):
            if ack.arrived_ns is not None and calm_since_ns <= ack.arrived_ns <= now_ns - safe_ns:
                self.confirm(ack)
        self.unanswered.clear()

    def loosen(self, uid: int) -> None:
        """Nobody knows what came of it: anything sent until now may be acknowledged."""
        self.presence = Presence.UNKNOWN
        self.may_uid = uid
        self.must.clear()
        self.must_left.clear()
        self.must_before = START
        self.generation += 1

    def place(self, before: Position, first: Position, uid: int = -1, left: int = -1) -> None:
        """It stands at a place: what is before it is acknowledged, perhaps also what was sent
        until ``uid``, and of the batch there all but the messages in ``left``; else nothing.
        ``first`` is the first entry that the topic still held."""
        self.presence = Presence.PRESENT
        self.may_before = max(self.may_before, before, first)
        self.may_uid = uid
        self.must_before = before
        self.must.clear()
        self.must_left.clear()
        if left >= 0:
            self.must_left[before] = left
            _leave(self.may_left, ((before, left),))
        self.generation += 1

    def forget(self) -> None:
        """It is deleted."""
        self.presence = Presence.ABSENT
        self.may.clear()
        self.may_before = self.must_before = START
        self.may_uid = -1
        self.must.clear()
        self.may_left.clear()
        self.must_left.clear()
        self.unanswered.clear()
        self.generation += 1


def _leave(left: dict[Position, int], parts: tuple[tuple[Position, int], ...]) -> None:
    for position, mask in parts:
        left[position] = left.get(position, -1) & mask


class Move:
    """Somebody creates, deletes or moves cursors; say what came of it before it ends."""

    def __init__(self, cursors: Sequence[Cursor]) -> None:
        self.decided = False
        self._before = [(c, c.may, c.may_before, c.may_uid, c.may_left) for c in cursors]
        for cursor in cursors:
            cursor.may, cursor.may_before, cursor.may_uid = set(), START, -1
            cursor.may_left = {}

    def decide(self) -> None:
        """The cursors say what came of it."""
        self.decided = True

    def nothing(self) -> None:
        """They are where they were."""
        for cursor, may, may_before, may_uid, may_left in self._before:
            cursor.may |= may
            _leave(cursor.may_left, tuple(may_left.items()))
            cursor.may_before = max(cursor.may_before, may_before)
            cursor.may_uid = max(cursor.may_uid, may_uid)
        self.decided = True


class Model:
    """Everything that was sent and promised."""

    def __init__(self, first_of: Callable[[str], Position]) -> None:
        """``first_of`` tells the first position that a topic holds."""
        self.first_of = first_of
        self.entries: list[Entry] = []
        self.sessions: dict[int, list[Entry]] = {}
        self.at: dict[Position, Entry] = {}
        self.of_number: dict[int, list[Position]] = {}
        """Known positions of each incarnation, in order."""
        self.numbers: dict[int, int] = {}
        """Which incarnation a ledger belongs to."""
        self.dead: set[int] = set()
        """Incarnations whose deletion was answered."""
        self.doomed: set[int] = set()
        """Incarnations whose deletion was asked for."""
        self.cursors: dict[tuple[str, str], Cursor] = {}
        self.deliveries = 0
        self.receipts = 0
        self._last_receipt: dict[int, int] = {}

    @property
    def last_uid(self) -> int:
        """Of the entry that was sent last."""
        return len(self.entries) - 1

    def cursor(self, topic: str, name: str) -> Cursor:
        """The model of one subscription name."""
        key = (topic, name)
        if key not in self.cursors:
            self.cursors[key] = Cursor(topic, name)
        return self.cursors[key]

    def topic_gone(self, topic: str, cursors: Sequence[Cursor]) -> None:
        """A topic is deleted with these cursors. A partition that is made again joins those beside
        it: it may have any of their subscriptions then, with nothing acknowledged."""
        base, separator, _ = topic.rpartition(PARTITION_SUFFIX)
        for cursor in cursors:
            cursor.forget()
            if separator:
                cursor.presence = Presence.UNKNOWN
        beside = [name for of, name in self.cursors if separator and of.startswith(base)]
        for name in beside:
            if (topic, name) not in self.cursors:
                self.cursor(topic, name).presence = Presence.UNKNOWN

    def cursors_of(self, topic: str) -> list[Cursor]:
        """All subscription names of a topic."""
        return [cursor for (of, _), cursor in self.cursors.items() if of == topic]

    # -- messages --------------------------------------------------------------------------

    def send(self, topic: str, session: int, sizes: Sequence[int]) -> Entry:
        """Make up the next entry: one message for each size, each of its own kind."""
        uid = len(self.entries)
        payloads = tuple(
            (b"%d.%d|" % (uid, index)).ljust(size, b".") for index, size in enumerate(sizes)
        )
        mates = self.sessions.setdefault(session, [])
        entry = Entry(uid, topic, session, len(mates), payloads)
        mates.append(entry)
        self.entries.append(entry)
        return entry

    def learn_ledger(self, ledger_id: int, number: int) -> None:
        """The broker numbers entries of an incarnation by this ledger."""
        known = self.numbers.setdefault(ledger_id, number)
        if known != number:
            raise ViolationError(f"ledger {ledger_id} belongs to topics {known} and {number}")

    def promise(self, entry: Entry, position: Position) -> None:
        """A client received the position of a stored entry."""
        self.locate(entry, position)
        entry.promised = True

    def receipt(self, entry: Entry, position: Position) -> None:
        """The producer of the entry received its receipt, in the order of its sends."""
        self.receipts += 1
        self.promise(entry, position)
        if entry.index <= self._last_receipt.get(entry.session, -1):
            raise ViolationError(f"the receipt of entry {entry.uid} came after a later one's")
        self._last_receipt[entry.session] = entry.index

    def locate(self, entry: Entry, position: Position) -> None:
        """The entry was seen at a position: its only one."""
        if entry.position == position:
            return
        if entry.position is not None:
            raise ViolationError(f"entry {entry.uid} is at {entry.position} and {position}")
        other = self.at.setdefault(position, entry)
        if other is not entry:
            raise ViolationError(f"{position} holds entries {other.uid} and {entry.uid}")
        entry.position = position
        entry.number = self.numbers[position.ledger_id]
        insort(self.of_number.setdefault(entry.number, []), position)

    def identify(self, topic: str, position: Position, payloads: tuple[bytes, ...]) -> Entry:
        """The entry that was sent with this content, which was found at ``position``."""
        head = payloads[0].partition(b".")[0]
        uid = int(head) if head.isdigit() else -1
        if not 0 <= uid < len(self.entries):
            raise ViolationError(f"{topic} {position} holds what was never sent: {payloads[0]!r}")
        entry = self.entries[uid]
        if entry.payloads != payloads:
            raise ViolationError(f"{topic} {position} holds entry {uid} altered")
        if entry.topic != topic:
            raise ViolationError(f"{topic} {position} holds entry {uid}, sent to {entry.topic}")
        self.locate(entry, position)
        return entry

    def between(self, number: int, after: Position, before: Position) -> Iterator[Entry]:
        """Known entries of an incarnation strictly between two positions."""
        known = self.of_number.get(number, [])
        for position in known[bisect_right(known, after) : bisect_left(known, before)]:
            yield self.at[position]

    # -- cursors ---------------------------------------------------------------------------

    @contextmanager
    def moving(self, cursors: Sequence[Cursor]) -> Iterator[Move]:
        """Somebody creates, deletes or moves these cursors meanwhile.

        Unless the outcome is decided, and nobody else was at it, the cursors are loosened.
        """
        for cursor in cursors:
            cursor.muddled = cursor.muddled or cursor.moves > 0 or cursor.touches > 0
            cursor.moves += 1
        move = Move(cursors)
        try:
            yield move
        finally:
            for cursor in cursors:
                cursor.moves -= 1
                self._end(cursor, decided=move.decided)

    @contextmanager
    def touching(self, cursor: Cursor, *, latest: bool) -> Iterator[None]:
        """Somebody connects to a cursor meanwhile, which is made if there is none."""
        present = cursor.presence is Presence.PRESENT
        cursor.muddled = cursor.muddled or cursor.moves > 0 or (cursor.touches > 0 and not present)
        cursor.touches += 1
        decided = present
        try:
            yield
            if cursor.presence is Presence.ABSENT:
                first = self.first_of(cursor.topic)
                cursor.place(START, first, self.last_uid if latest else -1)
                decided = True
            elif cursor.presence is Presence.UNKNOWN:
                # It may be made only now: then nobody owed what the topic gave up meanwhile.
                cursor.presence = Presence.PRESENT
                cursor.may_before = max(cursor.may_before, self.first_of(cursor.topic))
                cursor.may_uid = self.last_uid if latest else cursor.may_uid
                decided = True
        finally:
            cursor.touches -= 1
            self._end(cursor, decided=decided)

    def _end(self, cursor: Cursor, *, decided: bool) -> None:
        if cursor.muddled or not decided:
            cursor.loosen(self.last_uid)
        if not cursor.moves and not cursor.touches:
            cursor.muddled = False

    def power_cut(self, now_ns: int, calm_since_ns: int, safe_ns: int = ACK_SAFE_NS) -> None:
        """The machine stopped now; since ``calm_since_ns`` its disk had been well."""
        for cursor in self.cursors.values():
            cursor.settle_by_age(now_ns, calm_since_ns, safe_ns)
