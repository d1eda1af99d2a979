"""Work on each partition of a topic, some partitions at a time.

A topic may have thousands of partitions, and the first look at one loads it. Some wait for the disk
together; between two batches others have their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from headgate.admin.routing import Call
from headgate.base.names import TopicName
from headgate.metadata.errors import RefusalError

T = TypeVar("T")

AT_ONCE: Final = 64
"""Partitions of one batch."""

BEGUN_PER_PIECE: Final = 16
"""Partitions of a batch that count a quarter of a millisecond. A subscription takes 0.2 ms of each,
a part of it behind the wait for the disk."""

LOOKED_AT_ONCE: Final = 8
NAMES_OF_LOOK: Final = 64
"""Partitions whose subscriptions are listed without a pause; so many of these count as one more.
To load a partition that nobody used yet takes 70 us, and more with subscriptions."""


async def outcome_of(
    call: Call,
    parts: Sequence[TopicName],
    work: Callable[[TopicName], Awaitable[T]],
    harmless: int = 0,
) -> tuple[list[T], BaseException | None]:
    """Do ``work`` on all partitions; returns what it returns, in their order, and the failure that
    counts: the first one. One with the status ``harmless`` counts only if all failed with it.

    Other failures are freed with their batch. Each keeps the frames through which it came, more
    than a kilobyte: hundreds of requests had as many of them as there are partitions.
    """
    results: list[T] = []
    failure: BaseException | None = None
    mild: BaseException | None = None
    for start in range(0, len(parts), AT_ONCE):
        batch = parts[start : start + AT_ONCE]
        # Also before the first: many requests may begin in one iteration of the loop.
        if pieces := len(batch) // BEGUN_PER_PIECE:
            await call.facade.give_way(pieces)
        for answer in await asyncio.gather(*map(work, batch), return_exceptions=True):
            if not isinstance(answer, BaseException):
                results.append(answer)
                if answer is not False:  # else there was nothing to do
                    call.progress.is_partly_done = True
            elif isinstance(answer, RefusalError) and answer.status == harmless:
                mild = answer if mild is None else mild
            else:
                failure = answer if failure is None else failure
        del answer  # it may be a failure, and the pause before the next batch be long
    return results, mild if failure is None and not results else failure


async def results_of(
    call: Call, parts: Sequence[TopicName], work: Callable[[TopicName], Awaitable[T]]
) -> list[T]:
    """What ``work`` returns for each partition. Raises its first failure, after it was done on
    all."""
    results, failure = await outcome_of(call, parts, work)
    try:
        if failure is not None:
            raise failure
    finally:
        del failure  # its traceback leads to this frame: they would be a cycle
    return results


async def subscriptions_of(
    call: Call, parts: Sequence[TopicName]
) -> AsyncIterator[tuple[TopicName, Sequence[str]]]:
    """Each partition with the names of its subscriptions, in slices between which others have their
    turn. A partition that is deleted meanwhile is left out."""
    looked_at = 0
    for part in parts:
        if looked_at >= LOOKED_AT_ONCE:
            looked_at = 0
            await call.facade.give_way()
        try:
            names = call.facade.subscriptions(part)
        except RefusalError as refusal:
            if refusal.status != 404:
                raise
        else:
            looked_at += 1 + len(names) // NAMES_OF_LOOK
            yield part, names


async def all_done(work: Iterable[Awaitable[object]]) -> None:
    """Await all of some work at the same time. Raises its first failure when all is done: nothing
    of it goes on when its request has ended, and counts no more."""
    for answer in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(answer, BaseException):
            try:
                raise answer
            finally:
                del answer  # as in results_of
