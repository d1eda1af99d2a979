"""The connection of the test client, as its producers and consumers use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from headgate.wire.messages import BaseCommand


class ClientConnection(Protocol):
    """One open connection to a broker. ``headgate.testing.SimClient`` is one."""

    loop: asyncio.AbstractEventLoop
    wall_ms: Callable[[], int]
    """The publish time of messages, ms since the epoch."""

    def write(self, frame: bytes, /) -> None:
        """Send a frame. Raises :class:`ConnectionLostError`."""

    async def request(self, make: Callable[[int], bytes], /) -> BaseCommand:
        """Send the frame that ``make(request id)`` builds and wait for its answer.

        Raises:
            RefusedError: the answer is an error.
            ConnectionLostError: there will be no answer.
        """

    def forget_producer(self, producer_id: int, /) -> None:
        """A producer is closed: nothing more is delivered to it."""

    def forget_consumer(self, consumer_id: int, /) -> None:
        """A consumer is closed: nothing more is delivered to it."""
