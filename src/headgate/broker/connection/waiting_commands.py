"""Runs the commands of one connection whose handlers wait, within bounds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from headgate.base.drained import drained
from headgate.base.errors import HeadgateError, InvariantError
from headgate.base.units import KIB
from headgate.base.work_units import COMMAND_CANCELLED
from headgate.broker.connection.bounds import COMMAND_BYTES_MAX, COMMANDS_MAX, taken_bytes
from headgate.broker.connection.client_connection import ClientConnection, owner_of
from headgate.broker.connection.ended_connection import ENDED
from headgate.broker.connection.left_acknowledgements import LeftAcknowledgements
from headgate.broker.left_memory import LeftMemory
from headgate.broker.work.scheduler import Steps
from headgate.wire import commands
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.messages import BaseCommand

logger = logging.getLogger("headgate.connection")

SMALL_BYTES: Final = 8 * KIB
"""Commands that take up to this count when a connection's memory is measured, larger ones at
once."""


class _Waiting(NamedTuple):
    """What a command that waits takes."""

    taken_bytes: int
    size_bytes: int
    is_ack: bool


class Charges(Protocol):
    """What is told of the memory that commands take."""

    @property
    def left(self) -> LeftMemory:
        """That of connections that have ended."""

    def charge(self, size_bytes: int, /) -> None:
        """A large command takes so much, or gives it back if it is negative."""


class WaitingCommands:
    """One task for each command that waits, and the bounds of all of them together."""

    def __init__(
        self,
        connection: ClientConnection,
        loop: asyncio.AbstractEventLoop,
        memory: Charges,
        left: LeftAcknowledgements,
    ) -> None:
        """``left`` keeps acknowledgements when the connection has ended."""
        self._connection = connection
        self._loop = loop
        self._memory = memory
        self._left = left
        self._has_ended = False
        self._owner = ""
        """Who answers for what is left when the connection has ended; empty until then."""
        self._tasks: dict[asyncio.Task[None], _Waiting] = {}
        self._size_bytes = 0
        self.taken_bytes = 0
        """Memory of all commands that wait."""

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
        if len(self._tasks) >= COMMANDS_MAX or self._size_bytes > COMMAND_BYTES_MAX:
            return True
        return self._waits_for_left()

    @property
    def has_room(self) -> bool:
        """Whether at most half of each bound is in use."""
        size_bytes_max = COMMAND_BYTES_MAX // 2
        if len(self._tasks) > COMMANDS_MAX // 2 or self._size_bytes > size_bytes_max:
            return False
        return not self._waits_for_left()

    def _waits_for_left(self) -> bool:
        """Whether ended connections of the same client take too much; it is resumed later then."""
        left, connection = self._memory.left, self._connection
        return not self._has_ended and left.makes_wait(owner_of(connection), connection)

    def add(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand) -> None:
        """Carry out a command; the client gets the error that it raises."""
        task = self._loop.create_task(self._carry_out(coroutine, command))
        size_bytes = command.ByteSize()
        taken = taken_bytes(command, size_bytes)
        self._tasks[task] = _Waiting(taken, size_bytes, command.type == CommandType.ACK)
        self._size_bytes += size_bytes
        self.taken_bytes += taken
        if taken > SMALL_BYTES:
            self._memory.charge(taken)
        task.add_done_callback(partial(self._done, coroutine))

    def cancel(self) -> Steps:
        """The connection has ended: cancel all of them but acknowledgements, which count."""
        self._has_ended = True
        left, self._owner = self._memory.left, owner_of(self._connection)
        left.forget(self._owner, self._connection)
        left.leave(self._owner, self.taken_bytes)
        keep, owner = self._left.keep, self._owner
        return _cancel(
            [
                task
                for task, waiting in self._tasks.items()
                if not (waiting.is_ack and keep(task, waiting.taken_bytes, owner))
            ]
        )

    def _done(self, coroutine: Coroutine[Any, Any, None], task: asyncio.Task[None]) -> None:
        coroutine.close()  # the task may have been cancelled before it began
        taken, size_bytes, _ = self._tasks.pop(task)
        self._size_bytes -= size_bytes
        self.taken_bytes -= taken
        if self._has_ended:
            self._memory.left.leave(self._owner, -taken)
        if taken > SMALL_BYTES:
            self._memory.charge(-taken)
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


def _cancel(tasks: list[asyncio.Task[None]]) -> Steps:
    for task in drained(tasks):  # one that has ended holds its frames until it is freed
        task.cancel()
        del task
        yield COMMAND_CANCELLED
