"""Runs the commands of one connection whose handlers wait, within bounds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from headgate.base.errors import HeadgateError, InvariantError
from headgate.base.units import KIB
from headgate.broker.connection.bounds import COMMAND_BYTES_MAX, COMMANDS_MAX
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.ended_connection import ENDED
from headgate.wire import commands
from headgate.wire.codes import ServerError
from headgate.wire.messages import BaseCommand

logger = logging.getLogger("headgate.connection")

SMALL_BYTES: Final = KIB
"""Commands up to this size count when a connection's memory is measured, larger ones at once."""


class WaitingCommands:
    """One task for each command that waits, and the bounds of all of them together."""

    def __init__(
        self,
        connection: ClientConnection,
        loop: asyncio.AbstractEventLoop,
        charge: Callable[[int], None],
    ) -> None:
        """``charge`` is called with the bytes of each large command that waits, and with as many
        less when it no longer does."""
        self._connection = connection
        self._loop = loop
        self._charge = charge
        self._tasks: dict[asyncio.Task[None], int] = {}
        self.size_bytes = 0
        """Size of all commands that wait."""

    def forget_connection(self) -> None:
        """Refer to the connection no more, which has ended."""
        self._connection = ENDED

    @property
    def count(self) -> int:
        """Commands that wait."""
        return len(self._tasks)

    @property
    def is_full(self) -> bool:
        """Whether the connection should pause reading."""
        return len(self._tasks) >= COMMANDS_MAX or self.size_bytes > COMMAND_BYTES_MAX

    @property
    def has_room(self) -> bool:
        """Whether at most half of each bound is in use."""
        return len(self._tasks) <= COMMANDS_MAX // 2 and self.size_bytes <= COMMAND_BYTES_MAX // 2

    def add(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand) -> None:
        """Carry out a command; the client gets the error that it raises."""
        task = self._loop.create_task(self._carry_out(coroutine, command))
        size_bytes = command.ByteSize()
        self._tasks[task] = size_bytes
        self.size_bytes += size_bytes
        if size_bytes > SMALL_BYTES:
            self._charge(size_bytes)
        task.add_done_callback(partial(self._done, coroutine))

    def cancel(self) -> None:
        """Cancel all of them, because the connection has ended."""
        for task in self._tasks:
            task.cancel()

    def _done(self, coroutine: Coroutine[Any, Any, None], task: asyncio.Task[None]) -> None:
        coroutine.close()  # the task may have been cancelled before it began
        size_bytes = self._tasks.pop(task)
        self.size_bytes -= size_bytes
        if size_bytes > SMALL_BYTES:
            self._charge(-size_bytes)
        self._connection.resume()

    async def _carry_out(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand) -> None:
        connection = self._connection
        try:
            await coroutine
        except HeadgateError as error:
            connection.refuse(command, error)
        except InvariantError:
            raise
        except Exception:
            logger.exception("%s: a command failed with an internal error", connection.address)
            code = ServerError.UNKNOWN_ERROR
            reply = commands.refuse(command, code, "Internal error of the broker")
            if reply is not None:
                connection.write(reply)
