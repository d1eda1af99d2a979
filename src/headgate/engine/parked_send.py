"""One SEND that waits before its append."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class ParkedAt(IntEnum):
    """Where a producer's parked SENDs wait. The values index lists."""

    QUOTA = 0
    """The topic's backlog quota is exceeded."""
    GATE = 1
    """A publish limit of the topic or the broker allows no more now."""
    CONNECTION = 2
    """The connection has as many unanswered SENDs as it may have."""
    DISK = 3
    """The disk is full."""


class ParkedSend(NamedTuple):
    """One SEND as it arrived."""

    sequence_id: int
    highest_sequence_id: int
    message_count: int
    body: bytes
    arrived_ns: int
