"""Takes each connection of a TLS port through its handshake, before its protocol exists.

A handshake is the costliest thing that an unauthenticated client can ask for. So the broker first
applies the limits on connections, then reads the client's first record without TLS, and begins the
handshake only when that record is whole: a few of them in each turn of the loop. A client that
sends slowly, or something else, costs a timer and a buffer.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from typing import Final, cast

import msgspec

from headgate.app.entry_turns import EntryTurns, fail, hand_on
from headgate.app.tls.gates import ConnectionGate
from headgate.app.tls.hello import (
    HELLO_BYTES_MAX,
    NotTlsButHttpError,
    NotTlsError,
    hello_bytes,
    is_whole,
    read_hello,
)
from headgate.app.tls.profile import PortContexts
from headgate.app.tls.record_reading import RecordReads, RecordTurns
from headgate.app.tls.transport import TlsTransport
from headgate.base.bounded_lines import BoundedLines
from headgate.base.units import KIB
from headgate.broker.connection.address_counts import address_of, peer_network_of
from headgate.broker.connection.bounds import CLOSE_TIMEOUT_S, HANDSHAKE_TIMEOUT_S
from headgate.broker.tls_status import HandshakeEnd, TlsStatus

logger = logging.getLogger("headgate.tls")

HELLO_BYTES_START: Final = 2 * KIB
"""First buffer of a connection: most first records fit."""

HANDSHAKES_PER_TURN: Final = 2
"""Handshakes that begin in one turn of the loop. One costs 0.2 ms with a key on P-256, and a
millisecond with RSA."""

EARLY_BYTES: Final = 64 * KIB
"""Room for bytes that a loop hands over before the protocol exists (asyncio's may; uvloop does
not)."""

_PLAIN_HTTP_REASON: Final = "This port speaks HTTPS: use https:// in place of http://"


class HandshakePace(EntryTurns):
    """Begins handshakes, :data:`HANDSHAKES_PER_TURN` in each turn, for all ports of a broker."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, now_s: Callable[[], float] = time.perf_counter
    ) -> None:
        """``now_s`` moves within a turn, other than the time of uvloop."""
        super().__init__(loop, HANDSHAKES_PER_TURN)
        self.records = RecordTurns(loop, now_s)
        """What comes behind a connection's first record."""


class TlsPort:
    """The protocol factory of one port: an entry for each connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        contexts: Callable[[str], PortContexts],
        gate: ConnectionGate,
        pace: HandshakePace,
        status: TlsStatus,
        lines: BoundedLines,
    ) -> None:
        """``contexts`` gives those of handshakes for the host name that the client asks for."""
        self.loop = loop
        self.contexts = contexts
        self.gate = gate
        self.pace = pace
        self.status = status
        self.lines = lines
        self.half_open: set[TlsEntry] = set()

    def entry(self, make: Callable[[], asyncio.BaseProtocol]) -> TlsEntry:
        """For one connection, whose protocol ``make`` makes after the handshake."""
        return TlsEntry(self, make)

    def close(self) -> None:
        """End connections whose handshake is not done."""
        for entry in list(self.half_open):
            entry.end(HandshakeEnd.FAILED, "")


class TlsEntry(asyncio.BufferedProtocol):
    """One connection until its handshake is done."""

    def __init__(self, port: TlsPort, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._port = port
        self._make = make
        self._plain: asyncio.Transport
        self._address = ""
        self._timer: asyncio.TimerHandle | None = None
        self._buffer = bytearray(HELLO_BYTES_START)
        self._size = 0
        self._early = b""
        self._is_waiting = False
        self._has_begun = False
        self._task: asyncio.Task[None] | None = None
        self._reads: RecordReads | None = None

    # -- before the handshake ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        port, self._plain = self._port, cast(asyncio.Transport, transport)
        peername = transport.get_extra_info("peername")
        self._address = address_of(peername)
        if peername is None:
            # The client has left already. Bytes that came before hide that until all are read, so
            # it would wait for its turn, in a place that counts for no network.
            port.status.handshakes[HandshakeEnd.FAILED] += 1
            self._plain.abort()
            return
        if not port.gate.admit(transport) or port.gate.refusal(self._address):
            port.status.handshakes[HandshakeEnd.REFUSED] += 1
            self._plain.abort()
            return
        port.gate.added(self._address)
        port.half_open.add(self)
        port.status.half_open += 1
        self._timer = port.loop.call_later(HANDSHAKE_TIMEOUT_S, self._timed_out)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        if self._has_begun:
            self._buffer = bytearray(EARLY_BYTES)
            return memoryview(self._buffer)
        return memoryview(self._buffer)[self._size :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._has_begun:
            self._early += self._buffer[:nbytes]
            return
        self._size += nbytes
        try:
            needed = hello_bytes(memoryview(self._buffer)[: self._size])
        except NotTlsError as error:
            if isinstance(error, NotTlsButHttpError):
                self._plain.write(_http_answer())
            self.end(HandshakeEnd.FOREIGN, f"sent {error}")
            return
        if needed is None:
            return
        if self._size >= needed:
            self._plain.pause_reading()
            self._is_waiting = True
            self._port.pace.wait(self, peer_network_of(self._address))
        elif needed > len(self._buffer):
            self._buffer = self._buffer + bytes(min(needed, HELLO_BYTES_MAX) - len(self._buffer))

    def eof_received(self) -> None:
        """The client has left; the loop closes the transport."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.end(HandshakeEnd.FAILED, "left in its TLS handshake")

    # -- the handshake -----------------------------------------------------------------------

    def begin(self) -> int:
        """Begin the handshake; 0 if the connection has ended meanwhile, else 1."""
        self._is_waiting = False
        if self.has_ended or self._plain.is_closing():
            return 0
        self._has_begun = True
        loop = self._port.loop
        hello = read_hello(self._buffer[: self._size])
        context = self._port.contexts(hello.server_name).of(hello)
        self._task = loop.create_task(self._upgrade(context))
        # The loop's own first steps (to make TLS, to read again) are scheduled by the task. The
        # record is handed over right behind them, before the loop reads: later bytes stay behind.
        loop.call_soon(loop.call_soon, self._hand_over)
        return 1

    def _hand_over(self) -> None:
        tls = self._plain.get_protocol()
        if tls is self or self._plain.is_closing():
            return
        received, self._buffer = self._buffer[: self._size], bytearray()
        size = hello_bytes(received) or len(received)
        below = cast(asyncio.BufferedProtocol, tls)
        cast(memoryview, below.get_buffer(size))[:size] = received[:size]
        below.buffer_updated(size)
        network = peer_network_of(self._address)
        self._reads = RecordReads(
            below,
            self._plain,
            self._port.pace.records,
            network,
            has_whole_hello=is_whole(received[:size]),
        )
        self._plain.set_protocol(self._reads)
        if rest := received[size:]:
            self._reads.keep(rest)

    async def _upgrade(self, context: ssl.SSLContext) -> None:
        port = self._port
        try:
            inner = await port.loop.start_tls(
                self._plain,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=2 * HANDSHAKE_TIMEOUT_S,  # the timer of this entry is first
                ssl_shutdown_timeout=CLOSE_TIMEOUT_S,
            )
        except (OSError, RuntimeError) as error:  # the latter if the socket closes meanwhile
            self.end(HandshakeEnd.FAILED, f"failed in its TLS handshake: {_reason(error)}")
            return
        reads, self._reads = self._reads, None
        if inner is None or reads is None or inner.is_closing() or self.has_ended:
            self.end(HandshakeEnd.FAILED, "left in its TLS handshake")
            return
        self._release(HandshakeEnd.DONE)
        reads.handshake_is_done()
        try:
            protocol = self._make()
            early, self._early = bytes(self._early), b""
            hand_on(TlsTransport(inner, self._plain, reads), protocol, early)
        except Exception as error:
            message = "the protocol of a connection over TLS failed at its beginning"
            fail(port.loop, self._plain, message, error)

    # -- the end -----------------------------------------------------------------------------

    def _timed_out(self) -> None:
        self._timer = None
        what = "did not finish" if self._has_begun else "did not begin"
        self.end(
            HandshakeEnd.TIMEOUT, f"{what} its TLS handshake within {HANDSHAKE_TIMEOUT_S:.0f} s"
        )

    @property
    def has_ended(self) -> bool:
        """Whether the connection has ended, or its protocol has taken over."""
        return self not in self._port.half_open

    def end(self, how: HandshakeEnd, what: str) -> None:
        """End the connection, and log ``what`` the client did. A second call does nothing."""
        if self.has_ended:
            return
        self._release(how)
        if self._is_waiting:
            self._is_waiting = False
            self._port.pace.lost()
        if what:
            self._port.lines.info("%s %s and is disconnected", self._address, what)
        if how is HandshakeEnd.FOREIGN:
            self._plain.close()  # after the answer
        else:
            self._plain.abort()

    def _release(self, how: HandshakeEnd) -> None:
        port = self._port
        port.half_open.discard(self)
        port.status.half_open -= 1
        port.status.handshakes[how] += 1
        port.gate.left(self._address)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _reason(error: Exception) -> str:
    """Why a handshake failed, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ConnectionError):
        return "it left, as a client does that does not trust the broker's certificate"
    reason = getattr(error, "reason", None)
    return str(reason).replace("_", " ").lower() if reason else type(error).__name__


def _http_answer() -> bytes:
    body = msgspec.json.encode({"reason": _PLAIN_HTTP_REASON})
    lines = [
        b"HTTP/1.1 400 Bad Request",
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
    ]
    return b"\r\n".join([*lines, b"", body])
