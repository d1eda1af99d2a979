"""Acknowledgements of clients that have left before the index of their entries was read."""

from __future__ import annotations

import asyncio
from typing import Final

from headgate.base.units import MIB

LEFT_BYTES_MAX: Final = 2 * MIB
"""What they may take together. Beyond it they end with their connection, and the messages are
delivered again."""
STOP_TIMEOUT_S: Final = 1.0
"""How long a stop waits for them: the disk may answer late, or never."""


class LeftAcknowledgements:
    """Tasks that carry out acknowledgements, and whose connections have ended.

    An acknowledgement whose index is in memory is carried out at once. A client that closes its
    connection behind it gets none of these messages again. With these tasks that holds as well
    where the index is read from the disk.
    """

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], int] = {}
        """With the memory that each takes."""
        self.taken_bytes = 0

    def keep(self, task: asyncio.Task[None], taken_bytes: int) -> bool:
        """Let a task of a connection that has ended go on; False if there is no room for it."""
        if self.taken_bytes + taken_bytes > LEFT_BYTES_MAX:
            return False
        self._tasks[task] = taken_bytes
        self.taken_bytes += taken_bytes
        task.add_done_callback(self._done)
        return True

    def _done(self, task: asyncio.Task[None]) -> None:
        self.taken_bytes -= self._tasks.pop(task)

    async def finish(self) -> None:
        """Wait until all are carried out, for :data:`STOP_TIMEOUT_S` at most. The rest ends."""
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=STOP_TIMEOUT_S)
            for task in late:
                task.cancel()
