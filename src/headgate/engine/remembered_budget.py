"""Bounds what Shared subscriptions without consumers remember of entries that were delivered.

A subscription remembers how often each entry was redelivered, and since when a delayed one was due,
until it is acknowledged. While it has consumers, their connections are charged with that. Without
any nobody is, and a client could fill one subscription after another and leave. So what all of them
keep has a bound, beyond which one forgets it when its last consumer leaves, as after a restart.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, Protocol

from headgate.base.units import MIB
from headgate.engine.ack_budget import MEASURED_MAX

REMEMBERED_BYTES_MAX: Final = 64 * MIB
"""The bound of all: 600,000 entries."""


class RememberingDispatcher(Protocol):
    """The dispatcher of a subscription, as far as the budget needs it."""

    @property
    def remembered_bytes(self) -> int:
        """What it remembers of entries, in bytes of memory."""


class RememberedBudget:
    """What the dispatchers of subscriptions without consumers remember."""

    __slots__ = ("_by_dispatcher", "_bytes_max", "held_bytes", "part")

    def __init__(self, bytes_max: int = REMEMBERED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self.part = 1.0
        """The part of it that is there: less while the process nears the limit on its memory."""
        self._by_dispatcher: dict[RememberingDispatcher, int] = {}
        """In the order in which they were measured, the latest last."""
        self.held_bytes = 0

    def keeps(self, dispatcher: RememberingDispatcher) -> bool:
        """A subscription has no consumers: whether it may keep what its dispatcher remembers, which
        counts from now on. If not, the dispatcher forgets it."""
        self.forget(dispatcher)
        size_bytes = dispatcher.remembered_bytes
        if not size_bytes:
            return True
        bytes_max = self.part * self._bytes_max
        if self.held_bytes + size_bytes > bytes_max:
            # What their cursors passed since they were measured is free.
            for other in list(islice(self._by_dispatcher, MEASURED_MAX)):
                self._count(other)
            if self.held_bytes + size_bytes > bytes_max:
                return False
        self._count(dispatcher)
        return True

    def _count(self, dispatcher: RememberingDispatcher) -> None:
        self.forget(dispatcher)
        size_bytes = dispatcher.remembered_bytes
        if size_bytes:
            self._by_dispatcher[dispatcher] = size_bytes
            self.held_bytes += size_bytes

    def forget(self, dispatcher: RememberingDispatcher) -> None:
        """A subscription has consumers again, or has ended."""
        self.held_bytes -= self._by_dispatcher.pop(dispatcher, 0)
