"""Whether the peer of a connection is still there."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headgate.broker.connection_bounds import (
    HANDSHAKE_TIMEOUT_S,
    LIVENESS_TIMEOUT_S,
    REASSURE_EVERY_S,
)
from headgate.wire import encode

if TYPE_CHECKING:
    from headgate.broker.connection import Connection

logger = logging.getLogger("headgate.connection")


class KeepAlive:
    """Asks the peer for a sign of life now and then, and ends the connection when none comes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loop = connection.broker.loop
        self.heard = False
        """Set whenever the peer gives a sign of life."""
        self._waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._reassure_timer: asyncio.TimerHandle | None = None

    def await_handshake(self) -> None:
        """The connection is open: CONNECT must come soon."""
        self._again_in(HANDSHAKE_TIMEOUT_S)

    def begin(self) -> None:
        """CONNECT came: from now on the peer is asked."""
        self._again_in(self._connection.broker.settings.keepAliveIntervalSeconds)

    def stop(self) -> None:
        """The connection is over; nobody waits for it any more."""
        for timer in (self._timer, self._reassure_timer):
            if timer is not None:
                timer.cancel()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def reassure(self) -> None:
        """The peer is not read for now, its PINGs neither: it gets a PONG now and then until it
        is, so that it keeps the connection."""
        if self._reassure_timer is None:
            self._reassure_timer = self._loop.call_later(REASSURE_EVERY_S, self._reassured)

    def _reassured(self) -> None:
        self._reassure_timer = None
        connection = self._connection
        if connection.throttle.pauses_reading:
            if connection.peer is not None and connection.peer.knows_ping:
                connection.write(encode.pong())
            self.reassure()

    def pong(self) -> None:
        """The peer answered."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _again_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        """Close a peer that stayed silent for a whole interval after a PING."""
        connection = self._connection
        peer = connection.peer
        if peer is None:
            logger.info("%s sent no CONNECT and is cut off", connection.address)
            connection.close()
            return
        awaits_sign = peer.knows_ping and (connection.write_paused or not connection.read_paused)
        if awaits_sign and not self.heard:
            logger.info("%s is silent and is cut off", connection.address)
            connection.cut_off()
            return
        self.heard = False
        if peer.knows_ping:
            connection.write(encode.ping())
        self.begin()

    async def is_alive(self) -> bool:
        """Ask the peer for a sign of life; False (and cut off) when none comes in time."""
        connection = self._connection
        if not connection.is_open or connection.peer is None or not connection.peer.knows_ping:
            return connection.is_open
        if connection.read_paused:
            return True  # it sent more than could be stored so far: its PONG would wait behind
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        unsent_bytes = connection.unsent_bytes()
        connection.write(encode.ping())
        try:
            await asyncio.wait_for(waiter, LIVENESS_TIMEOUT_S)
        except TimeoutError:
            if waiter not in self._waiters:
                return connection.is_open  # its PONG came at the very last moment
            self._waiters.remove(waiter)
            if connection.is_open and connection.unsent_bytes() < unsent_bytes:
                return True  # it takes what it is sent, slowly: the PING is still on its way
            connection.cut_off()
            return False
        return connection.is_open
