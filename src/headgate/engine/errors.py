"""Refusals of the engine. Each names what was asked and why it cannot be."""

from __future__ import annotations

from headgate.base.errors import HeadgateError


class EngineError(HeadgateError):
    """Something that a client or an administrator asked for and the engine refuses."""


class ProducerBusyError(EngineError):
    """A producer of this name is connected, or the topic has its maximum of producers."""


class ProducerFencedError(EngineError):
    """Another producer has the topic for itself."""


class ProducersHeldError(EngineError):
    """The topic has reached a backlog quota that holds producers; there is no room for another."""


class DiskFullError(ProducersHeldError):
    """The disk is full, and the connection parked as much of what was sent as it may."""


class ProducersRefusedError(EngineError):
    """The topic has reached a backlog quota that refuses producers."""


class DamagedError(EngineError):
    """The disk lost something of the topic or subscription, and nobody has accepted that yet."""

    def __init__(self, name: str, damage: str) -> None:
        super().__init__(
            f"{name} is damaged: {damage}. Have it served as it is with "
            f"'headgate admin topics accept-damage', or delete it"
        )


class ConsumerBusyError(EngineError):
    """The subscription has consumers that this one cannot join."""


class TopicFencedError(EngineError):
    """The topic or subscription is being closed or moved; the client may try again."""


class SubscriptionBusyError(EngineError):
    """The subscription has connected consumers, so it cannot be removed."""


class NotAllowedError(EngineError):
    """What was asked for is not possible on this topic or subscription."""
