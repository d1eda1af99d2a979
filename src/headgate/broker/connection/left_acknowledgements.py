"""Acknowledgements of clients that have left before the index of their entries was read."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import MIB

LEFT_BYTES_MAX: Final = 2 * MIB
"""What they may take together. Beyond it those of the clients that have most of them end, and the
messages are delivered again."""
STOP_TIMEOUT_S: Final = 1.0
"""How long a stop waits for them: the disk may answer late, or never."""


class LeftAcknowledgements:
    """Tasks that carry out acknowledgements, and whose connections have ended.

    An acknowledgement whose index is in memory is carried out at once. A client that closes its
    connection behind it gets none of these messages again. With these tasks that holds as well
    where the index is read from the disk.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, dict[asyncio.Task[None], int]] = {}
        """By who answers for them, with the memory that each takes."""
        self._bytes: SparseCounter[str] = SparseCounter()
        """The memory of each owner's."""
        self.taken_bytes = 0

    def keep(self, task: asyncio.Task[None], taken_bytes: int, owner: str = "") -> bool:
        """Let a task of a connection of ``owner`` that has ended go on; False if there is no room
        for it. Who has few of them gets room of who has most: else one client with many would have
        the messages of all others delivered again."""
        while self.taken_bytes + taken_bytes > LEFT_BYTES_MAX:
            if not self._end_one(self._bytes.get(owner, 0) + taken_bytes):
                return False
        self._tasks.setdefault(owner, {})[task] = taken_bytes
        self._count(owner, taken_bytes)
        task.add_done_callback(partial(self._forget, owner))
        return True

    def _end_one(self, more_than_bytes: int) -> bool:
        """End the last one of the owner that has most, if it has more than so much."""
        owner = max(self._bytes, key=self._bytes.__getitem__, default="")
        if self._bytes.get(owner, 0) <= more_than_bytes:
            return False
        task = next(reversed(self._tasks[owner]))
        self._forget(owner, task)
        task.cancel()
        return True

    def _forget(self, owner: str, task: asyncio.Task[None]) -> None:
        """A task has ended, or must."""
        tasks = self._tasks.get(owner, {})
        if task in tasks:
            self._count(owner, -tasks.pop(task))
            if not tasks:
                del self._tasks[owner]

    def _count(self, owner: str, change_bytes: int) -> None:
        self._bytes[owner] += change_bytes
        self.taken_bytes += change_bytes

    async def finish(self) -> None:
        """Wait until all are carried out, for :data:`STOP_TIMEOUT_S` at most. The rest ends."""
        tasks = [task for owned in self._tasks.values() for task in owned]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)
            for task in late:
                task.cancel()
