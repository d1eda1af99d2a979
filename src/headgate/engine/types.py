"""Enumerations of the engine, with Pulsar's numbers where the protocol has one."""

from __future__ import annotations

from enum import Enum, IntEnum


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
    EXCLUSIVE = 1


class NotReady(Enum):
    """Why no consumer of a subscription is ready (docs/telemetry.md 1). The highest value wins."""

    SOCKET_FULL = 3
    NO_PERMITS = 2
    UNACKED_LIMIT = 1
    NO_CONSUMER = 0
