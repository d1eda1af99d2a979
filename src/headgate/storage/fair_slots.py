"""A bounded number of pieces of work at a time, of which one owner gets only a part."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headgate.base.fair_queue import FairSet
from headgate.base.sparse_counter import SparseCounter


class FairSlots:
    """Slots for work that is done at the same time. While owners wait they take turns, each with
    its longest waiting work first; so the many that one owner sends hold up that owner alone."""

    def __init__(self, slots_max: int, owner_slots_max: int, owner_slots_min: int = 0) -> None:
        """``owner_slots_max`` slots at most are one owner's. Each has ``owner_slots_min`` whatever
        others hold, also beyond ``slots_max``: for work that takes long where its owner has much
        else to do, so that a few such owners would hold all slots."""
        self._free = slots_max
        """Less than 0 while owners have their least number beyond ``slots_max``."""
        self._owner_slots_max = owner_slots_max
        self._owner_slots_min = owner_slots_min
        self._used: SparseCounter[str] = SparseCounter()
        self._waiting: FairSet[asyncio.Future[None]] = FairSet()
        """Those that wait."""

    @asynccontextmanager
    async def slot(self, owner: str) -> AsyncIterator[None]:
        """Hold a slot within the context, after waiting for one."""
        await self.take(owner)
        try:
            yield
        finally:
            self.give_back(owner)

    async def take(self, owner: str) -> None:
        """Wait for a slot, and hold it until :meth:`give_back`: for work that goes on without the
        task that began it."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(owner, future)
        self._grant()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give_back(owner)
            else:
                self._waiting.discard(owner, future)
            raise

    def give_back(self, owner: str) -> None:
        """Work of ``owner`` that had a slot has ended."""
        self._free += 1
        self._used[owner] -= 1
        self._grant()

    def _grant(self) -> None:
        while (owner := self._next_owner()) is not None:
            future = self._waiting.take_of(owner)
            if not future.cancelled():
                self._free -= 1
                self._used[owner] += 1
                future.set_result(None)

    def _next_owner(self) -> str | None:
        """The owner that gets the next slot; None if none may have one now."""
        used_max = self._owner_slots_max if self._free > 0 else self._owner_slots_min
        if not used_max:
            return None
        return self._waiting.owner_among(lambda owner: self._used.get(owner, 0) < used_max)
