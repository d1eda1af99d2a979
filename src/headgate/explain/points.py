"""One subscription's counters at one instant, packed into few bytes for the history."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headgate.base.units import INT64_MAX
from headgate.flow.account.account import CELL_COUNT, Cell
from headgate.flow.limits.rate_limit import Level, RateLimit

LIMIT_HASH_BITS = 21
"""Bits of the hash of one level's limit; those of three levels fit into 63."""
LIMIT_HASH_MAX = (1 << LIMIT_HASH_BITS) - 1

_FIGURES = 17
"""Figures of every packed point, before the time in each state."""
_HEAD = struct.Struct(f"<{_FIGURES}q")
_AT = struct.Struct("<q")
_FORMS = [struct.Struct(f"<{_FIGURES + spent}q") for spent in range(CELL_COUNT + 1)]


@dataclass(slots=True)
class Point:
    """One subscription at one instant. Counts are messages and cumulative; ``in_flight`` and the
    ages are present values. Do not change one: it is not frozen because that takes three times as
    long to make."""

    cell: Cell
    """The state that the account is in."""
    cells_ns: tuple[int, ...]
    """Time in each state of the account."""
    at_ns: int
    appended: int
    """Messages appended to the topic since its creation."""
    done: int
    """Those of them that are not in the backlog."""
    sent: int
    sent_bytes: int
    acked: int
    skipped: int
    rewound: int
    expired: int
    evicted: int
    redelivered: int
    in_flight: int
    delayed: int
    """Messages that are not due yet."""
    age_ns: int
    """Age of the oldest unacknowledged message that could be delivered, for a delayed one since it
    is due; 0 without one."""
    age_ns_max: int
    """The largest such age since the point before."""
    limits: int
    """Hashes of the effective limits, which :func:`changed_levels` compares."""

    @property
    def backlog(self) -> int:
        """Messages not acknowledged."""
        return self.appended - self.done

    @property
    def deliverable(self) -> int:
        """Messages not acknowledged, without those that are not due yet."""
        return self.appended - self.done - self.delayed

    @property
    def arrived(self) -> int:
        """Grows with each message that may be delivered: it was published or became due."""
        return self.appended - self.delayed


def limits_hash(limits: Sequence[RateLimit | None]) -> int:
    """:data:`LIMIT_HASH_BITS` bits for each level (index :class:`Level`), 0 where it has no
    limit."""
    hashes = 0
    for level, limit in zip(Level, limits, strict=True):
        if limit is not None:
            hashes |= (hash(limit) % (LIMIT_HASH_MAX - 1) + 1) << LIMIT_HASH_BITS * level
    return hashes


def changed_levels(before: Point, after: Point) -> frozenset[Level]:
    """The levels at which another limit was effective at the second point."""
    different = before.limits ^ after.limits
    return frozenset(
        level for level in Level if different >> LIMIT_HASH_BITS * level & LIMIT_HASH_MAX
    )


def encode(point: Point) -> bytes:
    """The compact form: a fixed head, then the cells that are not zero.

    An account visits about five of its 24 cells.
    """
    mask = 0
    spent = [ns for ns in point.cells_ns if ns]
    at = -1
    for ns in spent:
        at = point.cells_ns.index(ns, at + 1)
        mask |= 1 << at
    figures = (
        point.at_ns,
        point.appended,
        point.done,
        point.sent,
        point.sent_bytes,
        point.acked,
        point.skipped,
        point.rewound,
        point.expired,
        point.evicted,
        point.redelivered,
        point.in_flight,
        point.delayed,
        point.age_ns,
        point.age_ns_max,
        point.limits,
        point.cell << CELL_COUNT | mask,
        *spent,
    )
    form = _FORMS[len(spent)]
    try:
        return form.pack(*figures)
    except struct.error:
        # A client drove a count beyond 63 bits: it stays there, so that others are observed.
        return form.pack(*(min(figure, INT64_MAX) for figure in figures))


def decode(record: bytes) -> Point:
    """The point that :func:`encode` packed."""
    *figures, cell_and_mask = _HEAD.unpack_from(record)
    cells = [0] * CELL_COUNT
    offset = _HEAD.size
    for index in range(CELL_COUNT):
        if cell_and_mask >> index & 1:
            cells[index] = _AT.unpack_from(record, offset)[0]
            offset += _AT.size
    return Point(Cell(cell_and_mask >> CELL_COUNT), tuple(cells), *figures)


def at_ns_of(record: bytes) -> int:
    """When a packed point was taken, without unpacking all of it."""
    at_ns: int = _AT.unpack_from(record)[0]
    return at_ns


def later(point: Point, at_ns: int) -> Point:
    """The same subscription at a later instant, if it did nothing but wait in between."""
    elapsed_ns = at_ns - point.at_ns
    cells = list(point.cells_ns)
    cells[point.cell] += elapsed_ns
    age = point.age_ns + elapsed_ns if point.deliverable else 0
    return replace(point, at_ns=at_ns, age_ns=age, age_ns_max=age, cells_ns=tuple(cells))
