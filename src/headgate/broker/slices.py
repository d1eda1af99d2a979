"""Long answers in slices: work is a generator that yields wherever others may have their turn.

The same work can be done at once, where there is little of it, or by a task that lets the loop go
on between slices of about a millisecond.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from headgate.broker.service import Broker

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that yields after each step and returns its result."""

SLICE_STEPS = 8
"""Steps of one slice. A step looks at one subscription of one topic: up to 0.2 ms."""


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
