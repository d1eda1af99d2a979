"""Rows in two views: durable, and staged with all changes in flight.

Readers see the durable view only. A new change is validated against the *staged* view, so that a
second identical create is refused while the first one is being written. Changes are applied in the
order of staging, which is the order of commits. If a commit fails, all changes staged after it
depend on something that did not happen, so they are abandoned together.

The staged view is an overlay over the durable one, so staging costs the size of the change only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from headgate.base.errors import CorruptionError, invariant
from headgate.base.memory_room import MemoryRoom, NoMemoryLimit
from headgate.base.sparse_counter import SparseCounter
from headgate.metadata.name_totals import NameTotals
from headgate.metadata.property_totals import PropertyTotals
from headgate.metadata.rows import ROW_TYPES, TOPIC_NUMBER_MAX, CounterRow, Kind, Row, TopicRow
from headgate.metadata.store import Write

REVISION: Final = "revision"

_encoder = msgspec.json.Encoder()
_decoders = {kind: msgspec.json.Decoder(type_) for kind, type_ in ROW_TYPES.items()}


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row before and after a change. ``before`` may be in flight itself."""

    kind: Kind
    key: str
    before: Row | None
    after: Row | None

    @property
    def write(self) -> Write:
        """What the store must commit of it. Rows never change, so any thread may encode one.

        Raises:
            ValueError: a start would read another row, or none: a single row that cannot be read
                keeps a broker from starting.
        """
        if self.after is None:
            return Write(self.kind.value, self.key, None)
        value = _encoder.encode(self.after)
        if _decoders[self.kind].decode(value) != self.after:
            raise ValueError(f"{self.kind.value} {self.key!r} is not read as it is written")
        return Write(self.kind.value, self.key, value)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A validated, staged change: the caller commits it, then applies (or abandons) it."""

    rows: tuple[RowChange, ...]
    """The changed rows; after :meth:`RowState.apply` the broker acts on them."""

    @property
    def writes(self) -> list[Write]:
        """The writes that the store must commit in one transaction."""
        return [row.write for row in self.rows]


@dataclass(slots=True)
class _Staged:
    row: Row | None
    change: Change


class RowState:
    """All rows of a catalog. Not thread-safe."""

    def __init__(self, stored: Mapping[tuple[str, str], bytes]) -> None:
        """Decode the rows of a store.

        Raises:
            CorruptionError: a row is of an unknown kind or cannot be decoded.
        """
        self._rows: dict[Kind, dict[str, Row]] = {kind: {} for kind in Kind}
        self._sorted: dict[tuple[Kind, str], list[str]] = {}
        self._overlay: dict[tuple[Kind, str], _Staged] = {}
        self._staged_more: SparseCounter[tuple[Kind, str]] = SparseCounter()
        """How many rows the staged view has more (or, negative, fewer) than the durable one, by
        kind and parent. The overlay may have thousands of rows of others."""
        self._in_flight: deque[Change] = deque()
        self._properties, self._names = PropertyTotals(), NameTotals()
        self._totals = self._properties, self._names
        for (kind_text, key), value in stored.items():
            kind, row = decode_row(kind_text, key, value)
            self._rows[kind][key] = row
            for totals in self._totals:
                totals.stored(kind, key, row)
            self._sorted.setdefault((kind, parent_of(kind, key)), []).append(key)
        for keys in self._sorted.values():
            keys.sort()
        self._revision_last = self.revision
        self.memory_room: MemoryRoom = NoMemoryLimit()
        """What the memory of the process leaves to tenants."""

    @property
    def bounded_bytes(self) -> int:
        """What those parts of the rows take that have a bound for each tenant."""
        return sum(totals.all_bytes for totals in self._totals)

    @property
    def revision(self) -> int:
        """A number that grows with every durable change."""
        row = self._rows[Kind.COUNTER].get(REVISION)
        return row.value if isinstance(row, CounterRow) else 0

    @property
    def in_flight_count(self) -> int:
        """Number of changes that are staged and neither applied nor abandoned."""
        return len(self._in_flight)

    def get(self, kind: Kind, key: str) -> Row | None:
        """A row in the durable view."""
        return self._rows[kind].get(key)

    def children(self, kind: Kind, parent: str) -> list[str]:
        """Keys of the durable rows of ``kind`` under ``parent``, sorted. A new list."""
        return list(self._sorted.get((kind, parent), ()))

    def children_after(self, kind: Kind, parent: str, after: str, count_max: int) -> list[str]:
        """The next ``count_max`` of :meth:`children`, of those behind ``after``."""
        keys = self._sorted.get((kind, parent), [])
        first = bisect_right(keys, after)
        return keys[first : first + count_max]

    def last_children(self, kind: Kind, parent: str) -> Iterator[str]:
        """The durable ones of :meth:`children` that no change in flight removes, the last first."""
        for key in reversed(self._sorted.get((kind, parent), ())):
            if self.staged(kind, key) is not None:
                yield key

    def rows(self, kind: Kind) -> Mapping[str, Row]:
        """The durable rows of ``kind``. Do not change the mapping, nor keep it across a change."""
        return self._rows[kind]

    def staged(self, kind: Kind, key: str) -> Row | None:
        """A row in the staged view."""
        entry = self._overlay.get((kind, key))
        return self._rows[kind].get(key) if entry is None else entry.row

    def staged_children(self, kind: Kind, parent: str) -> Iterator[str]:
        """Keys of ``kind`` under ``parent`` in the staged view, unsorted."""
        for key in self._sorted.get((kind, parent), ()):
            if (kind, key) not in self._overlay:
                yield key
        for (staged_kind, key), entry in self._overlay.items():
            if staged_kind is kind and entry.row is not None and parent_of(kind, key) == parent:
                yield key

    def staged_count(self, kind: Kind, parent: str) -> int:
        """How many rows of ``kind`` are under ``parent`` in the staged view."""
        return len(self._sorted.get((kind, parent), ())) + self._staged_more[kind, parent]

    def stage(self, rows: Iterable[tuple[Kind, str, Row | None]]) -> Change:
        """Stage validated rows with the next revision.

        Raises:
            RefusalError: 412, for too many bytes of properties, or of names in grants and
                policies, of a tenant.
        """
        revision = self._revision_last + 1
        numbered = [*rows, (Kind.COUNTER, REVISION, CounterRow(revision))]
        change = Change(
            tuple(
                RowChange(kind, key, self.staged(kind, key), after) for kind, key, after in numbered
            )
        )
        grown = [totals.grown(change.rows, self.memory_room.part) for totals in self._totals]
        self._revision_last = revision
        for row in change.rows:
            self._overlay[(row.kind, row.key)] = _Staged(row.after, change)
            self._count_staged(row, 1)
        for totals, more in zip(self._totals, grown, strict=True):
            totals.staged(more)
        self._in_flight.append(change)
        return change

    def apply(self, change: Change) -> None:
        """Make a durable change visible. Call it in the order of staging."""
        invariant(
            self._in_flight and self._in_flight[0] is change,
            "metadata changes must be applied in the order in which they were planned",
        )
        self._in_flight.popleft()
        for totals in self._totals:
            totals.applied()
        for row in change.rows:
            self._count_staged(row, -1)
            self._set(row.kind, row.key, row.after)
            entry = self._overlay.get((row.kind, row.key))
            if entry is not None and entry.change is change:
                del self._overlay[(row.kind, row.key)]

    def abandon_all(self) -> None:
        """Forget all changes in flight, after a failed commit: later ones depend on it."""
        self._in_flight.clear()
        self._overlay.clear()
        self._staged_more.clear()
        for totals in self._totals:
            totals.abandoned()

    def _count_staged(self, row: RowChange, sign: int) -> None:
        more = (row.after is not None) - (row.before is not None)
        if more:
            self._staged_more[row.kind, parent_of(row.kind, row.key)] += sign * more

    def _set(self, kind: Kind, key: str, row: Row | None) -> None:
        rows = self._rows[kind]
        group = (kind, parent_of(kind, key))
        if row is None:
            if rows.pop(key, None) is not None:
                keys = self._sorted[group]
                del keys[bisect_left(keys, key)]
                if not keys:
                    del self._sorted[group]
            return
        if key not in rows:
            insort(self._sorted.setdefault(group, []), key)
        rows[key] = row


_UNDER_NAMESPACES: Final = frozenset(
    {
        Kind.NAMESPACE,
        Kind.TOPIC,
        Kind.PARTITIONED,
        Kind.TOPIC_POLICIES,
        Kind.SCHEMA,
        Kind.SCHEMA_VERSION,
        Kind.IDLE_SUBSCRIPTIONS,
        Kind.NAMESPACE_GRANTS,
        Kind.TOPIC_GRANTS,
    }
)

_OF_TOPICS: Final = frozenset({Kind.TOPIC, Kind.SCHEMA, Kind.SCHEMA_VERSION})
_TOPIC_SLASHES: Final = 4
"""The slashes of ``domain://tenant/namespace/topic``, at least."""


def parent_of(kind: Kind, key: str) -> str:
    """The parent of a row: of a topic its ``domain://tenant/namespace``, of a version of a schema
    its topic, of a namespace its tenant, of the grants on subscriptions their namespace, of any
    other row ``""``."""
    if kind in _UNDER_NAMESPACES:
        return key.rpartition("/")[0]
    if kind is Kind.SUBSCRIPTION_GRANTS:  # a subscription's name may have slashes
        return "/".join(key.split("/", 2)[:2])
    return ""


def decode_row(kind_text: str, key: str, value: bytes) -> tuple[Kind, Row]:
    """Decode one stored row.

    Raises:
        CorruptionError: the kind is unknown, or key or value do not fit it.
    """
    try:
        kind = Kind(kind_text)
        row = _decoders[kind].decode(value)
        _check_row(kind, key, row)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise CorruptionError(
            f"metadata row kind={kind_text!r} key={key!r} cannot be read: {error}"
        ) from error
    return kind, row


def _check_row(kind: Kind, key: str, row: Row) -> None:
    """Check what the log and the totals of tenants rely on; raises :class:`ValueError`."""
    if isinstance(row, TopicRow):
        if row.name != key:
            raise ValueError(f"its name is {row.name!r}")
        if not 0 < row.number <= TOPIC_NUMBER_MAX:
            raise ValueError(f"its number is {row.number}: 1 to {TOPIC_NUMBER_MAX} is possible")
    if kind in _OF_TOPICS and key.count("/") < _TOPIC_SLASHES:
        raise ValueError("its key is no name of a topic")
