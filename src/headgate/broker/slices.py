"""Long work on the loop in pieces, between which the loop serves others.

A walk over topics is an asynchronous generator. Other work is a generator that yields where it may
be interrupted; the caller runs it at once if it is short, otherwise in pieces. All pieces of all
walks together take one slice of the broker's scheduler (:mod:`headgate.broker.work`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Final, Protocol, TypeVar

from headgate.base.sliced import Sliced
from headgate.base.work_units import PIECE_UNITS
from headgate.broker.work.scheduler import JobClass, WorkScheduler
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic

T = TypeVar("T")


class Turns(Protocol):
    """The part of the broker that begins its turns."""

    def begin_turn(self) -> None:
        """Read the clock: everything until the next call happens at this instant."""

    async def give_way(self, units: int, /) -> None:
        """Let others run, until ``units`` more of work may be done, and begin a turn."""

    async def grant(self, units: int, /) -> int:
        """As :meth:`give_way`; returns how many units may be done, perhaps more than ``units``."""


class _Working(Protocol):
    """A broker with its scheduler."""

    work: WorkScheduler

    def begin_turn(self) -> None:
        """As :meth:`Turns.begin_turn`."""


class _Credit:
    """What a slice granted a walk beyond what it asked for."""

    __slots__ = ("slice_number", "units")

    def __init__(self, slice_number: int, units: int) -> None:
        self.slice_number = slice_number
        self.units = units


_CREDIT: ContextVar[_Credit | None] = ContextVar("credit of a walk", default=None)
"""That of the present task."""


class AdminTurns:
    """The turns of walks for which an administrator waits: they come before upkeep.

    A walk that asks for a little each time goes on at once while the slice had room for more.
    """

    def __init__(self, broker: _Working) -> None:
        self._broker = broker

    def begin_turn(self) -> None:
        """As :meth:`Turns.begin_turn`."""
        self._broker.begin_turn()

    async def give_way(self, units: int, /) -> None:
        """As :meth:`Turns.give_way`."""
        await self._credit_less(units)

    async def grant(self, units: int, /) -> int:
        """As :meth:`Turns.grant`. What is not used may go to :func:`_keep`."""
        credit = await self._credit_less(units)
        more, credit.units = credit.units, 0
        return units + more

    async def _credit_less(self, units: int) -> _Credit:
        """The credit of the present task, a new one if need be, without ``units``."""
        work, credit = self._broker.work, _CREDIT.get()
        if credit is None or credit.slice_number != work.slice_number or credit.units < units:
            granted = await work.grant(units, JobClass.ADMIN)
            credit = _Credit(work.slice_number, granted)
            _CREDIT.set(credit)
        credit.units -= units
        return credit


def _keep(units: int) -> None:
    """What a walk was granted and does not use is for what its task does next."""
    credit = _CREDIT.get()
    if credit is not None:
        credit.units += units


class Pace:
    """Counts the work of a walk, and says when it gives way."""

    __slots__ = ("_left", "_turns")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._left: float = PIECE_UNITS

    @property
    def left(self) -> float:
        """The work that may be done in this piece; 0 or less if it is done."""
        return self._left

    def spent(self, units: float) -> bool:
        """Whether a piece is done with these ``units``: then await :meth:`give_way`."""
        self._left -= units
        return self._left <= 0

    async def give_way(self) -> None:
        """Let others run. What the walk found before may be gone afterwards."""
        self._left = await self._turns.grant(PIECE_UNITS)


SLICE_YIELDS = 4
"""Yields of one piece. Before each, the work examines one subscription of one topic: 0.07 ms."""

SLICE_TOPICS: Final = 64
"""Live topics of one piece, at a few microseconds each."""


async def live_topics(engine: Engine, turns: Turns) -> AsyncIterator[Topic]:
    """The topics of :func:`live_topic_slices`, one by one, for a caller that may pause between two.

    A topic that is unloaded in such a pause is left out.
    """
    left = PIECE_UNITS
    for topics in _slices(engine):
        if left <= 0:
            left = await turns.grant(PIECE_UNITS)
        left -= PIECE_UNITS
        for topic in topics:
            if topic.is_live:
                yield topic


async def live_topic_slices(engine: Engine, turns: Turns) -> AsyncIterator[list[Topic]]:
    """The walk of :meth:`Engine.live_topics`, in slices between which the loop serves others.

    The first slice belongs to the caller's turn; each later one begins its own. Topics that are
    unloaded meanwhile are left out, and topics that are loaded meanwhile are not visited.
    """
    is_first = True
    for topics in _slices(engine):
        if not is_first:
            await turns.give_way(PIECE_UNITS)
        is_first = False
        yield [topic for topic in topics if topic.is_live]


def _slices(engine: Engine) -> Iterator[list[Topic]]:
    """The topics that were loaded at the start; some may have been unloaded since."""
    gathered: list[Topic] = []
    for topics in engine.loaded.walk():
        gathered += topics
        if len(gathered) >= SLICE_TOPICS:
            yield gathered[:SLICE_TOPICS]
            del gathered[:SLICE_TOPICS]
    if gathered:
        yield gathered


async def in_slices(turns: Turns, work: Sliced[T]) -> T:
    """Run ``work`` in slices and return its result. What one slice finds may be gone later."""
    left, was_granted = SLICE_YIELDS, False
    while True:
        left -= 1
        try:
            next(work)
        except StopIteration as end:
            if was_granted:
                _keep(left * PIECE_UNITS // SLICE_YIELDS)
            result: T = end.value
            return result
        if left == 0:
            left = await turns.grant(PIECE_UNITS) * SLICE_YIELDS // PIECE_UNITS
            was_granted = True
