"""Telemetry records of what was inferred: the rows of a window, from figures.

A law: times are arguments. A window that was not stored counts as not made: the rows of the next
one reach back to the last stored one, so that no time is lost.

The first row of a subject covers no time: counting begins with it, and later rows have what was
added since. Each of these covers the time from the row before to the subject's last look, so a
subject without a new look has no row. The present state is left out: a reader would let it go on
until the next row, and nobody looked in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from headgate.agent.figures import SubjectFigures
from headgate.base.names import parse_topic
from headgate.base.units import INT64_MAX
from headgate.record.codec import BatchHeader, Columns, Value, encode_window
from headgate.record.fields import UNKNOWN_INCARNATION, Kind, Nature, field_names, told_count

ROWS_ENCODED: Final = 2_048
"""Rows of one broker and kind that are encoded at a time: a few hundred KiB."""

CLOCK_STEP_NS: Final = 100_000_000
"""A wall clock that moved by more against the monotonic one was stepped."""

_KINDS: Final = (Kind.TOPIC, Kind.SUBSCRIPTION)
_NAMES: Final = {kind: frozenset(field_names(kind)) for kind in _KINDS}
_CUMULATIVE: Final = {kind: field_names(kind, Nature.CUMULATIVE) for kind in _KINDS}


class Instants(NamedTuple):
    """One instant on both clocks."""

    wall_ns: int
    """Since the epoch."""
    monotonic_ns: int


class Record(NamedTuple):
    """One encoded message of a window."""

    header: BatchHeader
    seq: int
    data: bytes


@dataclass(slots=True)
class _Covered:
    """How far the rows of one subject reach, in wall-clock time."""

    counting_ns: int
    """``since_ns`` of the subject's figures, by which another start of counting is seen."""
    since_ns: int
    until_ns: int
    looked_ns: int
    """``at_ns`` of the last row, monotonic."""
    begin: dict[str, int]
    """Cumulative values of the first row."""
    last: dict[str, int]
    """Those of the last row: none of them may fall."""
    window: int = 0


class RecordWindows:
    """Makes the messages of one window after the other, of one cluster."""

    def __init__(self, source: str, cluster: str, boot_id: str, start: Instants) -> None:
        """``source`` is the same over restarts, ``boot_id`` another at each."""
        self._source = source
        self._cluster = cluster
        self._boot_id = boot_id
        self._offset_ns = start.wall_ns - start.monotonic_ns
        self._ended_ns = start.wall_ns
        self._seq = 0
        self._number = 0
        self._covered: dict[tuple[str, str | None], _Covered] = {}
        """What the stored windows cover."""
        self._made: dict[tuple[str, str | None], _Covered] = {}
        """What the last window covers beyond that; nothing of it counts before :meth:`commit`."""
        self._made_ended_ns = start.wall_ns
        self._made_seq = 0
        self._stepped = False
        """Whether the wall clock was stepped since the last stored window."""

    def window(self, figures: Iterable[SubjectFigures], end: Instants) -> Iterator[Record]:
        """The messages of the window that ends at ``end``; at least one.

        Read it to its end, then call :meth:`commit` if they are stored.
        """
        offset_ns = end.wall_ns - end.monotonic_ns
        self._stepped |= abs(offset_ns - self._offset_ns) > CLOCK_STEP_NS
        self._offset_ns = offset_ns
        self._number += 1
        self._made, self._made_seq, self._made_ended_ns = {}, self._seq, end.wall_ns
        start_ns = min(self._ended_ns, end.wall_ns)
        rows: dict[tuple[str, Kind], list[dict[str, Value]]] = {}
        for each in figures:
            row = self._row(each, end)
            if row is None:
                continue
            kind = Kind.TOPIC if each.subscription is None else Kind.SUBSCRIPTION
            waiting = rows.setdefault((each.owner, kind), [])
            waiting.append(row)
            if len(waiting) >= ROWS_ENCODED:
                del rows[each.owner, kind]
                yield from self._encoded(each.owner, {kind: waiting}, start_ns, end)
        by_owner: dict[str, dict[Kind, list[dict[str, Value]]]] = {}
        for (owner, kind), waiting in rows.items():
            by_owner.setdefault(owner, {})[kind] = waiting
        for owner, kinds in by_owner.items():
            yield from self._encoded(owner, kinds, start_ns, end)
        if self._made_seq == self._seq:
            yield from self._encoded("", {}, start_ns, end)
        self._forget()

    def commit(self) -> None:
        """The last window, which was read to its end, is stored."""
        self._covered |= self._made
        self._ended_ns, self._seq = self._made_ended_ns, self._made_seq
        self._made, self._stepped = {}, False

    def _row(self, figures: SubjectFigures, end: Instants) -> dict[str, Value] | None:
        kind = Kind.TOPIC if figures.subscription is None else Kind.SUBSCRIPTION
        key = figures.topic, figures.subscription
        # A look of the future would give a row that covers time after its window.
        looked_ns = min(figures.at_ns, end.monotonic_ns)
        until_ns = looked_ns + self._offset_ns
        counts = {
            name: value
            for name in _CUMULATIVE[kind]
            if isinstance(value := figures.values.get(name), int)
        }
        covered = self._covered.get(key)
        if covered is not None:
            covered.window = self._number
        if covered is None or _begins_anew(covered, figures, counts):
            covered = _Covered(figures.since_ns, until_ns, until_ns, looked_ns - 1, counts, counts)
        if looked_ns <= covered.looked_ns:
            return None
        from_ns = min(covered.until_ns, until_ns)  # the wall clock may have been set back
        self._made[key] = replace(
            covered, until_ns=until_ns, looked_ns=looked_ns, last=counts, window=self._number
        )
        name = parse_topic(figures.topic)
        row = {
            field: _in_64_bits(value)
            for field, value in figures.values.items()
            if field in _NAMES[kind]
        }
        # A count that was not known at first counts from then on.
        row |= {
            field: told_count(n - covered.begin.setdefault(field, n)) for field, n in counts.items()
        }
        row |= {
            "topic": name.base.full,
            "partition": None if name.partition < 0 else name.partition,
            "incarnation": UNKNOWN_INCARNATION,
            "covered_from_ns": from_ns,
            "covered_to_ns": until_ns,
            "counting_since_ns": min(covered.since_ns, from_ns),
            "gone": False,
        }
        if figures.subscription is not None:
            row |= {"subscription": figures.subscription, "state": None}
        return row

    def _encoded(
        self,
        owner: str,
        kinds: dict[Kind, list[dict[str, Value]]],
        start_ns: int,
        end: Instants,
    ) -> Iterator[Record]:
        tables = {kind: _columns(rows) for kind, rows in kinds.items()}
        # Rows reach back to the looks before this window.
        begins = [
            value
            for columns in tables.values()
            for value in columns["covered_from_ns"]
            if isinstance(value, int)
        ]
        header = BatchHeader(
            source=self._source,
            cluster=self._cluster,
            broker=owner,
            boot_id=self._boot_id,
            window_start_ns=max(0, min([start_ns, *begins])),
            window_end_ns=end.wall_ns,
            clock_step=self._stepped,
            is_inferred=True,
        )
        first, messages = self._made_seq, encode_window(header, self._made_seq, tables)
        self._made_seq += len(messages)
        for place, data in enumerate(messages):
            yield Record(header, first + place, data)

    def _forget(self) -> None:
        """Forget the subjects that the history has no more."""
        gone = [key for key, each in self._covered.items() if each.window != self._number]
        for key in gone:
            del self._covered[key]


def _begins_anew(covered: _Covered, figures: SubjectFigures, counts: dict[str, int]) -> bool:
    return covered.counting_ns != figures.since_ns or any(
        value < covered.last.get(name, 0) for name, value in counts.items()
    )


def _in_64_bits(value: Value) -> Value:
    """A value as a record can have it. What a cluster tells of one topic may be any number, and
    must not keep the rows of all others from being stored."""
    if isinstance(value, int) and not -INT64_MAX <= value <= INT64_MAX:
        return INT64_MAX if value > 0 else -INT64_MAX
    return value


def _columns(rows: list[dict[str, Value]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
