"""A mutex for each key: changes of one topic or one subscription run one after the other.

A change takes several turns of the loop. It runs to its end even if its caller is cancelled, for
example because the client disconnects: nothing would complete it later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class KeyedMutex:
    """One mutex for each key that is in use."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}

    def __len__(self) -> int:
        """Keys in use."""
        return len(self._tasks)

    async def when_idle(self, key: Hashable) -> None:
        """Return when nothing runs under ``key``; at once if nothing does."""
        while (running := self._tasks.get(key)) is not None:
            await asyncio.wait([running])

    async def run_alone(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` when nothing else runs under ``key``, to its end even if the caller is
        cancelled.

        Raises what ``work`` raises.
        """
        await self.when_idle(key)
        loop = asyncio.get_running_loop()
        task = loop.create_task(work())
        self._tasks[key] = task
        # As asyncio.shield, with one callback in the place of three: crowds of consumers create
        # their subscriptions at once.
        ended: asyncio.Future[T] = loop.create_future()

        def finished(task: asyncio.Task[T]) -> None:
            del self._tasks[key]
            error = None if task.cancelled() else task.exception()  # marks it as retrieved
            if ended.done():
                return  # the caller was cancelled
            if task.cancelled():
                ended.cancel()
            elif error is not None:
                ended.set_exception(error)
            else:
                ended.set_result(task.result())

        task.add_done_callback(finished)
        return await ended
