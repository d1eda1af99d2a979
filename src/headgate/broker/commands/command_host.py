"""The broker, as the handlers of commands use it."""

from __future__ import annotations

from typing import Protocol

from headgate.broker.client_memory import ClientMemory
from headgate.engine.topic import Topic
from headgate.policy.settings import Settings


class CommandHost(Protocol):
    """The broker, as command handlers use it."""

    client_memory: ClientMemory
    """The bound on what all connections together hold."""
    settings: Settings
    """The settings in force."""

    def begin_turn(self) -> None:
        """Read the clock: everything until the next call happens at this instant."""

    def unique_name(self) -> str:
        """A producer or consumer name that is never used twice."""

    def ordinal_at_time(self, topic: Topic, publish_ms: int, /) -> int:
        """The first entry published at or after a time of the wall clock, else the end."""

    async def when_durable(self, topic: Topic, /) -> None:
        """Return when everything staged until now in a topic's log is durable.

        Raises:
            StorageError: it could not be stored.
        """
