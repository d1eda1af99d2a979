"""The account of time: a subscription is in exactly one state at every instant.

``docs/telemetry.md`` section 1 is the law. A *cell* is a state, split by dimension and by
hungry/busy where a limiter holds; the seconds of all cells add up to the elapsed time exactly,
because time is kept in integer nanoseconds and every instant is booked once. Booking costs one
transition, not a sample.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

from headgate.base.errors import invariant
from headgate.flow.limits.rate_limit import Dimension, Level


class State(Enum):
    """What a subscription is doing; the first that applies counts. Values are metric labels."""

    TRANSITION = "transition"
    CAUGHT_UP = "caught_up"
    AWAITING_ACK = "awaiting_ack"
    NO_CONSUMER = "no_consumer"
    UNACKED_LIMIT = "unacked_limit"
    NO_PERMITS = "no_permits"
    SOCKET_FULL = "socket_full"
    KEY_BLOCKED = "key_blocked"
    THROTTLED_SUBSCRIPTION = "throttled_subscription"
    THROTTLED_TOPIC = "throttled_topic"
    THROTTLED_BROKER = "throttled_broker"
    STORAGE = "storage"
    DISPATCHING = "dispatching"


class Cell(IntEnum):
    """Where time is booked. The ten plain states, then the twelve throttled cells:
    ``THROTTLED + 4 * level + 2 * dimension + busy`` (see :func:`throttled_cell`)."""

    TRANSITION = 0
    CAUGHT_UP = 1
    AWAITING_ACK = 2
    NO_CONSUMER = 3
    UNACKED_LIMIT = 4
    NO_PERMITS = 5
    SOCKET_FULL = 6
    KEY_BLOCKED = 7
    STORAGE = 8
    DISPATCHING = 9
    SUBSCRIPTION_MESSAGES_HUNGRY = 10
    SUBSCRIPTION_MESSAGES_BUSY = 11
    SUBSCRIPTION_BYTES_HUNGRY = 12
    SUBSCRIPTION_BYTES_BUSY = 13
    TOPIC_MESSAGES_HUNGRY = 14
    TOPIC_MESSAGES_BUSY = 15
    TOPIC_BYTES_HUNGRY = 16
    TOPIC_BYTES_BUSY = 17
    BROKER_MESSAGES_HUNGRY = 18
    BROKER_MESSAGES_BUSY = 19
    BROKER_BYTES_HUNGRY = 20
    BROKER_BYTES_BUSY = 21


FIRST_THROTTLED = int(Cell.SUBSCRIPTION_MESSAGES_HUNGRY)
"""From this cell on, all cells are waits at a limiter."""
_ALL_CELLS = tuple(Cell)
CELL_COUNT = len(_ALL_CELLS)


@dataclass(frozen=True, slots=True)
class CellLabels:
    """A cell as metrics name it: ``dimension`` and ``consumer`` are empty where they do not
    apply; ``level`` is None unless a limiter holds."""

    state: State
    dimension: str
    consumer: str
    level: Level | None


def _labels(cell: Cell) -> CellLabels:
    if cell < FIRST_THROTTLED:
        return CellLabels(State[cell.name], "", "", None)
    level = Level((cell - FIRST_THROTTLED) // 4)
    return CellLabels(
        State[f"THROTTLED_{level.name}"],
        Dimension((cell - FIRST_THROTTLED) // 2 % 2).name.lower(),
        "busy" if cell % 2 else "hungry",
        level,
    )


LABELS: tuple[CellLabels, ...] = tuple(_labels(cell) for cell in _ALL_CELLS)
"""Indexed by :class:`Cell`."""


def throttled_cell(level: Level, dimension: Dimension, *, hungry: bool) -> Cell:
    """The cell for a wait on that limiter."""
    return _ALL_CELLS[FIRST_THROTTLED + 4 * level + 2 * dimension + (not hungry)]


def is_hungry(permits: int, permits_max: int) -> bool:
    """Whether at least half of a consumer's window is free. ``permits_max`` is its window: the
    largest permit total it ever had. Clients return permits in lumps of half their queue, so a
    consumer below that mark still works on what it has."""
    return permits > 0 and 2 * permits >= permits_max


class Account:
    """Nanoseconds per cell since the account was opened. Idle accounts cost < 150 bytes: the
    table of cells comes into being with the first move that books time."""

    __slots__ = ("_booked_ns", "_since_ns", "cell", "entered_ns", "opened_ns")

    def __init__(self, now_ns: int, cell: Cell = Cell.TRANSITION) -> None:
        self.opened_ns = now_ns
        self.entered_ns = now_ns
        """Since when it is in the present cell without a break."""
        self.cell = cell
        """The present cell; read-only for others."""
        self._since_ns = now_ns
        self._booked_ns: array[int] | None = None

    def move(self, cell: Cell, now_ns: int) -> None:
        """Book the time since the last move in the cell left, and enter ``cell``. O(1)."""
        elapsed_ns = now_ns - self._since_ns
        if elapsed_ns:
            invariant(elapsed_ns > 0, "an account's time went back")
            booked = self._booked_ns
            if booked is None:
                booked = self._booked_ns = array("q", bytes(8 * CELL_COUNT))
            booked[self.cell] += elapsed_ns
            self._since_ns = now_ns
        if cell != self.cell:
            self.entered_ns = now_ns
            self.cell = cell

    def reassign(self, cell: Cell) -> None:
        """Say that the present stretch, back to the last move or snapshot, belongs to ``cell``.

        For a wait whose cause shows only at its end: the limit that released last is the cause
        of all of it (rule 2.3). What a snapshot has shown stays as it was shown.
        """
        self.cell = cell

    def reassign_part(self, cell: Cell, part_ns: int, now_ns: int) -> None:
        """Of the present stretch, back to the last move or snapshot, up to ``part_ns`` belong to
        another ``cell``; it goes on in the present one."""
        part_ns = min(part_ns, now_ns - self._since_ns)
        self.move(self.cell, now_ns)
        if part_ns > 0 and self._booked_ns is not None:
            self._booked_ns[self.cell] -= part_ns
            self._booked_ns[cell] += part_ns

    @property
    def since_ns(self) -> int:
        """The instant of the last move or snapshot: while it and ``cell`` stand still, nothing
        has happened but that time went on in ``cell``."""
        return self._since_ns

    def peek(self, now_ns: int) -> tuple[int, ...]:
        """What :meth:`snapshot` would say, booking nothing: for a passing look, not for figures
        that are kept (a :meth:`reassign` may still change the present stretch)."""
        booked = self._booked_ns
        cells = [0] * CELL_COUNT if booked is None else list(booked)
        cells[self.cell] += now_ns - self._since_ns
        return tuple(cells)

    def snapshot(self, now_ns: int) -> tuple[int, ...]:
        """Nanoseconds per cell (index :class:`Cell`) up to now; their sum is
        ``now_ns - opened_ns``. Never decreases from one snapshot to the next."""
        self.move(self.cell, now_ns)
        booked = self._booked_ns
        return (0,) * CELL_COUNT if booked is None else tuple(booked)


def difference(later: Sequence[int], earlier: Sequence[int]) -> tuple[int, ...]:
    """Nanoseconds per cell between two snapshots of one account."""
    return tuple(b - a for a, b in zip(earlier, later, strict=True))
