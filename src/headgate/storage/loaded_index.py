"""Reads of the index for commands that hold what was read until it is their turn.

The read lane brings blocks faster than commands get their turns, and a client may have thousands of
commands that wait. Nobody is charged with the blocks. So few commands read and hold them at a time,
and the others wait as commands, which are charged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headgate.engine.topic import Topic
from headgate.storage.fair_slots import FairSlots
from headgate.storage.index_loader import IndexLoader

LOADED_MAX: Final = 16
LOADED_OF_TENANT_MAX: Final = 8
LOADED_OF_TENANT_MIN: Final = 1
"""Commands whose index is read, or in memory until it is their turn, of all and of one tenant. A
client may have thousands. 64 ids may need 64 blocks of the index, so each takes up to 400 KB. In
the lines of a tenant with much other work it takes seconds, so each tenant has one in any case."""


class LoadedIndex:
    """Loads the index for few commands at a time, of tenants in turn."""

    def __init__(self, index_of: Callable[[Topic], IndexLoader]) -> None:
        """``index_of`` gives the index that has a topic's entries."""
        self._index_of = index_of
        self._slots = FairSlots(LOADED_MAX, LOADED_OF_TENANT_MAX, LOADED_OF_TENANT_MIN)

    async def load(self, topic: Topic, ordinals: Sequence[int]) -> object:
        """Load the index of entries, which stays in memory as long as the caller holds the result.
        It takes a slot of the tenant for that, until :meth:`give_back`.

        Raises:
            StorageError: the index cannot be read; no slot is taken.
        """
        await self._slots.take(topic.name.tenant)
        try:
            return await self._index_of(topic).load(topic.log, ordinals)
        except BaseException:
            self.give_back(topic)
            raise

    def give_back(self, topic: Topic) -> None:
        """A caller of :meth:`load` holds its result no more."""
        self._slots.give_back(topic.name.tenant)
