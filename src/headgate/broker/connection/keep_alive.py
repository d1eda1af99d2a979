"""Detects whether the peer of a connection is alive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headgate.base.drained import drained
from headgate.base.work_units import COLD
from headgate.broker.connection.bounds import (
    HANDSHAKE_TIMEOUT_S,
    LIVENESS_TIMEOUT_S,
    PONG_PERIOD_S,
)
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.ended_connection import ENDED
from headgate.broker.connection.refusals import RefusalLogger
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.policy.settings import Settings
from headgate.wire import encode


class KeepAlive:
    """Sends a PING at each interval and ends the connection when the peer stays silent."""

    def __init__(
        self,
        connection: ClientConnection,
        loop: asyncio.AbstractEventLoop,
        work: WorkScheduler,
        settings: Settings,
        refusals: RefusalLogger,
    ) -> None:
        """``refusals`` logs why the connection ends."""
        self._connection = connection
        self._work = work
        self._refusals = refusals
        self._loop = loop
        self._settings = settings
        self.peer_active = False
        """Set to True at each sign of life of the peer."""
        self._waiters: list[asyncio.Future[bool]] = []
        """Those of :meth:`is_alive`: thousands, if so many want what one silent peer holds."""
        self._check: asyncio.TimerHandle | None = None
        """The end of the time of the PING that they wait for."""
        self._timer: asyncio.TimerHandle | None = None
        self._pong_timer: asyncio.TimerHandle | None = None

    def forget_connection(self) -> None:
        """Refer to the connection no more, which has ended."""
        self._connection = ENDED

    def await_handshake(self) -> None:
        """The connection is open: CONNECT must come within :data:`HANDSHAKE_TIMEOUT_S`."""
        self._tick_in(HANDSHAKE_TIMEOUT_S)

    def begin(self) -> None:
        """CONNECT came: send PINGs from now on."""
        self._tick_in(self._settings.keepAliveIntervalSeconds)

    def stop(self) -> None:
        """End the timers and the waits of :meth:`is_alive`, because the connection has ended."""
        for timer in (self._timer, self._pong_timer):
            if timer is not None:
                timer.cancel()
        self._tell(is_alive=False)

    def send_pongs_while(self, is_needed: Callable[[], bool]) -> None:
        """Send a PONG every :data:`PONG_PERIOD_S` while ``is_needed``. The broker does not read the
        peer meanwhile: its PINGs get no answer, and without PONGs it would disconnect."""
        if self._pong_timer is None:
            self._pong_timer = self._loop.call_later(PONG_PERIOD_S, self._send_pong, is_needed)

    def _send_pong(self, is_needed: Callable[[], bool]) -> None:
        self._pong_timer = None
        peer = self._connection.peer
        if is_needed():
            if peer is not None and peer.knows_ping:
                self._connection.write(encode.pong())
            self.send_pongs_while(is_needed)

    def pong(self) -> None:
        """The peer answered a PING."""
        self._tell(is_alive=True)

    def _tell(self, *, is_alive: bool) -> None:
        """Tell those that wait for a sign of life: one at once, more in slices, because each then
        carries out a command."""
        waiters, self._waiters = self._waiters, []
        if self._check is not None:
            self._check.cancel()
            self._check = None
        steps = _telling(waiters, is_alive)
        if len(waiters) > 1:
            owner = f"role {self._connection.identity.text}"
            self._work.run("telling whether a peer is alive", JobClass.COMMAND, steps, owner)
        else:
            for _ in steps:
                pass

    def _tick_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        """Disconnect a peer that was silent for a whole interval after a PING."""
        connection = self._connection
        peer = connection.peer
        if peer is None:
            text = "%s sent no CONNECT that was accepted in time and is disconnected"
            self._refusals.ended(connection, text)
            connection.close()
            return
        expects_sign = peer.knows_ping and (connection.peer_blocked or not connection.socket_paused)
        if expects_sign and not self.peer_active:
            self._refusals.ended(connection, "%s is silent and is disconnected")
            connection.abort()
            return
        self.peer_active = False
        if peer.knows_ping:
            connection.write(encode.ping())
        self.begin()

    async def is_alive(self) -> bool:
        """Send a PING; disconnect the peer and return False if it shows no sign of life in time.
        All that ask meanwhile share the PING and its time."""
        connection = self._connection
        if not connection.is_open or connection.peer is None or not connection.peer.knows_ping:
            return connection.is_open
        if connection.socket_paused:
            return True  # its PONG would wait behind SENDs for which the broker has no room
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiters.append(waiter)
        if self._check is None:
            unsent_bytes = connection.unsent_bytes()
            connection.write(encode.ping())
            self._check = self._loop.call_later(LIVENESS_TIMEOUT_S, self._silent, unsent_bytes)
        return await waiter and connection.is_open

    def _silent(self, unsent_bytes: int) -> None:
        """No PONG came in time; there were so many bytes before the PING that the peer had not
        read."""
        connection = self._connection
        is_reading = connection.unsent_bytes() < unsent_bytes  # the PING has not reached it yet
        if is_reading or all(waiter.done() for waiter in self._waiters):
            self._tell(is_alive=True)  # or those that asked have left
        else:
            connection.abort()


def _telling(waiters: list[asyncio.Future[bool]], is_alive: bool) -> Steps:
    for waiter in drained(waiters):
        if not waiter.done():
            waiter.set_result(is_alive)
            yield 2 * COLD  # it carries out the rest of its command
