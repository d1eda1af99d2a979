"""The errors with which the engine refuses what a client or an administrator asks for."""

from __future__ import annotations

from headgate.base.errors import HeadgateError


class EngineError(HeadgateError):
    """The engine refuses what a client or an administrator asked for."""


class ProducerBusyError(EngineError):
    """A producer of this name is connected, or another has exclusive access."""


class ProducerFencedError(EngineError):
    """Exclusive access is refused: the topic has producers, or had others since the topic epoch
    that the producer brings."""


class TopicTerminatedError(EngineError):
    """The topic is terminated: it takes no more messages."""


class ProducersHeldError(EngineError):
    """The topic has reached a backlog quota that holds producers."""


class DiskFullError(ProducersHeldError):
    """The disk is full, and the connection has parked as much as it may."""


class ProducersRefusedError(EngineError):
    """The topic has reached a backlog quota that refuses producers."""


class DamagedError(EngineError):
    """The disk lost data of the topic or subscription, and nobody has accepted that."""

    def __init__(self, name: str, damage: str) -> None:
        super().__init__(
            f"{name} is damaged: {damage}. Have it served as it is with "
            f"'headgate admin topics accept-damage', or delete it"
        )


class ConsumerBusyError(EngineError):
    """The subscription has consumers that the new one cannot join."""


class TopicFencedError(EngineError):
    """The topic or subscription is being closed or moved; the client may try again."""


class SubscriptionBusyError(EngineError):
    """The subscription has connected consumers, so it cannot be removed."""


class NotAllowedError(EngineError):
    """The operation is not possible on this topic or subscription."""


class SubscriptionNotFoundError(EngineError):
    """The subscription does not exist, and a consumer's use does not create it."""


class TooManySubscriptionsError(NotAllowedError):
    """The topic has as many durable subscriptions as it may."""


class ConsumerNotFoundError(EngineError):
    """The connection has no such consumer."""


class UnsupportedVersionError(EngineError):
    """The client's protocol version is too old for what the topic has."""
