"""Bounds the commands of all connections together in one iteration of the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from headgate.broker.connection.bounds import LOOP_WORK


class WaitsInLine(Protocol):
    """A connection, as the line of those whose commands wait uses it."""

    def turn_came(self) -> None:
        """Carry out commands that arrived; the budget has room."""


class CommandBudget:
    """The work that connections may still do for their clients' commands in this iteration.

    A connection that begins to carry out commands does so only while :attr:`left` is above 0, or
    :meth:`renew` gives it more. Otherwise it waits in line (:meth:`wait`). Each iteration continues
    with the first in line, before any socket is read.

    A loop tells nobody that an iteration begins, and asking it with a callback in each would cost
    every quiet broker. So the budget asks only when the first half of it is used up, which may take
    many iterations. No iteration has more than ``3 * LOOP_WORK`` units for the connections that it
    lets begin: what was left, and a whole budget.
    """

    __slots__ = ("_is_asked", "_line", "_loop", "left")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._line: deque[WaitsInLine] = deque()
        self._is_asked = False
        self.left = LOOP_WORK
        """Units that connections may still use. They subtract what they used, also if they used
        more than there was."""

    @property
    def waiting_count(self) -> int:
        """Connections in line."""
        return len(self._line)

    def renew(self) -> bool:
        """Nothing is left: give the second half of the budget; False if it was given before in
        this iteration."""
        if self._is_asked:
            return False
        self._ask()
        self.left = LOOP_WORK
        return True

    def wait(self, connection: WaitsInLine) -> None:
        """Call ``connection`` when its turn comes, in a later iteration, after those before it.
        A connection waits once at a time."""
        self._line.append(connection)

    def _ask(self) -> None:
        self._is_asked = True
        self._loop.call_soon(self._iteration_began)

    def _iteration_began(self) -> None:
        line = self._line
        self._is_asked, self.left = False, LOOP_WORK
        try:
            while line and (self.left > 0 or self.renew()):
                line.popleft().turn_came()
        finally:
            if line and not self._is_asked:
                self._ask()  # an error ended the loop above
