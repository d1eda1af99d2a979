"""Work on one thing happens one after the other, and is never left half done.

Several requests may want to change the same topic or subscription, and each change takes several
turns of the loop. Whoever asked may go away meanwhile; the work is then carried on, because a
change that is half made would be followed by nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class KeyedMutex:
    """Which things are being worked on."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}

    async def idle(self, key: Hashable) -> None:
        """Return, at once if may be, when nobody works on ``key``."""
        while (before := self._tasks.get(key)) is not None:
            await asyncio.wait([before])

    async def run_alone(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` when nobody else works on ``key``; a cancelled caller does not stop it.

        Raises what ``work`` raises.
        """
        await self.idle(key)
        task = asyncio.get_running_loop().create_task(work())
        self._tasks[key] = task

        def finished(task: asyncio.Task[Any]) -> None:
            del self._tasks[key]
            if not task.cancelled():
                task.exception()  # its caller may be gone: then nobody else looks at it

        task.add_done_callback(finished)
        return await asyncio.shield(task)
