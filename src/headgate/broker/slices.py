"""Long work on the loop in slices of about a millisecond, between which the loop serves others.

A walk over topics is an asynchronous generator. Other work is a generator that yields where it may
be interrupted; the caller runs it at once if it is short, otherwise in slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from typing import Final, Protocol, TypeVar

from headgate.engine.engine import Engine
from headgate.engine.topic import Topic

T = TypeVar("T")


class Turns(Protocol):
    """The part of the broker that begins its turns."""

    def begin_turn(self) -> None:
        """Read the clock: everything until the next call happens at this instant."""


Sliced = Generator[None, None, T]
"""Work that yields wherever it may be interrupted, and returns its result."""

SLICE_YIELDS = 8
"""Yields of one slice. Before each, the work examines one subscription of one topic: 0.2 ms."""

SLICE_TOPICS: Final = 200
"""Live topics of one slice: well under a millisecond, at a few microseconds each."""


async def live_topics(engine: Engine, turns: Turns) -> AsyncIterator[Topic]:
    """The topics of :func:`live_topic_slices`, one by one, for a caller that may pause between two.

    A topic that is unloaded in such a pause is left out.
    """
    async for topics in _slices(engine, turns):
        for topic in topics:
            if topic.is_live:
                yield topic


async def live_topic_slices(engine: Engine, turns: Turns) -> AsyncIterator[list[Topic]]:
    """The walk of :meth:`Engine.live_topics`, in slices between which the loop serves others.

    The first slice belongs to the caller's turn; each later one begins its own. Topics that are
    unloaded meanwhile are left out, and topics that are loaded meanwhile are not visited.
    """
    async for topics in _slices(engine, turns):
        yield [topic for topic in topics if topic.is_live]


async def _slices(engine: Engine, turns: Turns) -> AsyncIterator[list[Topic]]:
    """The topics that were loaded at the start; some may have been unloaded since."""
    topics = list(engine.topics.values())
    for start in range(0, len(topics), SLICE_TOPICS):
        if start > 0:
            await asyncio.sleep(0)
            turns.begin_turn()
        yield topics[start : start + SLICE_TOPICS]


def at_once(work: Sliced[T]) -> T:
    """Run ``work`` without a pause and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


async def in_slices(turns: Turns, work: Sliced[T]) -> T:
    """Run ``work`` in slices and return its result. What one slice finds may be gone later."""
    number = 0
    while True:
        number += 1
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if number % SLICE_YIELDS == 0:
            await asyncio.sleep(0)
            turns.begin_turn()
