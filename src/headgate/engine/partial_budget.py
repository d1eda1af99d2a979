"""Bounds the memory of the partly acknowledged batches of all subscriptions together.

Each subscription has a bound of its own. A client could still fill one subscription after another
and leave, so that nobody is charged: see :mod:`headgate.engine.ack_budget`. At the bound the broker
refuses that further batches begin to be partly acknowledged.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import MIB
from headgate.engine.ack_budget import AckBudget, AcksHolder, NoAckRoomError

PARTIAL_BYTES_MAX: Final = 8 * MIB
"""The bound of one subscription: about 180,000 batches of 100 messages. Beyond it, batches are
acknowledged as a whole only."""
PARTIALS_BYTES_MAX: Final = 128 * MIB
"""The bound of all: 620,000 subscriptions with one batch of 100 messages each."""
PARTS_BATCH_MAX: Final = 1 << 16
"""Larger batches are acknowledged as a whole only: each acknowledgement of a part stores a bit for
each message."""


class PartialBudget(AckBudget):
    """What partly acknowledged batches take, by subscription."""

    __slots__ = ()

    def __init__(self, bytes_max: int = PARTIALS_BYTES_MAX) -> None:
        super().__init__(attrgetter("partial_bytes"), bytes_max)

    def check_room(self, subscription: AcksHolder) -> None:
        """Raise :class:`InputError` unless one more batch of a subscription may be partly
        acknowledged: :class:`NoAckRoomError` if that is because of others."""
        size_bytes = subscription.acks.partial_bytes
        if size_bytes >= PARTIAL_BYTES_MAX:
            raise InputError(
                f"subscription {subscription.name} has partly acknowledged batches of "
                f"{size_bytes:,} bytes; up to {PARTIAL_BYTES_MAX:,} are kept"
            )
        if not self.has_room(subscription):
            raise NoAckRoomError(
                f"all subscriptions together have partly acknowledged batches of "
                f"{self.held_bytes:,} bytes; beyond {self._bytes_max:,} those with the most take "
                "no more"
            )
