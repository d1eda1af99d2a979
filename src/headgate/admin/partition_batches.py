"""Work on each partition of a topic, some partitions at a time.

A topic may have thousands of partitions. Some wait for the disk together; between two batches
others have their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from headgate.admin.routing import Call
from headgate.base.names import TopicName

T = TypeVar("T")

AT_ONCE: Final = 64
"""Partitions of one batch."""


async def answers_of(
    call: Call, parts: Sequence[TopicName], work: Callable[[TopicName], Awaitable[T]]
) -> list[T | BaseException]:
    """What ``work`` returns or raises for each partition."""
    answers: list[T | BaseException] = []
    for start in range(0, len(parts), AT_ONCE):
        if start:
            await call.facade.give_way()
        batch = (work(part) for part in parts[start : start + AT_ONCE])
        found = await asyncio.gather(*batch, return_exceptions=True)
        # False: there was nothing to do.
        if any(answer is not False and not isinstance(answer, BaseException) for answer in found):
            call.progress.is_partly_done = True
        answers += found
    return answers


async def results_of(
    call: Call, parts: Sequence[TopicName], work: Callable[[TopicName], Awaitable[T]]
) -> list[T]:
    """What ``work`` returns for each partition. Raises its first failure, after it was done on
    all."""
    results: list[T] = []
    for answer in await answers_of(call, parts, work):
        if isinstance(answer, BaseException):
            try:
                raise answer
            finally:
                del answer  # its traceback leads to this frame: they would be a cycle
        results.append(answer)
    return results
