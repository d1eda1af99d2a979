"""Bounds the memory of what subscriptions acknowledged out of order, of all together.

One acknowledgement in 4,096 messages begins a block of 800 bytes, which each start reads and each
checkpoint writes: 77 times what a client sends for it. Their consumers are charged while they are
connected, and what a client leaves behind has this bound (see :mod:`headgate.engine.ack_budget`).
Beyond it an acknowledgement that would begin a block is refused, so that its message is delivered
again. Those in order, and those within blocks that are there, always have room.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from headgate.base.units import MIB
from headgate.engine.ack_budget import AckBudget, AcksHolder, NoAckRoomError

BLOCKS_BYTES_MAX: Final = 256 * MIB
"""The bound of all: 335,000 blocks, which are acknowledgements among 1.3 billion messages."""


class BlockBudget(AckBudget):
    """What blocks of acknowledgements take, by durable subscription."""

    __slots__ = ()

    def __init__(self, bytes_max: int = BLOCKS_BYTES_MAX) -> None:
        super().__init__(attrgetter("blocks_bytes"), bytes_max)

    def check_room(self, subscription: AcksHolder) -> None:
        """Raise :class:`NoAckRoomError` unless a subscription may begin one more block."""
        if not self.has_room(subscription):
            raise NoAckRoomError(
                f"what all subscriptions acknowledged out of order takes {self.held_bytes:,} "
                f"bytes; beyond {self._bytes_max:,} those with the most take no more"
            )
