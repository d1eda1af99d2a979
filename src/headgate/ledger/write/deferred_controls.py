"""Control records that wait for room, by cursor and topic.

A record is built from the present state only when it can be staged. So the memory used here grows
with the number of cursors and topics, not with what clients do while the disk is full.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.ledger.format.records import (
    KIND_ACKS,
    KIND_CREATE,
    KIND_DELETE,
    KIND_PROPERTIES,
    KIND_SEQUENCES,
    KIND_TRIM,
)

RESTATED: Final = 0x100 | KIND_CREATE
"""A CREATE record of a cursor that has one already: it replaces the whole state, so it stands for a
change of properties and for acknowledgements that wait. In distinction to the first one, the log
may hold an earlier record, which a deletion has to undo."""

_RECORD_KIND_MASK: Final = 0xFF


class Control(NamedTuple):
    """The subject of a control record: enough to build the record again."""

    kind: int
    """``KIND_CREATE``, ``RESTATED``, ``KIND_ACKS``, ``KIND_PROPERTIES``, ``KIND_DELETE``,
    ``KIND_TRIM`` or ``KIND_SEQUENCES``."""
    key: int
    """The cursor's id; the topic's number of a trim or of sequence ids."""
    first_ordinal: int = 0
    """The first entry that a trim keeps."""

    @property
    def record_kind(self) -> int:
        """The kind of its record."""
        return self.kind & _RECORD_KIND_MASK


class DeferredControls:
    """Controls that wait for room, at most one of each cursor and two of each topic."""

    __slots__ = ("_cursors", "_sequences", "_trims")

    def __init__(self) -> None:
        self._cursors: dict[int, int] = {}
        self._trims: dict[int, int] = {}
        self._sequences: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._cursors) + len(self._trims) + len(self._sequences)

    def creations(self) -> frozenset[int]:
        """The ids of the cursors whose creation waits: the log has no record of them."""
        return frozenset(key for key, kind in self._cursors.items() if kind == KIND_CREATE)

    def add(self, control: Control) -> None:
        """Defer a control; combine it with a deferred one of the same cursor or topic.

        A cursor's deletion may come before its creation, if the batch of the creation fails later.
        """
        kind, key, first_ordinal = control
        if kind == KIND_PROPERTIES:
            kind = RESTATED
        known = self._cursors.get(key)
        if kind == KIND_TRIM:
            self._trims[key] = max(first_ordinal, self._trims.get(key, 0))
        elif kind == KIND_SEQUENCES:
            self._sequences[key] = None
        elif {kind, known} == {KIND_CREATE, KIND_DELETE}:
            del self._cursors[key]  # no record of it was ever stored
        elif kind == RESTATED and known in (KIND_CREATE, KIND_DELETE):
            pass  # the creation has its present state; the deletion ends it
        elif kind != KIND_ACKS:
            self._cursors[key] = kind
        elif known is None:
            self._cursors[key] = KIND_ACKS

    def take(self) -> Control:
        """Remove and return a control; :meth:`add` puts it back. Trims come first: they free room,
        and a record that finds none must not hold them up."""
        if self._trims:
            return Control(KIND_TRIM, *self._trims.popitem())
        if self._cursors:
            key, kind = self._cursors.popitem()
            return Control(kind, key)
        return Control(KIND_SEQUENCES, self._sequences.popitem()[0])

    def forget_cursor(self, cursor_id: int) -> None:
        """Drop the control of a cursor whose topic is deleted."""
        self._cursors.pop(cursor_id, None)

    def forget_topic(self, topic_number: int) -> None:
        """Drop the controls of a deleted topic itself."""
        self._trims.pop(topic_number, None)
        self._sequences.pop(topic_number, None)
