"""What a consumer of a shared subscription gave back at once."""

from __future__ import annotations

from collections import deque

from headgate.engine.consumer import Consumer


class ReturnedEntries:
    """Everything that one consumer gave back at once, until it is queued for redelivery."""

    __slots__ = ("counted", "held", "holder", "ordinals")

    def __init__(self, holder: Consumer, counted: bool) -> None:
        self.holder = holder
        self.held = holder.held
        self.counted = counted
        """Whether it counts as a redelivery."""
        self.ordinals = deque(holder.held)
        """Its entries, the next one first; an acknowledged one is no longer in ``held``."""

    def extend(self, held: dict[int, int]) -> None:
        """The holder gives back more."""
        self.held |= held
        self.ordinals.extend(held)
