"""One result for all that ask for it meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from headgate.broker.keyed_mutex import WOKEN_MAX, tell_result

T = TypeVar("T")


class SharedResult(Generic[T]):
    """What a task returns or raises, for all that wait for it. One that leaves ends nothing for the
    others. Thousands may wait: they go on a few in each iteration of the loop."""

    __slots__ = ("_task", "_waiting")

    def __init__(self, task: asyncio.Task[T]) -> None:
        self._task = task
        self._waiting: deque[asyncio.Future[T]] = deque()
        task.add_done_callback(self._wake_some)

    def join(self) -> asyncio.Future[T]:
        """A future of the result."""
        loop = self._task.get_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append(future)
        if self._task.done():
            loop.call_soon(self._wake_some, self._task)
        return future

    def _wake_some(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # retrieved, also if nobody waits any more
        for _ in range(min(len(self._waiting), WOKEN_MAX)):
            tell_result(task, self._waiting.popleft())
        if self._waiting:
            task.get_loop().call_soon(self._wake_some, task)
