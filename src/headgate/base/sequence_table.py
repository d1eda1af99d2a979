"""The highest sequence ids that producers of one topic stored, by producer name.

The table of a topic with message deduplication (broker setting ``brokerDeduplicationEnabled``). The
engine asks it whether a message is new; the commit log stores it in its checkpoints and rebuilds it
from the entries behind them. So both share this type, as they share
:class:`headgate.base.ack_set.AckSet`.

An id is *staged* when an entry with it is staged, and *stored* when that entry is durable. A commit
that fails takes its entries back, and their ids with them.

Stored form (little endian), one row after another::

    u16 name size | i64 highest id | i64 inactive since (ms, time of the log; 0: connected)
    | name (UTF-8)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import takewhile
from typing import Final, NamedTuple

from headgate.base.errors import CorruptionError
from headgate.base.owner_shares import OWNERS_BOUNDS, SMALL_BOUNDS, OwnerShares
from headgate.base.text_memory import text_bytes

_ROW = struct.Struct("<Hqq")

PRODUCERS_MAX = (1 << 31) - 1
"""The bound of a table whose topic is not loaded: none."""


class Seen(IntEnum):
    """What a table knows of a message."""

    NEW = 0
    """Its id is above every id of its producer."""
    STORED = 1
    """An entry with its id or a higher one is durable: it is a duplicate."""
    STAGED = 2
    """An entry with its id or a higher one is staged: nobody knows yet."""


_NEW, _STORED, _STAGED = Seen


class SequenceRow(NamedTuple):
    """One producer of a table."""

    name: str
    last_id: int
    """The highest id that it stored."""
    inactive_since_ms: int
    """When it disconnected, in the time of the log; 0 if it is connected, or if that is unknown."""


ROW_BYTES: Final = 200
"""What a row takes in memory beside the characters of its name."""


class SequenceTotal:
    """What several tables take together."""

    __slots__ = ("__weakref__", "_bytes_max", "part", "shares")

    def __init__(self, bytes_max: int) -> None:
        """Beyond one and a half times ``bytes_max`` the tables of a topic that takes at least as
        much as the others on average, with all partitions, forget somebody who is not connected for
        a name that they get; beyond twice ``bytes_max`` all do."""
        self._bytes_max = bytes_max
        self.part = 1.0
        """The part of the bound that is there now."""
        self.shares = OwnerShares()
        """What each topic takes, with its partitions."""

    @property
    def held_bytes(self) -> int:
        """What all take."""
        return self.shares.total

    def is_too_much(self, topic: str) -> bool:
        """Whether a table of a topic has to forget somebody. Else who sends to one topic by very
        many names would have the producers of all other topics forgotten when they leave."""
        bounds = SMALL_BOUNDS if self.shares.takes_most(topic) else OWNERS_BOUNDS
        return self.held_bytes > bounds * self.part * self._bytes_max


class SequenceTable:
    """The producers of one topic that deduplication knows."""

    __slots__ = (
        "_held_bytes",
        "_inactive",
        "_leaving",
        "_topic",
        "_total",
        "last",
        "moves",
        "names_max",
        "staged",
    )

    def __init__(self, rows: Iterable[SequenceRow] = ()) -> None:
        self.last: dict[str, int] = {}
        """The highest stored id, by name. Read only, as the next two: each message reads them."""
        self.staged: dict[str, int] = {}
        """The highest staged id of producers with staged entries."""
        self.moves: list[tuple[int, str, int]] = []
        """The ordinal, name and id of each staged entry, oldest first."""
        self._inactive: dict[str, int] = {}
        """When producers disconnected, the longest ago first."""
        self._leaving: dict[str, int] = {}
        """The same of those without a row, which get one when their entries are durable."""
        self.names_max = PRODUCERS_MAX
        """A new name takes the place of the one that is inactive for longest above this number. If
        all are connected, the table grows: clients' memory bounds them."""
        self._held_bytes = 0
        self._total: SequenceTotal | None = None
        self._topic = ""
        self.take_rows(rows)

    def __len__(self) -> int:
        return len(self.last)

    # What a message is ----------------------------------------------------------------------

    def seen(self, name: str, first_id: int) -> Seen:
        """What is known of a message, or of a batch whose first message has this id."""
        last = self.staged.get(name)
        if last is None:
            last = self.last.get(name)
            return _NEW if last is None or first_id > last else _STORED
        if first_id > last:
            return _NEW
        stored = self.last.get(name)
        return _STAGED if stored is None or first_id > stored else _STORED

    def last_id(self, name: str) -> int:
        """The highest id that a producer stored; -1 if the table does not know the producer."""
        return self.last.get(name, -1)

    def has_staged(self, name: str) -> bool:
        """Whether an entry of a producer is staged and not durable."""
        return name in self.staged

    # Entries --------------------------------------------------------------------------------

    def entry_staged(self, ordinal: int, name: str, last_id: int) -> None:
        """An entry is staged, which is new; ``last_id`` is the id of its last message."""
        self.staged[name] = last_id
        self.moves.append((ordinal, name, last_id))

    def entries_durable(self, end: int) -> None:
        """The entries below ``end`` are durable."""
        moves = self.moves
        if not moves or moves[0][0] >= end:
            return
        if moves[-1][0] < end:
            for name, last_id in self.staged.items():
                self.store(name, last_id)
            moves.clear()
            self.staged.clear()
            self._leaving.clear()
            return
        done = 0
        for ordinal, name, last_id in moves:
            if ordinal >= end:
                break
            done += 1
            self.store(name, last_id)
            # Now, and not when nothing is staged: on a topic to which somebody always sends, that
            # never comes.
            if self.staged.get(name) == last_id:
                del self.staged[name]
                self._leaving.pop(name, None)
        del moves[:done]

    def entries_lost(self) -> None:
        """What is staged will not be stored: its ids are free again."""
        self.moves.clear()
        self.staged.clear()
        self._leaving.clear()

    def store(self, name: str, last_id: int) -> None:
        """An entry is durable. Doing so twice, or in another order, changes nothing."""
        last = self.last.get(name)
        if last is None:
            if len(self.last) >= self.names_max and self._inactive:
                self._forget(next(iter(self._inactive)))
            self.last[name] = last_id
            if name in self._leaving:
                self._inactive[name] = self._leaving.pop(name)
            self._hold(_row_bytes(name))
            self._keep_total(_row_bytes(name))
        elif last_id > last:
            self.last[name] = last_id

    # Producers ------------------------------------------------------------------------------

    def connected(self, name: str) -> None:
        """A producer with this name is connected: its row stays."""
        self._inactive.pop(name, None)
        self._leaving.pop(name, None)

    def disconnected(self, name: str, log_ms: int) -> None:
        """The producer with this name is gone."""
        if name in self.last:
            self._inactive.pop(name, None)
            self._inactive[name] = log_ms
            self._keep_total(_row_bytes(name))
        elif name in self.staged:
            self._leaving[name] = log_ms

    def all_disconnected(self, log_ms: int) -> None:
        """No producer is connected: those of which no time is known are inactive from now on."""
        for name in self.last:
            self._inactive.setdefault(name, log_ms)

    def forget_inactive(self, before_ms: int, names_max: int) -> int:
        """Forget the producers that are inactive since ``before_ms`` or longer, and those above
        ``names_max`` that are inactive for longest; returns how many. At most that many rows of
        producers that are not connected remain."""
        self.names_max = names_max
        over = max(len(self.last) - names_max, 0)
        old = sum(1 for _ in takewhile(lambda since: since <= before_ms, self._inactive.values()))
        gone = list(self._inactive)[: max(over, old)] if over or old else []
        for name in gone:
            self._forget(name)
        return len(gone)

    def _forget(self, name: str) -> None:
        """Forget an inactive producer. It has a row again if an entry of it becomes durable later,
        which must not stay for ever."""
        since_ms = self._inactive.pop(name)
        if name in self.staged:
            self._leaving[name] = since_ms
        del self.last[name]
        self._hold(-_row_bytes(name))

    # Memory ---------------------------------------------------------------------------------

    def join(self, total: SequenceTotal, topic: str) -> None:
        """Count in ``total`` from now on, for ``topic``, and in no other."""
        if total is not self._total:
            self.leave()
            self._total, self._topic = total, topic
            self._count(self._held_bytes)

    def leave(self) -> None:
        """Count in no total: nobody needs the table any more."""
        self._count(-self._held_bytes)
        self._total = None

    def _hold(self, more_bytes: int) -> None:
        self._held_bytes += more_bytes
        self._count(more_bytes)

    def _count(self, more_bytes: int) -> None:
        if self._total is not None:
            self._total.shares.count(self._topic, more_bytes)

    def _keep_total(self, more_bytes: int) -> None:
        """Beyond the total, forget the inactive for a row that came, or became inactive: as many
        as make up for it, and not those that were there before the total was exceeded."""
        total = self._total
        if total is None:
            return
        while more_bytes > 0 and self._inactive and total.is_too_much(self._topic):
            name = next(iter(self._inactive))
            more_bytes -= _row_bytes(name)
            self._forget(name)

    # The stored form ------------------------------------------------------------------------

    def rows(self, end: int) -> Iterator[SequenceRow]:
        """A row for each producer, with the entries below ``end``. The table may change between
        two rows; then a name that it got since is missing, or one that it lost."""
        newer: dict[str, int] = {}
        for ordinal, name, last_id in self.moves:
            if ordinal < end:
                newer[name] = last_id
        for name in [*self.last, *(name for name in newer if name not in self.last)]:
            ids = [one for one in (self.last.get(name), newer.get(name)) if one is not None]
            if ids:
                since_ms = self._inactive.get(name) or self._leaving.get(name, 0)
                yield SequenceRow(name, max(ids), since_ms)

    def take_rows(self, rows: Iterable[SequenceRow]) -> None:
        """Add stored rows."""
        for name, last_id, inactive_since_ms in rows:
            self.store(name, last_id)
            if inactive_since_ms:
                self._inactive[name] = inactive_since_ms


def _row_bytes(name: str) -> int:
    return ROW_BYTES + text_bytes(name)


def encode_rows(rows: Iterable[SequenceRow]) -> bytes:
    """The stored form of rows."""
    parts: list[bytes] = []
    for name, last_id, inactive_since_ms in rows:
        encoded = name.encode()
        parts += (_ROW.pack(len(encoded), last_id, inactive_since_ms), encoded)
    return b"".join(parts)


def decode_rows(data: bytes) -> Iterator[SequenceRow]:
    """Read the stored form. Raises :class:`CorruptionError` if ``data`` is not one."""
    at = 0
    while at < len(data):
        try:
            size, last_id, inactive_since_ms = _ROW.unpack_from(data, at)
            at += _ROW.size
            name = data[at : at + size].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise CorruptionError(f"a row of sequence ids is damaged: {error}") from error
        at += size
        if at > len(data):
            raise CorruptionError("a row of sequence ids is cut off")
        yield SequenceRow(name, last_id, inactive_since_ms)
