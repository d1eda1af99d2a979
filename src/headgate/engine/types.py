"""Enumerations of the engine, with Pulsar's numbers where the protocol has one."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final


class SubscriptionType(IntEnum):
    """How a subscription shares its entries among its consumers (CommandSubscribe.SubType)."""

    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2

    @property
    def label(self) -> str:
        """Its name in the admin API."""
        return self.name.capitalize()

    @property
    def is_shared(self) -> bool:
        """Whether several consumers are served at once and messages acknowledged one by one."""
        return self is SubscriptionType.SHARED


class AccessMode(IntEnum):
    """How a producer shares its topic (ProducerAccessMode)."""

    SHARED = 0
    """Beside other producers."""
    EXCLUSIVE = 1
    """Alone, or refused."""
    WAIT_FOR_EXCLUSIVE = 2
    """Alone, when the others are gone."""
    EXCLUSIVE_WITH_FENCING = 3
    """Alone: the others are closed."""

    @property
    def label(self) -> str:
        """Its name in the admin API."""
        return _ACCESS_LABELS[self]


_ACCESS_LABELS: Final = {
    AccessMode.SHARED: "Shared",
    AccessMode.EXCLUSIVE: "Exclusive",
    AccessMode.WAIT_FOR_EXCLUSIVE: "WaitForExclusive",
    AccessMode.EXCLUSIVE_WITH_FENCING: "ExclusiveWithFencing",
}


class NotReady(Enum):
    """Why no consumer of a subscription is ready (docs/telemetry.md 1). The highest value wins."""

    SOCKET_FULL = 3
    NO_PERMITS = 2
    UNACKED_LIMIT = 1
    NO_CONSUMER = 0


class Bucket:
    """Topics whose oldest message reaches its time quota at about the same time."""

    __slots__ = ("dead", "number", "topics")

    def __init__(self, number: int) -> None:
        self.number = number
        """The time of the log in units of the scheduler's ``BUCKET_MS``."""
        self.topics: list[int] = []
        """Their numbers, not the objects: a time quota of a month must not keep a deleted topic."""
        self.dead = 0
        """How many of them no longer wait in this bucket."""
