"""The account of time: a subscription is in exactly one state at every instant.

``docs/telemetry.md`` section 1 defines the states. A *cell* is a state; a throttled state has one
cell for each dimension, hungry and busy apart. The times of all cells add up to the elapsed time
exactly, because time is kept in integer nanoseconds and each instant is counted once. The account
records transitions and takes no samples.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

from headgate.base.errors import invariant
from headgate.flow.limits.rate_limit import Dimension, Level


class State(Enum):
    """What a subscription is doing: the first state that applies. The values are metric labels."""

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
    NOT_DUE = "not_due"
    STUCK = "stuck"


class Cell(IntEnum):
    """The parts of the account: ten plain states, then twelve throttled cells, numbered
    ``FIRST_THROTTLED + 4 * level + 2 * dimension + busy``, then plain states that came later. The
    numbers are those of the telemetry record, so a new cell comes last."""

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
    NOT_DUE = 22
    STUCK = 23
    """Of clusters that the agent looks at; Headgate's own broker is never in it."""


FIRST_THROTTLED = int(Cell.SUBSCRIPTION_MESSAGES_HUNGRY)
"""This cell and those after it, up to :data:`THROTTLED_STOP`, are waits at a limiter."""
THROTTLED_STOP = int(Cell.BROKER_BYTES_BUSY) + 1
_ALL_CELLS = tuple(Cell)
CELL_COUNT = len(_ALL_CELLS)


def is_throttled(cell: Cell) -> bool:
    """Whether a cell is a wait at a limiter."""
    return FIRST_THROTTLED <= cell < THROTTLED_STOP


@dataclass(frozen=True, slots=True)
class CellLabels:
    """The metric labels of a cell. ``dimension`` and ``consumer`` are empty and ``level`` is None
    unless a limiter holds."""

    state: State
    dimension: str
    consumer: str
    level: Level | None


def _labels(cell: Cell) -> CellLabels:
    if not is_throttled(cell):
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
    """The cell of a wait at one limiter."""
    return _ALL_CELLS[FIRST_THROTTLED + 4 * level + 2 * dimension + (not hungry)]


def is_hungry(permits: int, permits_max: int) -> bool:
    """Whether at least half of a consumer's window is free.

    ``permits_max`` is its window: the largest permit total it ever had. Clients return permits when
    half of their queue is empty, so a consumer with fewer permits still works on what it has.
    """
    return permits > 0 and 2 * permits >= permits_max


class Account:
    """The nanoseconds in each cell since the account was opened.

    An idle account takes less than 150 bytes, because the table of cells is created with the first
    move that takes time.
    """

    __slots__ = ("_booked_ns", "_since_ns", "cell", "entered_ns", "opened_ns")

    def __init__(self, now_ns: int, cell: Cell = Cell.TRANSITION) -> None:
        self.opened_ns = now_ns
        self.entered_ns = now_ns
        """Since when it has been in the present cell without a break."""
        self.cell = cell
        """The present cell; only this class changes it."""
        self._since_ns = now_ns
        self._booked_ns: array[int] | None = None

    def move(self, cell: Cell, now_ns: int) -> None:
        """Add the time since the last move to the present cell, and enter ``cell``; O(1)."""
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
        """Count the time since the last move or snapshot for ``cell``.

        This is for a wait whose cause is known only at its end: the limit that released last is the
        cause of the whole wait (rule 2.3). Time in a snapshot stays as it is.
        """
        self.cell = cell

    def reassign_part(self, cell: Cell, part_ns: int, now_ns: int) -> None:
        """Count up to ``part_ns`` of the time since the last move or snapshot for ``cell``; the
        present cell does not change."""
        part_ns = min(part_ns, now_ns - self._since_ns)
        self.move(self.cell, now_ns)
        if part_ns > 0 and self._booked_ns is not None:
            self._booked_ns[self.cell] -= part_ns
            self._booked_ns[cell] += part_ns

    @property
    def since_ns(self) -> int:
        """The instant of the last move or snapshot. While it and ``cell`` are unchanged, all time
        passed in ``cell``."""
        return self._since_ns

    def peek(self, now_ns: int) -> tuple[int, ...]:
        """What :meth:`snapshot` would return, without changing the account. Do not keep the
        figures: :meth:`reassign` may still change the time since the last move."""
        booked = self._booked_ns
        cells = [0] * CELL_COUNT if booked is None else list(booked)
        cells[self.cell] += now_ns - self._since_ns
        return tuple(cells)

    def snapshot(self, now_ns: int) -> tuple[int, ...]:
        """Nanoseconds in each :class:`Cell` up to now; their sum is ``now_ns - opened_ns``. No
        figure falls from one snapshot to the next."""
        self.move(self.cell, now_ns)
        booked = self._booked_ns
        return (0,) * CELL_COUNT if booked is None else tuple(booked)


def difference(later: Sequence[int], earlier: Sequence[int]) -> tuple[int, ...]:
    """Nanoseconds in each cell between two snapshots of one account."""
    return tuple(b - a for a, b in zip(earlier, later, strict=True))
