"""Looks at files again and again while the broker or the agent runs."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from headgate.storage.lanes import Lane


class RepeatedLook(ABC):
    """A look at each period, on a lane of its own: a file system that hangs holds nothing else. One
    that fails is logged, and the next one follows."""

    def __init__(self, lane: Lane, period_s: float, what: str, logger: logging.Logger) -> None:
        """``what`` is looked for, as the log says it when a look fails."""
        self._lane = lane
        self._period_s = period_s
        self._what = what
        self._logger = logger
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on, at each period."""
        self._task = asyncio.get_running_loop().create_task(self._repeat())

    def stop(self) -> None:
        """Look no more; the lane ends."""
        if self._task is not None:
            self._task.cancel()
        self._lane.abandon()

    @abstractmethod
    async def look(self) -> None:
        """Look once."""

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self._period_s)
            try:
                await self.look()
            except Exception:
                self._logger.exception("looking for %s failed; the next look follows", self._what)
