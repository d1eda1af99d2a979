"""What the parts of a connection refer to once it has ended, in place of the connection.

A connection and its parts refer to each other. Without this, each one that ends would be a cycle,
which only the garbage collector frees, and that no longer visits what lived for a tenth of a
second. Tasks and receipts that are still under way may use the parts and the connection until they
are done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, cast

from headgate.base.errors import HeadgateError
from headgate.base.identity import NOBODY
from headgate.base.work_units import WATCHER_ENDED
from headgate.broker.connection.client_connection import ClientConnection, Watcher
from headgate.broker.work.scheduler import Steps
from headgate.wire.messages import BaseCommand


class _EndedConnection:
    """Takes everything that a part may still ask of its connection, and does nothing. It has no
    producers and consumers any more, and no ports of them."""

    address = ""
    peer = None
    identity = NOBODY
    is_open = False
    socket_paused = False
    is_partial = False
    peer_blocked = False
    objects_count = 0

    @property
    def producers(self) -> dict[int, Any]:
        return {}

    consumers = watchers = creating = described_bytes = producers

    def write(self, frame: bytes) -> None:
        """Nobody reads it."""

    def close_at_client(self, frame: bytes) -> None:
        """The client has left."""

    def forget_producer(self, _: int) -> bool:
        return False

    def refuse(self, _: BaseCommand, __: HeadgateError) -> bool:
        return True

    def run_in_slices(self, slices: Iterator[int]) -> None:
        """Nothing is carried out any more."""

    def run_waiting(self, coroutine: Coroutine[Any, Any, None], _: BaseCommand) -> None:
        coroutine.close()

    def pause_reading(self) -> None:
        """There is nothing to pause, to resume or to end."""

    resume = resume_soon = close = abort = pause_reading

    def unsent_bytes(self) -> int:
        return 0

    async def is_alive(self) -> bool:
        return False


ENDED: Final = cast(ClientConnection, _EndedConnection())
"""Stands for every connection that has ended."""


class _EndedTransport(asyncio.Transport):
    """Takes what is written, and is closed."""

    def write(self, data: object) -> None:
        pass

    def writelines(self, list_of_data: Iterable[object]) -> None:
        pass

    def is_closing(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        """It is closed, and nothing is read from it."""

    abort = pause_reading = resume_reading = close


ENDED_TRANSPORT: Final = _EndedTransport()
"""Stands for the transport of every connection that has ended. A transport of TLS refers to its
protocol for ever, and has buffers of 256 KiB."""


def _ignore(*_: object) -> None:
    pass


IGNORE: Final[Callable[..., None]] = _ignore
"""Stands for a function of a connection that has ended."""


def no_bytes() -> int:
    """Stands for the number of bytes that a connection which has ended may keep."""
    return 0


def ended(watchers: Sequence[Watcher]) -> Steps:
    """End the watchers of a connection that has ended."""
    for watcher in watchers:
        watcher.end()
        yield WATCHER_ENDED


def counted(
    steps: Iterator[int], size_bytes: int, leave: Callable[[str, int], None], owner: str
) -> Steps:
    """``steps`` that free ``size_bytes`` of a connection of ``owner`` that has ended, which count
    from now on until they are done. Else they would be growth that calls for a collection of
    garbage."""
    leave(owner, size_bytes)

    def until_freed() -> Steps:
        yield from steps
        leave(owner, -size_bytes)

    return until_freed()
