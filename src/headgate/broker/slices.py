"""Long answers in slices: work is a generator that yields wherever others may have their turn.

The same work can be done at once, where there is little of it, or by a task that lets the loop go
on between slices of about a millisecond.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from typing import TYPE_CHECKING, Final, TypeVar

from headgate.engine.engine import Engine
from headgate.engine.topic import Topic

if TYPE_CHECKING:
    from headgate.broker.service import Broker

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that yields after each step and returns its result."""

SLICE_STEPS = 8
"""Steps of one slice. A step looks at one subscription of one topic: up to 0.2 ms."""

SLICE_TOPICS: Final = 200
"""Live topics of one slice: well under a millisecond, where each takes a few microseconds."""


async def live_topics(engine: Engine, begin_turn: Callable[[], None]) -> AsyncIterator[Topic]:
    """The walk of :meth:`Engine.live_topics`, in slices between which the loop serves others.

    The first slice belongs to the caller's turn; each later one begins its own. Topics that are
    unloaded meanwhile are left out, and topics that are loaded meanwhile are not visited.
    """
    for visited, topic in enumerate(engine.live_topics(), start=1):
        yield topic
        if visited % SLICE_TOPICS == 0:
            await asyncio.sleep(0)
            begin_turn()


def at_once(steps: Steps[T]) -> T:
    """The result of ``steps``, taken without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


async def in_slices(broker: Broker, steps: Steps[T]) -> T:
    """The result of ``steps``. Each slice is a turn of the broker: what one has found may be gone
    in the next."""
    number = 0
    while True:
        number += 1
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        if number % SLICE_STEPS == 0:
            await asyncio.sleep(0)
            broker.begin_turn()
