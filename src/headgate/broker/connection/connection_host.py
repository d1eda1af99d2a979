"""The broker, as its connections use it: the port of the broker, and the handlers of commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.broker.authentication import Authentication
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.command_budget import CommandBudget
from headgate.broker.info import BrokerInfo
from headgate.broker.work.scheduler import WorkScheduler
from headgate.storage.publish_buffer import PublishBuffer
from headgate.wire.messages import BaseCommand

Handler = Callable[[ClientConnection, BaseCommand], Coroutine[Any, Any, None] | None]
"""Carries out a command. A handler that has to wait returns a coroutine. The client gets the error
that either raises, but for a breach of the protocol, which ends its connection."""


@dataclass(frozen=True, slots=True)
class CommandHandlers:
    """The handlers of commands that a connection does not carry out itself."""

    check: Callable[[ClientConnection, BaseCommand], None]
    """Raises :class:`RefusalError` if the client may not have a command carried out."""
    acknowledge: Callable[[ClientConnection, BaseCommand], int]
    """Carries out an ACK; returns the work that it took."""
    by_type: Mapping[int, Handler]


class ConnectionHost(Protocol):
    """The broker, as its connections use it."""

    loop: asyncio.AbstractEventLoop
    info: BrokerInfo
    publish_buffer: PublishBuffer

    @property
    def authentication(self) -> Authentication | None:
        """What finds out who a client is; None if every client is taken as it comes."""

    @property
    def work(self) -> WorkScheduler:
        """What runs long work in slices."""

    @property
    def command_budget(self) -> CommandBudget:
        """What bounds the commands of all connections."""

    def begin_turn(self) -> None:
        """Read the clock: everything until the next call happens at this instant."""

    def at_end_of_turn(self, action: Callable[[], None], /) -> None:
        """Call ``action`` when this turn has dispatched all it can."""

    def publish_buffer_full(self) -> bool:
        """Whether more bytes wait to be durable than the settings allow."""
