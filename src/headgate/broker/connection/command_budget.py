"""Bounds the commands of all connections together in one iteration of the event loop."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from headgate.base.fair_queue import FairQueue
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
    owner: str
    connection: WaitsInLine


class CommandBudget:
    """The work that connections may still do for their clients' commands in this iteration.

    A connection that begins to carry out commands does so only while :attr:`left` is above 0, or
    :meth:`renew` gives it more. Otherwise it waits in line (:meth:`wait`). Each iteration continues
    with those in line, before any socket is read. The first half of its budget goes to those whose
    commands take the least work: a client that sends one message does not wait behind thousands
    that sent as much as a buffer holds. The second half goes to those that have waited longest, so
    that everybody has a turn. In both halves the owners of connections take turns: hundreds of one
    role hold up that role alone. In the second half a turn is so much work, of one connection or of
    many: few with much work of one role do not hold up the many with little of another.

    A loop tells nobody that an iteration begins, and asking it with a callback in each would cost
    every quiet broker. So the budget asks only when the first half of it is used up, which may take
    many iterations. No iteration has more than ``3 * LOOP_UNITS`` units for the connections that it
    lets begin: what was left, and a whole budget.
    """

    __slots__ = ("_is_asked", "_lines", "_loop", "_number", "_owners", "left")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lines: tuple[FairQueue[_Waiting], ...] = tuple(FairQueue() for _ in (*SHORT_WORK, 0))
        """By the work that waits, the least first."""
        self._owners: OrderedDict[str, int] = OrderedDict()
        """How many of each owner wait. In the second half, the first one's turn is next."""
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

    def wait(self, connection: WaitsInLine, owner: str, work: int = TURN_UNITS) -> None:
        """Call ``connection`` when its turn comes, in a later iteration. ``work`` is what it is
        expected to need. A connection waits once at a time."""
        self._number += 1
        line = self._lines[bisect_left(SHORT_WORK, work)]
        line.add(owner, _Waiting(self._number, owner, connection))
        self._owners[owner] = self._owners.get(owner, 0) + 1

    def _ask(self) -> None:
        self._is_asked = True
        self._loop.call_soon(self._iteration_began)

    def _iteration_began(self) -> None:
        self._is_asked, self.left = False, LOOP_UNITS
        try:
            while self.left > 0 and self._owners and not self._is_asked:
                self._leave(self._with_least_work()).turn_came()  # may ask, as its end does
            while self._owners and (self.left > 0 or self.renew()):
                self._turn_of(next(iter(self._owners)))
        finally:
            if not self._is_asked and self._owners:
                self._ask()  # an error ended the loop above

    def _with_least_work(self) -> _Waiting:
        """Take the next of those with the least work. There must be one."""
        return next(filter(None, self._lines)).take()

    def _turn_of(self, owner: str) -> None:
        """Let those of an owner that wait longest have :data:`TURN_UNITS` together. There must be
        one. A turn that the end of the budget cuts off begins again in the next iteration."""
        self._owners.move_to_end(owner)  # first: an error of its connections ends its turn
        end = self.left - TURN_UNITS
        while owner in self._owners and self.left > max(end, 0):
            self._leave(self._oldest_of(owner)).turn_came()
        if owner in self._owners and self.left > end:
            self._owners.move_to_end(owner, last=False)

    def _oldest_of(self, owner: str) -> _Waiting:
        """Take the one of an owner that waits longest. There must be one."""
        waiting = [(first, line) for line in self._lines if (first := line.first_of(owner))]
        return min(waiting, key=_since)[1].take_of(owner)

    def _leave(self, waiting: _Waiting) -> WaitsInLine:
        """What waited, which is in line no more."""
        owner = waiting.owner
        if self._owners[owner] > 1:
            self._owners[owner] -= 1
        else:
            del self._owners[owner]
        return waiting.connection


def _since(place: tuple[_Waiting, FairQueue[_Waiting]]) -> int:
    return place[0].number


class LaterEnd:
    """A connection whose client has left, in the line of those whose commands wait."""

    __slots__ = ("_budget", "_close")

    def __init__(self, budget: CommandBudget, close: Callable[[], None]) -> None:
        self._budget, self._close = budget, close

    def turn_came(self) -> None:
        """Close the connection."""
        self._budget.left -= CONNECTION_ENDED
        self._close()
