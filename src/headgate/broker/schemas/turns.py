"""Lets a few run at a time, and of one key one at a time, in the order in which they came.

Work on definitions is the loop's: more at once make none of it faster, and what one namespace asks
for must not stand before what all others ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class KeyedTurns:
    """Turns of work under keys."""

    def __init__(self, running_max: int) -> None:
        """At most ``running_max`` run at a time."""
        self._running = asyncio.Semaphore(running_max)
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._users: dict[Hashable, int] = {}

    def __len__(self) -> int:
        """Keys of which some run or wait."""
        return len(self._locks)

    @asynccontextmanager
    async def of(self, key: Hashable) -> AsyncIterator[None]:
        """Wait for a turn of ``key``, which ends with the block. Of each key one waits with those
        of others for the next turn."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with lock, self._running:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._locks[key]
