"""A task on the broker's loop from its start to its stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class BackgroundTask:
    """Runs one coroutine at a time.

    An exception that ends the coroutine is a broken invariant. The loop's exception handler gets
    it, as it gets those of callbacks.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, failure: str) -> None:
        """``failure`` is the message of that exception, such as "the export of metrics ended"."""
        self._loop = loop
        self._name = name
        self._failure = failure
        self._task: asyncio.Task[None] | None = None

    @property
    def is_started(self) -> bool:
        """Whether it was started and not stopped since, even if the coroutine has ended."""
        return self._task is not None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``; call it only while nothing is started."""
        self._task = self._loop.create_task(work, name=self._name)
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Cancel the coroutine and wait until it has ended; nothing if none is started."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler(
                {"message": self._failure, "exception": error, "task": task}
            )
