"""Bounds the commands of all connections together in one iteration of the event loop."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from headgate.base.work_units import CONNECTION_ENDED, LOOP_UNITS, TURN_UNITS

SHORT_WORK: Final = (2, 8, 32, 96)
"""A connection waits in the first line whose bound its work does not exceed, else in one more
line."""


class WaitsInLine(Protocol):
    """A connection, as the lines of those whose commands wait use it."""

    def turn_came(self) -> None:
        """Carry out commands that arrived; the budget has room."""


class _Waiting(NamedTuple):
    number: int
    """Those that wait longer have smaller numbers."""
    connection: WaitsInLine


class CommandBudget:
    """The work that connections may still do for their clients' commands in this iteration.

    A connection that begins to carry out commands does so only while :attr:`left` is above 0, or
    :meth:`renew` gives it more. Otherwise it waits in line (:meth:`wait`). Each iteration continues
    with those in line, before any socket is read. The first half of its budget goes to those whose
    commands take the least work: a client that sends one message does not wait behind thousands
    that sent as much as a buffer holds. The second half goes to those that have waited longest, so
    that everybody has a turn.

    A loop tells nobody that an iteration begins, and asking it with a callback in each would cost
    every quiet broker. So the budget asks only when the first half of it is used up, which may take
    many iterations. No iteration has more than ``3 * LOOP_UNITS`` units for the connections that it
    lets begin: what was left, and a whole budget.
    """

    __slots__ = ("_is_asked", "_lines", "_loop", "_number", "left")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lines: tuple[deque[_Waiting], ...] = tuple(deque() for _ in (*SHORT_WORK, 0))
        """By the work that waits, the least first."""
        self._number = 0
        self._is_asked = False
        self.left = LOOP_UNITS
        """Units that connections may still use. They subtract what they used, also if they used
        more than there was."""

    @property
    def waiting_count(self) -> int:
        """Connections in line."""
        return sum(map(len, self._lines))

    def renew(self) -> bool:
        """Nothing is left: give the second half of the budget; False if it was given before in
        this iteration."""
        if self._is_asked:
            return False
        self._ask()
        self.left = LOOP_UNITS
        return True

    def wait(self, connection: WaitsInLine, work: int = TURN_UNITS) -> None:
        """Call ``connection`` when its turn comes, in a later iteration. ``work`` is what it is
        expected to need. A connection waits once at a time."""
        self._number += 1
        self._lines[bisect_left(SHORT_WORK, work)].append(_Waiting(self._number, connection))

    def _ask(self) -> None:
        self._is_asked = True
        self._loop.call_soon(self._iteration_began)

    def _iteration_began(self) -> None:
        self._is_asked, self.left = False, LOOP_UNITS
        try:
            while self.left > 0 and (line := self._shortest()):
                line.popleft().connection.turn_came()
            while (line := self._oldest()) and (self.left > 0 or self.renew()):
                line.popleft().connection.turn_came()
        finally:
            if not self._is_asked and any(self._lines):
                self._ask()  # an error ended the loop above

    def _shortest(self) -> deque[_Waiting] | None:
        """The line whose first has the least work; None if no connection waits."""
        return next(filter(None, self._lines), None)

    def _oldest(self) -> deque[_Waiting] | None:
        """The line whose first waits longest; None if no connection waits."""
        waiting = [line for line in self._lines if line]
        return min(waiting, key=lambda line: line[0].number) if waiting else None


class LaterEnd:
    """A connection whose client has left, in the line of those whose commands wait."""

    __slots__ = ("_budget", "_close")

    def __init__(self, budget: CommandBudget, close: Callable[[], None]) -> None:
        self._budget, self._close = budget, close

    def turn_came(self) -> None:
        """Close the connection."""
        self._budget.left -= CONNECTION_ENDED
        self._close()
