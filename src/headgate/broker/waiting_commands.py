"""Commands of one connection that wait for something: how many, how long, and their failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.base.errors import HeadgateError, InvariantError
from headgate.broker.connection_bounds import COMMAND_BYTES_MAX, COMMANDS_MAX
from headgate.wire import commands
from headgate.wire.codes import ServerError
from headgate.wire.messages import BaseCommand

if TYPE_CHECKING:
    from headgate.broker.connection import Connection

logger = logging.getLogger("headgate.connection")


class WaitingCommands:
    """A task each, and bounds for all."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tasks: dict[asyncio.Task[None], int] = {}
        self.size_bytes = 0
        """Of all commands that wait."""

    @property
    def count(self) -> int:
        """How many wait."""
        return len(self._tasks)

    @property
    def is_full(self) -> bool:
        """Whether no more should come."""
        return len(self._tasks) >= COMMANDS_MAX or self.size_bytes > COMMAND_BYTES_MAX

    @property
    def has_room(self) -> bool:
        """Whether half of what made it full is gone."""
        return len(self._tasks) <= COMMANDS_MAX // 2 and self.size_bytes <= COMMAND_BYTES_MAX // 2

    def add(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand) -> None:
        """Carry out a command; what it refuses is answered to the client."""
        loop = self._connection.broker.loop
        task = loop.create_task(self._carry_out(coroutine, command))
        size_bytes = command.ByteSize()
        self._tasks[task] = size_bytes
        self.size_bytes += size_bytes
        task.add_done_callback(partial(self._done, coroutine))

    def cancel(self) -> None:
        """The connection is over."""
        for task in self._tasks:
            task.cancel()

    def _done(self, coroutine: Coroutine[Any, Any, None], task: asyncio.Task[None]) -> None:
        coroutine.close()  # of a command that was given up before it began
        self.size_bytes -= self._tasks.pop(task)
        self._connection.go_on()

    async def _carry_out(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand) -> None:
        connection = self._connection
        try:
            await coroutine
        except HeadgateError as error:
            connection.refuse(command, error)
        except InvariantError:
            raise
        except Exception:
            logger.exception("%s: a command failed by an error of ours", connection.address)
            code = ServerError.UNKNOWN_ERROR
            reply = commands.refuse(command, code, "Internal error of the broker")
            if reply is not None:
                connection.write(reply)
