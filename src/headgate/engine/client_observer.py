"""The consumers and producers that connect to an engine's topics and leave them.

Such an observer reads the engine and never changes anything. It is called when a client comes or
goes, never for a message, a permit or an acknowledgement.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from headgate.base.names import TopicName


class Client(Protocol):
    """A consumer or producer."""

    @property
    def name(self) -> str:
        """Its name, by which its client calls it or the broker."""

    @property
    def client_version(self) -> str:
        """The version of its library; empty if it is not known."""


class ClientTopic(Protocol):
    """A topic, as far as its clients are concerned."""

    @property
    def name(self) -> TopicName:
        """Its full name."""

    @property
    def is_system(self) -> bool:
        """Whether it is the broker's own."""

    @property
    def producers(self) -> Sized:
        """Those that are connected."""


class ClientSubscription(Protocol):
    """A subscription, as far as its clients are concerned."""

    @property
    def name(self) -> str:
        """Its name in the topic."""

    @property
    def is_durable(self) -> bool:
        """Whether it outlives its consumers; that of a reader does not."""

    @property
    def consumers(self) -> Sized:
        """Those that are connected."""

    @property
    def topic(self) -> ClientTopic:
        """Its topic."""


class ClientObserver(Protocol):
    """Receives each change of the clients."""

    def consumer_added(self, subscription: ClientSubscription, consumer: Client, /) -> None:
        """A consumer connected; it is among the subscription's consumers."""

    def consumer_removed(self, subscription: ClientSubscription, consumer: Client, /) -> None:
        """A consumer left, or was disconnected; it is not among them any more."""

    def producer_added(self, topic: ClientTopic, producer: Client, /) -> None:
        """A producer connected; it is among the topic's producers."""

    def producer_removed(self, topic: ClientTopic, producer: Client, /) -> None:
        """A producer left, or was disconnected; it is not among them any more."""


class NoClientObserver:
    """The observer of an engine without one."""

    def consumer_added(self, subscription: ClientSubscription, consumer: Client, /) -> None: ...

    def consumer_removed(self, subscription: ClientSubscription, consumer: Client, /) -> None: ...

    def producer_added(self, topic: ClientTopic, producer: Client, /) -> None: ...

    def producer_removed(self, topic: ClientTopic, producer: Client, /) -> None: ...
